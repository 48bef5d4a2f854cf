"""From findings to causes: buckets, overlaps, and the run file's own."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.trace.runs import context, facts, number
from tests.trace.synthetic import Table
from tests.trace.traces import steady_rank

from ridgeline.core.errors import InputError
from ridgeline.core.finding import Finding, Verdict, run_rules
from ridgeline.core.plugins import rules
from ridgeline.core.quantity import Source, leaf
from ridgeline.trace.causes import COARSER, GROUPS, LATE, NETS, STALLS, TYPICAL, bridge_of, buckets_of, causes_of
from ridgeline.trace.context import RunContext, read_context
from ridgeline.trace.events import Run
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels import l0
from ridgeline.trace.levels.l1 import collectives
from ridgeline.trace.levels.l3 import strip_chart
from ridgeline.trace.levels.l4 import rank_spread
from ridgeline.trace.logs import StepLog, read_log
from ridgeline.trace.read import read_run

MS = 10**6


def lost(of: TraceFacts, code: str, seconds: float, name: str = "") -> Finding:
    """A finding of that rule."""
    quantity = leaf(name or f"lost.{code.lower()}", seconds, "s", "measured", Source("test"), "").titled(f"Loss {code}")
    return Finding(code, f"Title of {code}", Verdict.FAIL, "Lost.", "Fix.", cost=of.cost(quantity))


def bars(of: TraceFacts, *findings: Finding) -> dict[str, float]:
    return {bar.cause.code: round(number(bar.seconds), 6) for bar in bridge_of(of, findings).bars}


def traced(**seconds: Any) -> TraceFacts:
    """A trace of 14 s steps in a run of 15 s."""
    return facts(context(), l0=(steady_rank(14, **seconds),))


def test_every_net_is_a_rule_and_every_bucket_exists() -> None:
    assert [code for code in NETS if code not in rules()] == []
    known = {*l0.BUCKETS, STALLS}
    assert [net for net in NETS.values() if not set(net.buckets) <= known or not set(net.risks) <= set(NETS)] == []
    assert {name for names in GROUPS.values() for name in names} <= set(l0.BUCKETS)
    assert set(COARSER) <= known


def test_buckets_of_a_trace_sum_to_the_step_that_is_paid_for() -> None:
    found = buckets_of(traced(exposed_comm=3.0, input_gap=1.0))
    assert (found["compute"], found["exposed_comm"], found["input_gap"], found[STALLS]) == (10, 3, 1, 1)
    assert sum(found.values()) == 15


def test_a_trace_that_is_slower_than_the_run_has_no_stalls() -> None:
    assert buckets_of(facts(context(), l0=(steady_rank(16),)))[STALLS] == 0


def test_causes_fill_their_buckets_in_order() -> None:
    of = traced(input_gap=0.5)
    (cause,) = causes_of(of, [lost(of, "T301", 1.2)])
    assert cause.seconds == {STALLS: pytest.approx(1.0), "input_gap": pytest.approx(0.2)}


def test_a_broad_finding_gets_the_rest() -> None:
    of = traced(exposed_comm=3.0)
    found = bars(of, lost(of, "T151", 3.0), lost(of, "T155", 1.0), lost(of, "T154", 0.5))
    assert found == {"T151": 1.5, "T155": 1.0, "T154": 0.5}
    names = [bar.cause.name for bar in bridge_of(of, [lost(of, "T151", 3.0)]).bars]
    assert names == ["Other loss T151"]


def test_findings_without_seconds_or_without_a_net_are_no_causes() -> None:
    of = traced()
    passed = Finding("T101", "Title", Verdict.PASS, "Fine.", "")
    assert causes_of(of, [passed, lost(of, "T109", 1.0)]) == []


def test_two_findings_of_one_label_have_two_names() -> None:
    of = traced(exposed_comm=3.0)
    same = [lost(of, "T401", 0.1, "rank1.late_cost"), lost(of, "T401", 0.2, "rank2.late_cost")]
    assert [cause.name for cause in causes_of(of, same)] == ["Loss T401", "Loss T401 (T401, 2)"]


def test_risks_name_the_causes_that_are_there() -> None:
    of = traced(exposed_comm=3.0, input_gap=1.0)
    found = {c.code: c for c in causes_of(of, [lost(of, "T101", 1.0), lost(of, "T152", 1.0)])}
    assert found["T101"].risks == ("Loss T152",)


def test_the_run_file_adds_causes_and_stands_for_findings_of_its_code() -> None:
    own = {"name": "stall", "code": "T301", "seconds": {STALLS: 0.9}}
    of = facts(context(cause=[own]), l0=(steady_rank(14),))
    assert bars(of, lost(of, "T301", 1.0)) == {"T301": 0.9}


def test_groups_of_gaps_are_divided() -> None:
    own = {"name": "host", "code": "T101", "seconds": {"host_gap": 0.9}}
    of = facts(context(cause=[own]), l0=(steady_rank(14, input_gap=0.5, sync_gap=0.5),))
    (bar,) = bridge_of(of, []).bars
    assert bar.item.seconds == {"input_gap": pytest.approx(0.5), "sync_gap": pytest.approx(0.4)}


def test_a_bucket_that_no_trace_has_is_refused() -> None:
    of = facts(context(cause=[{"name": "a", "seconds": {"comms": 1.0}}]), l0=(steady_rank(14),))
    with pytest.raises(InputError, match="bucket of the step"):
        bridge_of(of, [])


def test_buckets_that_do_not_fit_into_the_step_are_refused() -> None:
    over = {"compute": 900.0, "exposed_comm": 3.6}
    with pytest.raises(InputError, match=r"buckets that fill the step of 15 s, got '903.6 s', at \$.buckets"):
        bridge_of(TraceFacts(context=context(buckets=over)), [])


def test_nothing_to_build_on_is_refused() -> None:
    with pytest.raises(InputError, match="seconds by bucket"):
        bridge_of(TraceFacts(), [])


def example(repo: Path, context_: RunContext | None = None) -> TraceFacts:
    (log,) = read_log(repo / "examples" / "incident" / "steps.csv")
    assert isinstance(log, StepLog)
    return facts(context_ or read_context(repo / "examples" / "incident"), l3=strip_chart(log))


def test_the_incident_with_its_log_is_not_counted_twice(repo: Path) -> None:
    of = example(repo)
    found = bridge_of(of, run_rules(rules().values(), of, family="T3"))
    assert [round(number(bar.after), 2) for bar in found.bars] == [11.36, 9.36, 8.33]


def test_the_log_alone_finds_the_stall(repo: Path) -> None:
    of = example(repo, context(without=("observed",)))
    assert set(buckets_of(of)) == {TYPICAL, STALLS}
    found = bridge_of(of, run_rules(rules().values(), of, family="T3"))
    (bar,) = found.bars
    assert bar.cause.code == "T301"
    assert number(bar.seconds) == pytest.approx(1.04, abs=0.01)
    assert number(found.final) == pytest.approx(13.96, abs=0.02)


def late_pair() -> TraceFacts:
    """Two ranks, three steps of 10 ms: 6 ms compute, then an all-reduce for which rank 1 is 2 ms late."""
    tables = (Table(rank=0, world=2), Table(rank=1, world=2))
    for number_ in range(4):
        start = number_ * 10 * MS
        for rank, table in enumerate(tables):
            late = rank * 2 * MS
            table.step(number_, start, 10 * MS)
            table.work("gemm", start, 6 * MS, launch=start)
            table.comm(start + 6 * MS + late, 3 * MS - late, launch=start + 1, seq=number_, numel=25 << 20)
    run = Run(tuple(table.build() for table in tables), (0, 0))
    return TraceFacts(RunContext(), run, l0.run_buckets(run), collectives(run))


def comm_bars(of: TraceFacts, found: Sequence[Finding]) -> dict[str, float]:
    return {bar.cause.code: number(bar.seconds) * 1e3 for bar in bridge_of(of, found).bars}


def test_a_late_rank_that_two_rules_see_counts_once() -> None:
    of = late_pair()
    assert of.l1 is not None
    wait = sum(row.wait_per_step_s for row in of.l1.rows)
    assert wait > 0
    twice = [lost(of, "T152", wait, "lost.late_rank"), lost(of, "T401", wait, "rank1.late_cost")]
    assert comm_bars(of, twice) == {"T401": pytest.approx(wait * 1e3)}


@pytest.mark.parametrize("code", LATE)
def test_a_wait_is_exposed_on_all_ranks_but_one(code: str) -> None:
    """Of two ranks one waits and one is late: in its own largest bucket, here before a call that was queued."""
    of = late_pair()
    of = replace(of, l4=rank_spread(buckets=of.l0, collectives=of.l1))
    (cause,) = causes_of(of, [lost(of, code, 0.002, "lost.late_rank" if code == "T152" else "rank1.late_cost")])
    assert cause.seconds == {"exposed_comm": pytest.approx(0.001), "queue_gap": pytest.approx(0.001)}
    (alone,) = causes_of(replace(of, l4=None), [lost(of, code, 0.0005, "rank1.late_cost")])
    assert alone.seconds == {"exposed_comm": pytest.approx(0.0005)}


def test_waits_for_different_ranks_are_different_time() -> None:
    of = late_pair()
    found = [lost(of, "T152", 0.0004, "lost.late_rank"), lost(of, "T401", 0.0003, "rank0.late_cost")]
    assert set(comm_bars(of, found)) == {"T152", "T401"}


def test_a_collective_outside_the_plan_takes_its_time_from_its_verdict() -> None:
    of = replace(late_pair(), context=context(without=("observed",), parallel={"dp": 7, "tp": 1}))
    assert of.l1 is not None
    total = sum(row.per_step_s for row in of.l1.rows)
    wait = sum(row.wait_per_step_s for row in of.l1.rows)
    found = [lost(of, "T155", total), lost(of, "T152", wait, "lost.late_rank")]
    assert sum(number(bar.seconds) for bar in bridge_of(of, found).bars) == pytest.approx(total)


def test_a_perturbed_trace_is_scaled_to_the_step_that_is_paid_for() -> None:
    of = facts(context(), l0=(steady_rank(20, exposed_comm=4.0),))
    found = buckets_of(of)
    assert sum(found.values()) == pytest.approx(15)
    assert found["exposed_comm"] == pytest.approx(3)
    assert bars(of, lost(of, "T155", 2.0)) == {"T155": 1.5}


def test_an_estimate_gives_way_to_what_measures_the_same() -> None:
    of = traced(exposed_comm=3.0)
    assert bars(of, lost(of, "T210", 0.4)) == {"T210": 0.4}
    assert bars(of, lost(of, "T210", 0.4), lost(of, "T155", 0.5)) == {"T155": 0.5}


@pytest.mark.data
def test_eight_ranks_of_a_real_run(data_dir: Path) -> None:
    run = read_run(sorted((data_dir / "trace" / "gpt_8xh100").glob("*rank*")))
    of = TraceFacts(RunContext(), run, l0.run_buckets(run), collectives(run))
    found = bridge_of(of, run_rules(rules().values(), of, family="T1"))
    by_code = {bar.cause.code: bar for bar in found.bars}
    assert "rank1" in by_code["T152"].cause.name
    exposed = [bar for bar in found.bars if "exposed_comm" in bar.item.seconds]
    assert sum(bar.item.own_s for bar in exposed) == pytest.approx(buckets_of(of)["exposed_comm"])
    assert by_code["T152"].item.shared_s == 0
    assert found.bars[-1].cause.code == "T151"
