"""Compiled truth: what XLA makes of a planned step is what the plan predicts."""

from dataclasses import replace

import pytest
from tests.plan.verify.combos import COMBOS

from ridgeline.plan.job import Plan
from ridgeline.plan.verify.compare import Comparison, Line, compare, total, worst
from ridgeline.plan.verify.compiled import Amount, Key, Program
from ridgeline.plan.verify.predict import Named

# Kind, group and number of collectives of a step, counted by hand from the plan: layers, micro-batches, passes.
BY_HAND = {
    "DP": {("all_reduce", "shard"): 1},
    "ZeRO-1": {("reduce_scatter", "shard"): 1, ("all_gather", "shard"): 1},
    # 4 units; the table once, the rest twice; 2 micro-batches
    "FSDP": {("all_gather", "shard"): 14, ("reduce_scatter", "shard"): 8},
    "FSDP, tied table": {("all_gather", "shard"): 6, ("reduce_scatter", "shard"): 3},
    "HSDP": {("all_gather", "shard"): 7, ("reduce_scatter", "shard"): 4, ("all_reduce", "replica"): 1},
    # 2 layers of 2 reductions, forward and backward; table, head; maximum, sum and target of the loss
    "TP": {("all_reduce", "tp"): 8 + 1 + 1 + 3},
    # as many gathers as scatters; 5 norms and the loss remain all-reduces
    "TP+SP": {("all_gather", "tp"): 10, ("reduce_scatter", "tp"): 10, ("all_reduce", "tp"): 5 + 3},
    # a third pass, but for what ends a layer
    "TP, full recompute": {("all_reduce", "tp"): 8 + 2 + 1 + 1 + 3},
    # there and back, forward and backward; no copies of experts
    "EP": {("all_to_all", "ep"): 8, ("all_reduce", "shard"): 1},
    "EP+DP": {("all_to_all", "ep"): 4, ("all_reduce", "shard"): 1, ("all_reduce", "expert_data"): 1},
    "DP+TP": {("all_reduce", "tp"): 13, ("all_reduce", "shard"): 1},
    "FSDP+TP+SP": {
        ("all_gather", "tp"): 10,
        ("reduce_scatter", "tp"): 10,
        ("all_reduce", "tp"): 8,
        ("all_gather", "shard"): 7,
        ("reduce_scatter", "shard"): 4,
    },
    # routed layers reduce over tp for attention alone: (2 layers + table + head) and 5 norms, 2 routers, the loss
    "EP+FSDP+TP+SP": {
        ("all_gather", "tp"): 6,
        ("reduce_scatter", "tp"): 6,
        ("all_reduce", "tp"): 10,
        ("all_to_all", "ep"): 8,
        ("all_gather", "shard"): 7,
        ("reduce_scatter", "shard"): 4,
        ("all_gather", "expert_data"): 4,
        ("reduce_scatter", "expert_data"): 2,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMBOS)
def test_collectives_are_the_plans(name: str, comparisons: dict[str, Comparison]) -> None:
    found = comparisons[name]
    assert found.different == ()
    assert worst(found.collectives) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", COMBOS)
def test_collectives_are_those_counted_by_hand(name: str, comparisons: dict[str, Comparison]) -> None:
    found: dict[tuple[str, str], float] = {}
    for line in comparisons[name].collectives:
        key = (line.key.kind, line.key.group)
        found[key] = found.get(key, 0) + line.compiled.count
    assert found == BY_HAND[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMBOS)
def test_flops_are_the_plans(name: str, comparisons: dict[str, Comparison]) -> None:
    found = comparisons[name]
    assert "other" not in {line.key.term for line in found.flops}
    assert worst(found.flops) < 0.01
    planned, named, compiled = total(found.flops)
    assert compiled == pytest.approx(planned + named, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMBOS)
def test_memory_is_near_the_plans(name: str, comparisons: dict[str, Comparison]) -> None:
    found = comparisons[name]
    assert found.program.memory["arguments"] == pytest.approx(found.memory["arguments"], rel=0.01)
    assert 0.5 < found.program.memory["temporary"] / found.temporary_bytes < 2


@pytest.mark.slow
def test_recompute_saves_temporary_memory(programs: dict[str, Program]) -> None:
    assert programs["TP, full recompute"].memory["temporary"] < 0.75 * programs["TP"].memory["temporary"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiled", "claimed", "remark"),
    [
        ("ZeRO-1", {"dp": 2}, "in the program as reduce_scatter over shard"),
        ("TP+SP", {"tp": 2}, "in the program as all_gather over tp"),
        ("TP", {"tp": 2, "recompute": "full"}, ""),
        ("FSDP", {"dp": 2, "zero": 1}, ""),
    ],
)
def test_another_plan_is_refuted(
    compiled: str, claimed: dict[str, int | str], remark: str, programs: dict[str, Program]
) -> None:
    program = programs[compiled]
    other = replace(program, twin=replace(program.twin, plan=Plan.of(**claimed)))
    found = compare(other)
    assert found.different
    assert remark in {line.seen for line in found.different}


@pytest.mark.slow
def test_other_flops_are_refuted(programs: dict[str, Program]) -> None:
    program = programs["TP"]
    halved = compare(replace(program, twin=replace(program.twin, plan=Plan.of(dp=2))))
    assert worst(halved.flops) == pytest.approx(0.5, abs=0.01)  # tp=2 halves the work on the same rows
    more = compare(replace(program, twin=replace(program.twin, plan=Plan.of(tp=2, recompute="full"))))
    assert worst(more.flops) > 0.2


def test_a_line_counts_what_is_named() -> None:
    key = Key("shards", "all_gather", "shard")
    line = Line(key, Amount(8, 800.0), (Named("not read", -1, -100.0),), Amount(7, 707.0))
    assert line.counts_agree
    assert line.deviation == pytest.approx(0.01)
    assert not replace(line, compiled=Amount(8, 800.0)).counts_agree


@pytest.mark.parametrize(("planned", "compiled", "off"), [(0.0, 0.0, 0.0), (5.0, 0.0, 1.0), (0.0, 5.0, 1.0)])
def test_what_one_side_lacks_is_off_entirely(planned: float, compiled: float, off: float) -> None:
    line = Line(Key("mlp", "", ""), Amount(0, planned), (), Amount(0, compiled))
    assert line.deviation == off
