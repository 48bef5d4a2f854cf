"""Steps: whose work it is, where the windows lie, which steps count."""

import numpy as np
import pytest
from tests.trace.synthetic import Table

from ridgeline.trace.events import NONE, Category
from ridgeline.trace.steps import assign, launch_rows, period_borders


def loop(steps: int, *, host: int = 100, device: int = 100, kernels: int = 4, lag: int = 10) -> Table:
    """Steps of ``host`` ns whose kernels keep the device busy for ``device`` ns."""
    table, free = Table(), 0
    for step in range(steps):
        begin = step * host
        table.step(step + 3, begin, host)
        for i in range(kernels):
            launch = begin + i * host // kernels
            start = max(free, launch + lag)
            table.work(f"k{i}", start, device // kernels, launch=launch)
            free = start + device // kernels
    return table


def test_work_belongs_to_the_step_that_launched_it() -> None:
    """The host is four times as fast as the device, so most work runs after the host's range."""
    events, steps = assign(loop(4, host=100, device=400).build())
    work = events.on_device
    assert [int((events.step[work] == i).sum()) for i in range(4)] == [4, 4, 4, 4]
    assert steps.number.tolist() == [3, 4, 5, 6]
    assert (steps.end - steps.start).tolist()[1:] == [400, 400, 400]  # the device's pace, not the host's
    assert steps.start.tolist()[1:] == steps.end.tolist()[:-1]


def test_a_waiting_device_takes_the_host_range() -> None:
    _, steps = assign(loop(3, host=1000, device=100).build())
    assert steps.start.tolist() == [0, 1000, 2000]
    assert (steps.end - steps.start).tolist() == [1000, 1000, 1000]


@pytest.mark.parametrize(("wait", "last"), [(0, 400), (150, 550)])
def test_the_last_step_ends_as_the_others_did(wait: int, last: int) -> None:
    """A transfer of 150 ns behind each step of 400 ns: no part of it beside the next one, unless that one waits."""
    table = Table()
    for i in range(4):
        begin = i * (400 + wait)
        table.step(i, 10 * i, 10)
        table.work("gemm", begin, 400, launch=10 * i)
        table.work("send", begin + 400, 150, launch=10 * i + 1, stream=20)
    _, steps = assign(table.build())
    assert (steps.end - steps.start).tolist()[1:-1] == [400 + wait] * 2
    assert int(steps.end[-1]) == 3 * (400 + wait) + last


def test_host_events_between_steps_belong_to_none() -> None:
    table = Table()
    table.step(1, 0, 100)
    table.step(2, 300, 100)
    table.host("validate", 200, 10)
    table.work("a", 10, 50, launch=5)
    table.work("b", 210, 50, launch=205)
    table.work("c", 310, 50, launch=305)
    events, steps = assign(table.build())
    by_name = {events.name_of(i): int(events.step[i]) for i in range(len(events)) if events.category[i] != 2}
    assert by_name["validate"] == NONE
    assert (by_name["a"], by_name["b"], by_name["c"]) == (0, NONE, 1)
    assert (steps.end - steps.start).tolist() == [100, 100]


def test_work_in_flight_at_the_start_is_no_part_of_the_first_step() -> None:
    table = loop(3, host=100, device=100, lag=200)
    table.work("earlier", -50, 200)
    events, steps = assign(table.build())
    row = [events.name_of(i) for i in range(len(events))].index("earlier")
    assert events.step[row] == NONE
    assert steps.start[0] == 150


def test_unlinked_work_goes_by_time_on_the_device() -> None:
    """The device runs behind: at 900 ns the host is past its last step, the device in its third."""
    table = loop(4, host=100, device=400)
    table.work("graph", 900, 10, stream=9)
    events, _ = assign(table.build())
    row = [events.name_of(i) for i in range(len(events))].index("graph")
    assert events.step[row] == 2


def test_warm_up_and_partial_steps_are_said() -> None:
    table = loop(5, host=100, device=100)
    table.step(2, -500, 500)
    for i in range(4):
        table.work(f"k{i}", -400 + 90 * i, 80, launch=-490 + i)
    table.step(9, 500, 20)
    table.work("k0", 530, 5, launch=505)
    _, steps = assign(table.build())
    assert steps.status == ("warm-up", "steady", "steady", "steady", "steady", "steady", "partial")
    assert steps.excluded == {2: "warm-up", 9: "partial"}
    assert int(steps.steady.sum()) == 5


def test_all_steps_count_where_none_is_steady() -> None:
    _, steps = assign(loop(2).build())
    assert steps.steady.tolist() == [True, True]


def test_without_markers_the_trace_is_one_step() -> None:
    table = Table()
    table.work("a", 10, 20)
    table.work("b", 50, 20)
    events, steps = assign(table.build())
    assert (steps.source, len(steps)) == ("none", 1)
    assert (steps.start.tolist(), steps.end.tolist()) == ([10], [70])
    assert events.step.tolist() == [0, 0]


def test_an_empty_trace_is_one_empty_step() -> None:
    _, steps = assign(Table().build())
    assert (len(steps), int(steps.end[0] - steps.start[0])) == (1, 0)


def test_nested_markers_and_other_threads_are_not_steps() -> None:
    table = loop(3)
    table.add("ProfilerStep#77", 20, 30, Category.STEP, thread=1)
    table.add("ProfilerStep#88", 0, 30, Category.STEP, thread=2)
    _, steps = assign(table.build())
    assert steps.number.tolist() == [3, 4, 5]


def test_markers_without_numbers_are_counted() -> None:
    table = Table()
    for i in range(3):
        table.add("train_step", i * 100, 100, Category.STEP, thread=1)
        table.work("a", i * 100 + 10, 50, launch=i * 100)
    _, steps = assign(table.build())
    assert steps.number.tolist() == [0, 1, 2]


def test_markers_on_the_device_are_taken_as_they_are() -> None:
    table = Table()
    for i in range(2):
        table.add(str(i + 40), i * 100, 90, Category.STEP, device=0, stream=1)
        table.work("a", i * 100 + 10, 50)
    events, steps = assign(table.build())
    assert (steps.source, steps.number.tolist()) == ("device markers", [40, 41])
    assert (steps.end - steps.start).tolist() == [90, 90]
    assert events.step[events.on_device].tolist() == [0, 1]


@pytest.mark.parametrize("scale", [1, 10**6])
def test_launches_are_found_with_dense_and_with_sparse_ids(scale: int) -> None:
    table = Table()
    for i in range(20):
        table.work(f"k{i}", 100 * i + 10, 5, launch=100 * i)
    table.work("alone", 5000, 5)
    events = table.build()
    events = events.with_columns(corr=np.where(events.corr == NONE, NONE, events.corr * scale))
    found = launch_rows(events)
    work = np.flatnonzero(events.on_device)
    assert (events.ts[found[work[:-1]]] == events.ts[work[:-1]] - 10).all()
    assert found[work[-1]] == NONE
    assert (found[~events.on_device] == NONE).all()


def periodic(periods: int, *, layers: int = 4) -> Table:
    """A step: an embedding, equal layers of three kernels, a head, and a wait."""
    table, now = Table(), 0
    for _ in range(periods):
        for name in ["embed", *["norm", "attention", "mlp"] * layers, "head", "loss"]:
            table.work(name, now, 10)
            now += 11
        now += 500
    return table


def test_a_repeating_sequence_of_kernels_gives_the_period() -> None:
    events = periodic(6).build()
    borders = period_borders(events)
    assert borders is not None
    assert borders.tolist()[:-1] == [i * (15 * 11 + 500) for i in range(6)]
    found, steps = assign(events, infer=True)
    assert (steps.source, len(steps)) == ("inferred", 6)
    assert np.bincount(found.step[found.step != NONE]).tolist() == [15] * 6


def test_nothing_repeats_in_a_random_sequence() -> None:
    table = Table()
    for i, name in enumerate(np.random.default_rng(3).integers(0, 50, 300)):
        table.work(f"k{name}", 10 * i, 5)
    assert period_borders(table.build()) is None
    assert assign(table.build(), infer=True)[1].source == "none"


def test_too_few_kernels_have_no_period() -> None:
    assert period_borders(periodic(1, layers=1).build()) is None
