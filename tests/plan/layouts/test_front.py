"""Simplicity, the Pareto front and one plan a mesh."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgeline.plan.layouts.front import best_of_each_mesh, front, knobs, order, without_twins
from ridgeline.plan.steps.layout import Layout

PLANS = st.lists(
    st.tuples(st.floats(0.1, 100), st.floats(0, 0.999), st.integers(0, 6)), min_size=1, max_size=40
)  # step, headroom, knobs


def test_knobs_count_axes_and_switches() -> None:
    rows: list[dict[str, Any]] = [
        {},
        {"dp": 8},
        {"tp": 8, "dp": 8},
        {"tp": 8, "dp": 8, "sequence_parallel": 1, "zero": 1},
        {"dp": 8, "zero": 3},
        {"dp": 8, "zero": 3, "shard": 4, "recompute": "full"},
        {"pp": 4, "schedule": "zb-h1"},
        {"pp": 4, "chunks": 2},
        {"tp": 2, "dp": 8, "ep": 8, "etp": 2},
    ]
    assert [int(knobs(Layout.of(**row))[0]) for row in rows] == [0, 1, 2, 3, 2, 4, 2, 2, 4]


def test_of_equally_fast_plans_the_simpler_comes_first() -> None:
    step, simple = np.array([1.0001, 1.0, 2.0]), np.array([1, 3, 0])
    assert order(step, simple).tolist() == [0, 1, 2]


def bins(plan: tuple[float, float, int]) -> tuple[float, float, int]:
    """The steps in which time and headroom count: smaller is better in all three."""
    return (float(np.floor(np.log(plan[0]) / 1e-3)), -float(np.floor(plan[1] / 0.05)), plan[2])


@settings(max_examples=200)
@given(rows=PLANS)
def test_front_is_what_none_beats(rows: list[tuple[float, float, int]]) -> None:
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    kept = front(*columns).tolist()
    found = {bins(rows[index]) for index in kept}
    every = {bins(row) for row in rows}
    best = {
        one for one in every if not any(o != one and all(a <= b for a, b in zip(o, one, strict=True)) for o in every)
    }
    assert found == best
    assert len(kept) == len(found)


def test_a_twin_with_one_more_knob_is_left_out() -> None:
    step, headroom = np.array([1.0, 1.0, 1.0005, 1.0005, 1.1]), np.array([0.1, 0.1, 0.3, 0.1, 0.1])
    simple = np.array([3, 4, 4, 2, 5])
    assert without_twins(np.arange(5), step, headroom, simple).tolist() == [0, 2, 3, 4]


def test_one_plan_of_every_mesh_in_order() -> None:
    layouts = Layout.of(tp=[1, 2, 1, 2], dp=[8, 4, 8, 4], micro_batch=[1, 1, 2, 2])
    assert best_of_each_mesh(layouts, np.array([3, 2, 1, 0])).tolist() == [3, 2]
