"""L0: buckets that sum to the nanosecond, and the causes of gaps."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trace.synthetic import Table

from ridgeline.core.errors import InputError
from ridgeline.trace.events import Category, Kind, Run
from ridgeline.trace.levels import l0
from ridgeline.trace.levels.l0 import BUCKETS, GAPS, buckets

RUNTIME = Category.RUNTIME


def test_work_takes_time_in_order() -> None:
    """Compute hides communication, both hide copies, all hide memsets."""
    table = Table()
    table.work("gemm", 0, 100)
    table.work("nccl", 50, 100, kind=Kind.COMM, stream=20)
    table.copy(120, 80)
    table.work("Memset", 190, 20, kind=Kind.MEMSET, category=Category.MEMSET)
    table.copy(205, 15, Kind.D2D)
    found = buckets(table.build())
    assert {name: int(found.whole.column(name)[0]) for name in l0.WORK} == {
        "compute": 100, "exposed_comm": 50, "exposed_copy": 50, "memset": 10, "other": 10,
    }  # fmt: skip
    assert (int(found.whole.comm[0]), int(found.whole.copy[0]), int(found.whole.overlap[0])) == (100, 80, 50)
    assert int(found.whole.idle[0]) == 0


def test_a_kernel_that_only_copies_is_no_compute() -> None:
    table = Table()
    table.work("__amd_rocclr_copyBuffer", 0, 30, kind=Kind.D2D)
    table.work("gemm", 20, 100)
    whole = buckets(table.build()).whole
    assert (int(whole.compute[0]), int(whole.other[0])) == (100, 20)


def test_unclassified_kernels_are_compute_and_said() -> None:
    table = Table()
    table.work("mystery", 0, 100, kind=Kind.UNCLASSIFIED)
    table.work("gemm", 100, 100)
    found = buckets(table.build())
    assert (int(found.whole.compute[0]), int(found.whole.unclassified[0])) == (200, 100)


def gap(**host: Any) -> dict[str, int]:
    """The gap of 900 ns between two kernels, split, with host events of the caller."""
    table = Table()
    table.work("a", 0, 100, launch=-20)
    table.work("b", 1000, 100, launch=host.get("launch", 990), call=host.get("call", 4))
    for name, ts, dur, category in host.get("events", ()):
        table.host(name, ts, dur, category)
    found = buckets(table.build())
    return {name: int(found.whole.column(name)[0]) for name in GAPS if found.whole.column(name)[0]}


def test_a_late_launch_is_framework_until_the_launch() -> None:
    assert gap() == {"launch_gap": 10, "framework_gap": 890}


def test_runtime_calls_on_the_way_count_as_launch() -> None:
    assert gap(events=[("cudaFuncSetAttribute", 200, 50, RUNTIME)]) == {"launch_gap": 60, "framework_gap": 840}


def test_a_kernel_launched_in_time_was_queued() -> None:
    assert gap(launch=50) == {"queue_gap": 900}
    assert gap(launch=50, call=100) == {"launch_gap": 50, "queue_gap": 850}  # the call returned at 150


def test_waiting_for_input_comes_first() -> None:
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    events = [(name, 50, 400, Category.ANNOTATION), ("cudaStreamSynchronize", 120, 10, RUNTIME)]
    assert gap(events=events) == {"input_gap": 350, "launch_gap": 10, "framework_gap": 540}  # all of it under input


def test_garbage_collection_inside_input_is_garbage_collection() -> None:
    events = [("DataLoader", 200, 400, Category.ANNOTATION), ("gc.collect", 300, 50, Category.ANNOTATION)]
    assert gap(events=events) == {"gc_gap": 50, "input_gap": 350, "launch_gap": 10, "framework_gap": 490}


def test_the_whole_gap_behind_a_drained_queue_is_the_synchronisation() -> None:
    assert gap(events=[("cudaDeviceSynchronize", 10, 95, RUNTIME)]) == {"sync_gap": 900}


def test_a_synchronisation_of_an_idle_device_costs_its_own_time() -> None:
    events = [("cudaStreamSynchronize", 300, 20, RUNTIME)]
    assert gap(events=events) == {"sync_gap": 20, "launch_gap": 10, "framework_gap": 870}


def test_a_synchronisation_on_a_thread_that_launches_nothing_is_ignored() -> None:
    table = Table()
    table.work("a", 0, 100, launch=-20)
    table.work("b", 1000, 100, launch=990, call=4)
    table.host("cudaEventSynchronize", 10, 800, RUNTIME, thread=9)
    assert int(buckets(table.build()).whole.sync_gap[0]) == 0


def test_a_gap_before_unlinked_work_is_unknown() -> None:
    table = Table()
    table.work("a", 0, 100, launch=-20)
    table.work("b", 1000, 100)
    assert int(buckets(table.build()).whole.unknown_gap[0]) == 900


def test_without_a_host_every_gap_is_unknown() -> None:
    table = Table()
    table.work("a", 0, 100)
    table.work("b", 1000, 100)
    found = buckets(table.build()).whole
    assert (int(found.unknown_gap[0]), int(found.idle[0])) == (900, 900)


def marked() -> Table:
    """Two steps; the second kernel of the first step has no launch, a copy hangs over the border."""
    table = Table()
    table.step(1, 0, 1000)
    table.step(2, 1000, 1000)
    table.work("a", 100, 300, launch=20)
    table.work("b", 500, 300)
    table.copy(900, 200, launch=850)
    table.work("c", 1200, 500, launch=1100)
    return table


def test_steps_sum_and_share_the_work_that_crosses_the_border() -> None:
    found = buckets(marked().build())
    assert found.span.tolist() == [1000, 1000]
    assert found.exposed_copy.tolist() == [100, 100]
    assert found.total(*BUCKETS).tolist() == found.span.tolist()
    assert found.whole.span.tolist() == [1600]  # from the first to the last device event
    assert found.mean_s("compute") == pytest.approx(550e-9)


def test_windows_choose_events() -> None:
    events = marked().build()
    assert [buckets(events, window=w).events for w in l0.WINDOWS] == [4, 3, 2]
    assert [int(buckets(events, window=w).whole.compute[0]) for w in l0.WINDOWS] == [1100, 800, 300]
    assert buckets(events, work="kernels").whole.exposed_copy.tolist() == [0]
    assert (buckets(events).linked, buckets(events).events) == (3, 4)


def test_an_unknown_window_is_refused() -> None:
    with pytest.raises(InputError, match="the window"):
        buckets(marked().build(), window="some")  # type: ignore[arg-type]


def test_a_run_leaves_out_ranks_without_device_work() -> None:
    table = Table(rank=1)
    table.host("aten::mm", 0, 10)
    ranks = l0.run_buckets(Run((marked().build(), table.build())))
    assert [rank.label for rank in ranks] == ["rank0"]


def test_an_empty_trace_has_empty_buckets() -> None:
    found = buckets(Table().build())
    assert found.whole.total(*BUCKETS).tolist() == [0]


def test_steps_may_be_inferred() -> None:
    table = Table()
    for i in range(5):
        for j in range(10):
            table.work(f"k{j}", 1000 * i + 20 * j, 15)
    assert len(buckets(table.build()).span) == 1
    assert buckets(table.build(), infer=True).span.tolist()[:4] == [1000] * 4


def test_the_partition_is_disjoint_and_complete() -> None:
    parts = l0.partition(marked().build())
    edges = sorted((int(s), int(e)) for spans in parts.values() for s, e in zip(spans.start, spans.end, strict=True))
    assert edges[0][0] == 0
    assert edges[-1][1] == 2000
    assert all(one[1] == two[0] for one, two in pairwise(edges))


def test_quantities_are_seconds_of_the_whole_window() -> None:
    found = l0.quantities(buckets(marked().build(), label="rank3"))
    assert found["compute"].name == "rank3.compute"
    assert found["compute"].value == pytest.approx(1100e-9)
    assert found["idle"].value == pytest.approx(sum(float(found[name].value) for name in GAPS))
    assert {q.unit for q in found.values()} == {"s"}


def test_a_row_a_step() -> None:
    rows = list(l0.rows(buckets(marked().build())))
    assert [row["step"] for row in rows] == [1, 2]
    assert all(sum(int(row[name]) for name in BUCKETS) == row["span"] for row in rows)


WORK = st.tuples(st.integers(0, 150), st.integers(0, 40), st.integers(0, 4), st.integers(-10, 60), st.booleans())
HOST = st.tuples(st.integers(0, 150), st.integers(0, 60), st.sampled_from(["gc.collect", "DataLoader", "aten::mm"]))


def random_table(work: list[Any], host: list[Any], steps: int) -> Table:
    """Device work at any time, of any kind, launched before or after it should be; host ranges; step markers."""
    table = Table()
    kinds = [Kind.COMPUTE, Kind.COMM, Kind.H2D, Kind.MEMSET, Kind.UNCLASSIFIED]
    categories = {2: Category.MEMCPY, 3: Category.MEMSET}
    for ts, dur, which, lead, linked in work:
        category = categories.get(which, Category.KERNEL)
        table.work(f"k{which}", ts, dur, launch=ts - lead if linked else None, kind=kinds[which], category=category)
    for ts, dur, name in host:
        table.host(name, ts, dur)
    for step in range(steps):
        table.step(step, step * 60, 60)
    return table


@given(st.lists(WORK, min_size=1, max_size=12), st.lists(HOST, max_size=4), st.integers(0, 3))
def test_buckets_always_sum_and_agree_with_counting(work: list[Any], host: list[Any], steps: int) -> None:
    """Against an array of every nanosecond."""
    found = buckets(random_table(work, host, steps).build())
    assert found.total(*BUCKETS).tolist() == found.span.tolist()
    assert found.whole.total(*BUCKETS).tolist() == found.whole.span.tolist()
    assert all((found.column(name) >= 0).all() for name in BUCKETS)
    on = np.zeros((5, 300), dtype=np.bool_)
    for ts, dur, which, _, _ in work:
        on[which, ts : ts + dur] = True
    compute, comm, copy, memset = on[0] | on[4], on[1], on[2], on[3]
    assert int(found.whole.compute[0]) == compute.sum()
    assert int(found.whole.exposed_comm[0]) == (comm & ~compute).sum()
    assert int(found.whole.overlap[0]) == (comm & compute).sum()
    assert int(found.whole.exposed_copy[0]) == (copy & ~compute & ~comm).sum()
    assert int(found.whole.memset[0]) == (memset & ~compute & ~comm & ~copy).sum()
