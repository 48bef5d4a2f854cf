"""Pipeline schedules against their closed forms, and what no schedule may break."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.steps.pipeline import SCHEDULES, Stages, Timeline, simulate, split_layers


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("devices", "micro_batches"), [(1, 4), (4, 8), (4, 32), (8, 3)])
def test_even_stages_take_m_plus_s_minus_1_turns(schedule: str, devices: int, micro_batches: int) -> None:
    found = simulate(schedule, devices, micro_batches, Stages.even(devices, 1.0, 1.5, 0.5))
    assert found.step_s == pytest.approx((micro_batches + devices - 1) * 3.0)
    assert found.bubble == pytest.approx((devices - 1) / (micro_batches + devices - 1))


def test_worked_numbers_of_pipeline_utilization() -> None:
    busy = [1 - simulate("1f1b", 4, m, Stages.even(4, 1, 1, 1)).bubble for m in (8, 32)]
    assert np.round(busy, 2).tolist() == [0.73, 0.91]


def test_a_pipelined_prefill_overlaps_transfer_with_compute() -> None:
    """Worked numbers C: 4 stages, 8 chunks, 50 ms and 20 ms are 2,240 ms one after the other, 550 ms pipelined."""
    serial = 8 * 4 * (0.050 + 0.020)
    hidden = simulate("1f1b", 4, 8, Stages.even(4, 0.050, 0, 0))
    assert serial == pytest.approx(2.240)
    assert hidden.step_s == pytest.approx(0.550)
    exposed = simulate("gpipe", 4, 8, Stages.even(4, 0.050, 0, 0, 0.020))
    assert exposed.step_s == pytest.approx(0.550 + 3 * 0.020 * 2)  # there, and back with the empty backward pass


@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_interleaving_divides_the_bubble(chunks: int) -> None:
    whole = Stages.even(4 * chunks, 1 / chunks, 1.5 / chunks, 0.5 / chunks)
    found = simulate("interleaved", 4, 16, whole)
    assert found.step_s == pytest.approx(16 * 3.0 + 3 * 3.0 / chunks)
    if chunks > 1:  # (1 + (p - 1)/(p v)) times the p inputs of 1F1B, p v stages each 1/v as deep
        assert found.held[0] == 4 * chunks * (1 + 3 / (4 * chunks))


@pytest.mark.parametrize(("devices", "micro_batches"), [(2, 4), (4, 8), (8, 32)])
def test_zero_bubble_h1_matches_its_closed_form_in_the_memory_of_1f1b(devices: int, micro_batches: int) -> None:
    stages = Stages.even(devices, 1.0, 1.0, 1.0)
    found = simulate("zb-h1", devices, micro_batches, stages)
    assert found.step_s == pytest.approx(3 * micro_batches + (devices - 1) * (1 + 1 - 1))
    assert found.held.max() == devices == simulate("1f1b", devices, micro_batches, stages).held.max()


@pytest.mark.parametrize(("devices", "micro_batches"), [(4, 8), (8, 32)])
def test_dualpipe_waits_less_and_holds_one_more(devices: int, micro_batches: int) -> None:
    stages = Stages.even(devices, 1.0, 1.0, 1.0)
    both, one = simulate("dualpipe", devices, micro_batches, stages), simulate("1f1b", devices, micro_batches, stages)
    assert both.bubble < one.bubble / 2
    assert both.held.tolist() == [devices + 1] * devices


def test_1f1b_holds_as_many_inputs_as_stages_behind() -> None:
    assert simulate("1f1b", 4, 8, Stages.even(4, 1, 1, 1)).held.tolist() == [4, 3, 2, 1]
    assert simulate("gpipe", 4, 8, Stages.even(4, 1, 1, 1)).held.tolist() == [8, 8, 8, 8]


def test_the_slowest_stage_sets_the_pace() -> None:
    slow = Stages(np.array([1.0, 1, 1, 2]), np.ones(4), np.ones(4))
    found = simulate("1f1b", 4, 64, slow)
    assert 64 * 4.0 < found.step_s < 64 * 4.0 + 4 * 4


def _check(found: Timeline, stages: Stages, micro_batches: int, *, split: bool) -> None:
    """Nothing overlaps on a device, nothing starts before its input, and everything runs once."""
    count = len(stages.forward_s)
    spans = dict(zip(found.ops, zip(found.start_s, found.end_s, strict=True), strict=True))
    assert len(spans) == len(found.ops) == count * micro_batches * (3 if split else 2)
    for device in range(len(found.busy_s)):
        mine = sorted((s, e) for s, e, d in zip(found.start_s, found.end_s, found.device, strict=True) if d == device)
        assert all(b[0] >= a[1] - 1e-9 for a, b in pairwise(mine))
    for op, (start, _) in spans.items():
        if op.kind == "F" and op.stage:
            assert start >= spans[op._replace(stage=op.stage - 1)][1] - 1e-9
        if op.kind == "B" and op.stage + 1 < count:
            assert start >= spans[op._replace(stage=op.stage + 1)][1] - 1e-9
        if op.kind in "BW":
            assert start >= spans[op._replace(kind="F" if op.kind == "B" else "B")][1] - 1e-9


@given(st.sampled_from(SCHEDULES), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.data())
def test_every_schedule_keeps_the_order_of_data(
    schedule: str, half: int, rounds: int, chunks: int, data: st.DataObject
) -> None:
    devices, micro_batches = 2 * half, 2 * half * rounds
    count = devices * (chunks if schedule == "interleaved" else 1)
    seconds = st.lists(st.floats(0, 3), min_size=count, max_size=count)
    forward, backward, weight = (np.array(data.draw(seconds)) for _ in range(3))
    stages = Stages(forward, backward, weight, data.draw(st.floats(0, 1)))
    found = simulate(schedule, devices, micro_batches, stages)
    _check(found, stages, micro_batches, split=schedule in ("zb-h1", "dualpipe"))
    work = (stages.forward_s + stages.backward_s + stages.weight_s).sum() * micro_batches
    assert found.busy_s.sum() == pytest.approx(work)


def test_layers_are_split_so_that_the_slowest_stage_is_fastest() -> None:
    costs, before, after = [1.0, 2, 1, 1, 3, 1, 1, 1], 0.5, 2.5
    found = split_layers(costs, 3, before, after)

    def slowest(counts: tuple[int, ...]) -> float:
        cuts = np.cumsum([0, *counts])
        sums = [sum(costs[a:b]) for a, b in pairwise(cuts)]
        return max(sums[0] + before, *sums[1:-1], sums[-1] + after)

    every = [np.diff([0, *cut, len(costs)]) for cut in combinations(range(1, len(costs)), 2)]
    assert slowest(found) == min(slowest(tuple(counts)) for counts in every)
    assert sum(found) == len(costs)


def test_a_head_takes_layers_off_the_last_stage() -> None:
    counts = split_layers([1.0] * 30, 4, 0.5, 3.0)
    assert counts[-1] < counts[0]
    assert split_layers([1.0] * 8, 4) == (2, 2, 2, 2)


@pytest.mark.parametrize(
    ("schedule", "devices", "micro_batches", "nearest"),
    [
        ("interleaved", 4, 6, "8 micro-batches"),
        ("dualpipe", 3, 4, "on 4 stages"),
        ("dualpipe", 4, 5, "6 micro-batches"),
    ],
)
def test_what_cannot_run_names_the_nearest_that_can(
    schedule: str, devices: int, micro_batches: int, nearest: str
) -> None:
    with pytest.raises(InfeasibleError, match=nearest):
        simulate(schedule, devices, micro_batches, Stages.even(devices, 1, 1, 1))


def test_bad_input_is_refused() -> None:
    good = Stages.even(4, 1, 1, 1)
    with pytest.raises(InputError, match="1f1b"):
        simulate("1f1", 4, 8, good)
    with pytest.raises(InputError, match="at least 1"):
        simulate("1f1b", 4, 0, good)
    with pytest.raises(InputError, match="at least 0 s"):
        simulate("1f1b", 4, 8, Stages.even(4, -1, 1, 1))
    with pytest.raises(InputError, match="multiple of 3"):
        simulate("interleaved", 3, 6, good)
    with pytest.raises(InputError, match="operations"):
        simulate("1f1b", 64, 100_000, Stages.even(64, 1, 1, 1))
    with pytest.raises(InfeasibleError, match="nearest miss: 2 stages"):
        split_layers([1.0, 1.0], 3)
