"""L1: matching, waiting, wire time, exposed time, verdicts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trace.synthetic import Table

from ridgeline.trace.events import NONE, Kind, Run
from ridgeline.trace.levels import l0
from ridgeline.trace.levels.l1 import Collectives, Timing, collectives, verdict


def found(*tables: Table, offsets: tuple[int, ...] = ()) -> Collectives:
    result = collectives(Run(tuple(table.build() for table in tables), offsets))
    assert result is not None
    return result


def two_ranks() -> tuple[Table, Table]:
    """An all-reduce of 8 MiB: rank 1 arrives 600 ns late, the transfer takes 400 ns, 300 ns of rank 0 are hidden."""
    first, second = Table(rank=0, world=2), Table(rank=1, world=2)
    first.comm(1000, 1000, numel=2 << 20)
    first.work("gemm", 900, 300)
    first.work("gemm", 1900, 500)
    second.comm(1600, 400, numel=2 << 20)
    return first, second


def test_wire_is_the_shortest_and_the_rest_is_wait() -> None:
    one = found(*two_ranks())
    (row,) = one.rows
    assert (row.key.kind, row.key.dtype, row.key.size, row.key.group_size) == ("all_reduce", "fp32", 8 << 20, 2)
    assert (row.matched, row.wire, row.skew) == (1, 400, 600)
    assert row.kernel.tolist() == [1000, 400]
    assert row.exposed.tolist() == [700, 400]  # 200 ns at the start and 100 at the end are under the matmuls
    assert row.exposed_wait.tolist() == [400, 0]
    assert row.last.tolist() == [0, 1]
    assert one.blame.tolist() == [0, 400]
    assert one.unmatched.tolist() == [0, 0]


def test_bandwidths_are_decimal_and_follow_the_arithmetic() -> None:
    (row,) = found(*two_ranks()).rows
    assert row.sent_bytes == 8 << 20  # 2 (n - 1)/n of the array for n = 2
    assert row.bus_bytes_per_s == pytest.approx((8 << 20) / 400e-9)
    assert row.algo_bytes_per_s == pytest.approx((8 << 20) / 400e-9)
    assert row.title == "all-reduce fp32 8.39 MB over 2"


def test_clock_offsets_decide_who_is_last() -> None:
    first, second = two_ranks()
    assert found(first, second, offsets=(0, -10_000)).rows[0].last.tolist() == [1, 0]


def test_overlapping_collectives_share_exposed_time_once() -> None:
    table = Table()
    table.comm(0, 100, numel=10)
    table.comm(50, 100, numel=20, stream=21)
    table.comm(60, 10, numel=30, stream=22)
    one = found(table)
    exposed = {row.key.size: int(row.exposed[0]) for row in one.rows}
    assert exposed == {40: 100, 80: 50, 120: 0}


def test_sizes_count_the_whole_array() -> None:
    table = Table()
    for i, (name, inside, outside) in enumerate([("_allgather_base", 10, 80), ("_reduce_scatter_base", 80, 10)]):
        meta = {"collective": name, "dtype": "BFloat16", "in_numel": inside, "out_numel": outside, "group_size": 8}
        table.work("nccl", 1000 * i, 10, kind=Kind.COMM, meta=meta)
    assert {(r.key.kind, r.key.size, r.sent_bytes) for r in found(table).rows} == {
        ("all_gather", 160, 140.0), ("reduce_scatter", 160, 140.0),
    }  # fmt: skip


def test_a_start_and_its_done_are_one_call() -> None:
    """In flight from 1,000 on; the done waits 300 ns, and 100 of them are under a kernel of another stream."""
    tables = (Table(rank=0, world=2), Table(rank=1, world=2))
    for rank, table in enumerate(tables):
        meta = {"collective": "all_gather", "call": "all-gather-start.3", "group": "{{0,1}}", "group_size": 2}
        size = {"dtype": "bf16", "in_numel": 50, "out_numel": 100}
        begin = 1000 + 400 * rank
        table.work("all-gather-start.3", begin, 10, kind=Kind.COMM, meta={**meta, **size, "phase": "start"})
        table.work("fusion", begin + 10, 990 - 400 * rank)
        table.work("all-gather-done.3", 2000, 300, kind=Kind.COMM, meta={**meta, "phase": "done"})
        table.work("gemm", 2200, 100, stream=8)
    one = found(*tables)
    (row,) = one.rows
    assert (row.count.tolist(), row.matched, row.key.size) == ([1, 1], 1, 200)
    assert (row.kernel.tolist(), row.wire, row.skew) == ([1300, 900], 900, 400)
    assert row.exposed.tolist() == [200, 200]
    assert row.last.tolist() == [0, 1]


def test_a_group_of_some_ranks_costs_all_of_them_less_than_it_waits() -> None:
    """Rank 1 of a pair is 600 ns late; two more ranks have no part in it."""
    others = (Table(rank=2), Table(rank=3))
    for table in others:
        table.work("gemm", 0, 100)
    assert found(*two_ranks()).blame.tolist() == [0, 400]
    assert found(*two_ranks(), *others).blame.tolist() == [0, 100, 0, 0]


def test_no_communication_gives_nothing() -> None:
    table = Table()
    table.work("gemm", 0, 10)
    assert collectives(Run((table.build(),))) is None


def test_groups_of_the_same_name_on_other_ranks_do_not_match() -> None:
    first, second = Table(rank=0), Table(rank=2)
    for table, ranks in ((first, [0, 1]), (second, [2, 3])):
        meta = {"collective": "allreduce", "group": "tp", "group_ranks": ranks, "group_size": 2}
        table.work("nccl", 0, 10, kind=Kind.COMM, meta=meta)
    one = found(first, second)
    assert one.unmatched.tolist() == [1, 1]
    assert one.rows[0].groups == ((0, 1), (2, 3))


def test_per_step_counts_steady_steps_only() -> None:
    table = Table()
    for step, begin, length in ((1, 0, 5000), (2, 5000, 1000), (3, 6000, 1000), (4, 7000, 1000)):
        table.step(step, begin, length)
        table.work("gemm", begin + 10, 10, launch=begin + 1)
        table.comm(begin + 100, 100 * step, launch=begin + 50)
    one = found(table)
    assert one.steps.tolist() == [3]
    assert one.rows[0].per_step_s == pytest.approx((200 + 300 + 400) / 3 * 1e-9)


def test_steps_may_be_inferred() -> None:
    table = Table()
    for i in range(4):
        for j in range(10):
            table.work(f"k{j}", 1000 * i + 20 * j, 15)
        table.comm(1000 * i + 500, 100)
    run = Run((table.build(),))
    inferred, whole = collectives(run, infer=True), collectives(run)
    assert inferred is not None
    assert whole is not None
    assert (inferred.rows[0].per_step_s, whole.rows[0].per_step_s) == pytest.approx((100e-9, 400e-9))


def test_a_call_behind_a_kernel_on_its_stream_is_known() -> None:
    table = Table()
    table.work("custom-call.5", 0, 1000, launch=-10, stream=7)
    table.comm(1005, 50, launch=100, stream=7)
    table.work("gemm", 2000, 1000, launch=1900, stream=7)
    table.comm(3005, 50, launch=3003, stream=7, numel=5)  # launched after the kernel: nothing was held back
    calls = found(table).instances
    assert calls.behind.tolist() == [1000, 0]
    assert calls.names == ("custom-call.5",)


@pytest.mark.parametrize(
    ("timing", "sent_bytes", "link", "expected"),
    [
        (Timing(1.30, 0.0, 0.85, 1.30, 6.10), None, None, "scheduling"),  # worked numbers, section H
        (Timing(10.0, 0.0, 0.5, 10.0, 20.0), None, None, "hidden"),
        (Timing(10.0, 6.0, 1.0, 4.0, 20.0), None, None, "straggler"),
        (Timing(10.0, 1.0, 6.0, 9.0, 5.0), None, None, "bandwidth"),
        (Timing(1.0, 0.0, 1.0, 1.0, 5.0), 50e9, 100e9, "bandwidth"),
        (Timing(1.0, 0.0, 1.0, 1.0, 5.0), 70e9, 100e9, "scheduling"),
        (Timing(30e-6, 0.0, 30e-6, 30e-6, 5.0), 1e5, 100e9, "latency"),
        (Timing(30e-6, 0.0, 30e-6, 30e-6, 5.0), 1e5, None, "latency"),
    ],
)
def test_verdicts(timing: Timing, sent_bytes: float | None, link: float | None, expected: str) -> None:
    assert verdict(timing, sent_bytes, link) == expected


def test_a_transfer_is_judged_without_the_wait_for_a_rank() -> None:
    """Rank 1 is 900 ns late for a transfer of 100 ns, which would fit under the matmul."""
    tables = (Table(rank=0, world=2), Table(rank=1, world=2))
    for late, table in zip((0, 900), tables, strict=True):
        table.comm(late, 1000 - late, numel=2 << 20)
        table.work("gemm", 1000, 5000)
    one = found(*tables)
    (row,) = one.rows
    assert (one.verdict(row), one.verdict(row, waits=False)) == ("straggler", "scheduling")


@pytest.mark.parametrize(("late", "pushed"), [(500, 400), (300, 300)])
def test_a_transfer_that_lateness_moves_out_from_under_compute_is_wait(late: int, pushed: int) -> None:
    """Rank 0 hides its wait and runs out of compute; the last rank hides all of it: no more than it was late."""
    first, second = Table(rank=0, world=2), Table(rank=1, world=2)
    first.comm(1000, late + 400)
    first.work("gemm", 1000, late)
    second.comm(1000 + late, 400)
    second.work("gemm", 1000 + late, 400)
    (row,) = found(first, second).rows
    assert row.exposed.tolist() == [400, 0]
    assert row.exposed_wait.tolist() == [pushed, 0]


def test_one_rank_alone_is_judged_only_where_the_wire_is_known_to_be_fast() -> None:
    table = Table()
    table.work("gemm", 0, 1_000_000)
    for i in range(4):
        table.comm(2_000_000 + i * 300_000, 200_000, numel=4 << 20)
    one = found(table)
    assert one.verdict(one.rows[0]) == "unknown"
    assert one.verdict(one.rows[0], 100e9) == "scheduling"  # 84 of 100 GB/s
    assert one.verdict(one.rows[0], 400e9) == "unknown"  # slow, or waiting


CALLS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 60), st.integers(1, 3)), min_size=1, max_size=8)
BUSY = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 60)), max_size=6)


@given(st.lists(st.tuples(CALLS, BUSY), min_size=1, max_size=3))
def test_exposed_times_sum_to_the_exposed_communication_of_l0(ranks: list[Any]) -> None:
    tables = []
    for rank, (calls, busy) in enumerate(ranks):
        table = Table(rank=rank)
        for ts, dur, size in calls:
            table.comm(ts, dur, numel=size, stream=20 + size)
        for ts, dur in busy:
            table.work("gemm", ts, dur)
        tables.append(table)
    one = found(*tables)
    calls = one.instances
    for i, table in enumerate(tables):
        own = int(calls.exposed[calls.rank == i].sum())
        assert own == int(l0.buckets(table.build()).whole.exposed_comm[0])
    assert (calls.exposed_wait <= calls.exposed).all()
    assert (calls.exposed_wait >= 0).all()
    assert (calls.wire <= calls.dur).all()
    assert sum(int(row.exposed.sum()) for row in one.rows) == int(calls.exposed.sum())
    assert int(one.last.sum()) == len(set(calls.match[calls.match != NONE].tolist()))
