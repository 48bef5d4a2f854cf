"""Collectives of a trace filled in from the compiled module beside it."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.trace.synthetic import Table

from ridgeline.arithmetic.hlo import HloModule, parse
from ridgeline.trace.events import Kind, Run
from ridgeline.trace.hlo_join import with_modules

START = (
    "%s = (bf16[16,8]{1,0}, bf16[32,8]{1,0}) all-gather-start(%p), dimensions={0}, "
    "replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'a'}"
)


def module(name: str = "jit_step") -> HloModule:
    lines = (
        "%p = bf16[16,8]{1,0} parameter(0)", START, "%d = bf16[32,8]{1,0} all-gather-done(%s)",
        "%r = f32[4,8]{1,0} reduce-scatter(%d), dimensions={0}, replica_groups=[1,4]<=[4], to_apply=%sum",
        "ROOT %a = f32[4,8]{1,0} all-reduce(%r), replica_groups={{0,2},{1,3}}, to_apply=%sum",
    )  # fmt: skip
    body = "".join(f"  {line}\n" for line in lines)
    return parse(f"HloModule {name}, is_scheduled=true, num_partitions=4\n\nENTRY %e () -> f32[4,8] {{\n{body}}}\n")


def run(*, ranks: int = 4, **more: Any) -> Run:
    tables = []
    for rank in range(ranks):
        table = Table(rank, ranks)
        for at, (name, kind) in enumerate([("s", "all_gather"), ("d", "all_gather"), ("r", "reduce_scatter"),
                                           ("a", "all_reduce"), ("x", "all_reduce")]):  # fmt: skip
            meta = {"collective": kind, "hlo_op": name, "hlo_module": "jit_step", **more}
            table.work(name, 10 * at, 5, kind=Kind.COMM, meta=meta)
        table.work("fusion", 100, 5, meta={"hlo_op": "a", "hlo_module": "jit_step"})
        tables.append(table.build())
    return Run(tuple(tables), (0,) * ranks)


def metas(found: Run, rank: int) -> dict[str, Mapping[str, Any]]:
    events = found.ranks[rank]
    return {events.name_of(row): events.metas[int(events.meta[row])] for row in range(len(events))}


def test_type_size_and_group_come_from_the_instruction() -> None:
    found = metas(with_modules(run(), [module()]), 1)
    gathered = {"dtype": "bf16", "in_numel": 128, "out_numel": 256, "group_size": 2, "group_ranks": [0, 1]}
    for name in ("s", "d"):  # a start, and the done that waits for it
        assert {key: found[name][key] for key in gathered} == gathered
    scattered = {"dtype": "f32", "in_numel": 128, "out_numel": 32, "group_size": 4, "group_ranks": [0, 1, 2, 3]}
    assert {key: found["r"][key] for key in scattered} == scattered
    reduced = {"dtype": "f32", "in_numel": 32, "out_numel": 32, "group_size": 2, "group_ranks": [1, 3]}
    assert {key: found["a"][key] for key in reduced} == reduced
    assert found["a"]["group"] == "{0,2},{1,3}"
    assert "group" not in found["x"]  # the module does not have it
    assert "dtype" not in found["fusion"]  # no collective in the trace


def test_what_the_trace_says_stays() -> None:
    found = metas(with_modules(run(dtype="s8"), [module()]), 0)
    assert {meta["dtype"] for name, meta in found.items() if name in "sdra"} == {"s8"}
    mine = metas(with_modules(run(group="[2,2]<=[4]", group_size=2), []), 3)
    assert (mine["a"]["group"], mine["a"]["group_ranks"]) == ("{0,1},{2,3}", [2, 3])


@pytest.mark.parametrize("modules", [[], [module("other")], [module(), module()]])
def test_without_one_module_of_that_name_nothing_is_filled(modules: list[HloModule]) -> None:
    before = run()
    after = with_modules(before, modules)
    assert [events.metas for events in after] == [events.metas for events in before]


def test_ranks_are_not_named_where_they_are_not_the_partitions() -> None:
    found = metas(with_modules(run(ranks=2), [module()]), 0)
    assert found["a"]["group_size"] == 2
    assert all("group_ranks" not in meta for meta in found.values())
