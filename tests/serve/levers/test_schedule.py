"""The exact schedule of a pipeline against the closed form and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from ridgeline.arithmetic.latency import pipelined_prefill
from ridgeline.core import quantity
from ridgeline.core.errors import InputError
from ridgeline.serve.levers.schedule import run


def serial_s(compute_s: ArrayLike, transfer_s: ArrayLike) -> float:
    """Seconds with one chunk in flight: every stage and every transfer after the other."""
    compute = np.asarray(compute_s, dtype=np.float64)
    return float(compute.sum() + np.broadcast_to(np.asarray(transfer_s, dtype=np.float64), compute.shape).sum())


def closed(stages: int, chunks: int, compute_s: float, transfer_s: float) -> tuple[float, float]:
    found = pipelined_prefill(
        quantity.given("stages", stages, "1"),
        quantity.given("chunks", chunks, "1"),
        quantity.given("compute", compute_s, "s"),
        quantity.given("transfer", transfer_s, "s"),
    )
    return float(found.serial.base), float(found.pipelined.base)


def test_published_prefill() -> None:
    compute = np.full((4, 8), 0.050)
    assert run(compute, 0.020).makespan_s == pytest.approx(0.550)
    assert run(compute, 0.020, streamed=False).makespan_s == pytest.approx(4 * 0.070 + 7 * 0.050)


@given(st.integers(1, 6), st.integers(1, 12), st.floats(1e-3, 1.0), st.floats(0, 1.0))
def test_equal_stages_take_what_the_closed_form_says(stages: int, chunks: int, compute: float, transfer: float) -> None:
    table = np.full((stages, chunks), compute)
    serial, piped = closed(stages, chunks, compute, transfer)
    assert np.sum(table + transfer) == pytest.approx(serial)
    assert run(table, transfer).makespan_s == pytest.approx(piped)


@given(st.lists(st.floats(0, 1), min_size=6, max_size=6), st.lists(st.floats(0, 1), min_size=6, max_size=6))
def test_nothing_overlaps_that_must_not(compute: list[float], transfer: list[float]) -> None:
    found = run(np.reshape(compute, (2, 3)), np.reshape(transfer, (2, 3)))
    assert np.all(found.compute_start_s[:, 1:] >= found.compute_end_s[:, :-1] - 1e-12)
    assert np.all(found.link_start_s[:, 1:] >= found.link_end_s[:, :-1] - 1e-12)
    assert np.all(found.compute_start_s[1] >= found.link_end_s[0] - 1e-12)
    assert found.makespan_s <= sum(compute) + sum(transfer) + 1e-9
    assert found.makespan_s >= max(np.reshape(compute, (2, 3)).sum(axis=1)) - 1e-12


def test_later_chunks_cost_more() -> None:
    """Chunks of 1, 2, 3 s on two stages: the last one waits for itself, 1 + 2 + 3 + 3."""
    found = run(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]), 0.0)
    assert found.makespan_s == 9.0
    assert found.busy == pytest.approx(12 / 18)


def test_a_row_for_every_bar() -> None:
    table = run(np.ones((2, 3)), 0.5).table("pipeline")
    assert len(table.rows) == 12
    assert table.rows[0][:3] == ("stage 1", "compute", 1)


@pytest.mark.parametrize("compute", [np.ones(3), np.ones((0, 3)), np.array([[1.0, -1.0]]), np.array([[np.nan]])])
def test_refusals(compute: np.ndarray) -> None:
    with pytest.raises(InputError):
        run(compute, 0.0)
