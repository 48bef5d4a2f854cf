"""What lost seconds are worth."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace.runs import context, facts, number

from ridgeline.core.quantity import given as specified
from ridgeline.trace.context import RunContext
from ridgeline.trace.cost import cost


def test_every_figure_and_its_name() -> None:
    found = cost(context(), specified("late.seconds", 3.64, "s"))
    assert number(found.mfu_points) == pytest.approx(100 * number(context().ideal) * (1 / 11.36 - 1 / 15))
    assert number(found.chip_hours) == pytest.approx(3.64 / 15 * 256 * 720)
    assert number(found.dollars) == pytest.approx(2.7 * 3.64 / 15 * 256 * 720)
    names = [q.name for q in found.figures.values()]
    assert names == ["late.seconds", "late.seconds.mfu_points", "late.seconds.chip_hours", "late.seconds.dollars"]


def test_what_the_context_lacks_is_none() -> None:
    lost = specified("late.seconds", 1.0, "s")
    assert list(cost(RunContext(), lost).figures) == ["seconds"]
    assert list(cost(context(without=("model",)), lost).figures) == ["seconds", "chip_hours", "dollars"]
    no_price = context(machine={"days_per_month": None})
    assert list(cost(no_price, lost).figures) == ["seconds", "mfu_points"]


def test_nothing_lost_costs_nothing_more_than_its_seconds() -> None:
    assert list(cost(context(), specified("late.seconds", 0, "s")).figures) == ["seconds"]


def test_more_than_the_step_has_no_points() -> None:
    assert cost(context(), specified("late.seconds", 15.0, "s")).mfu_points is None


def test_the_step_may_come_from_a_trace() -> None:
    lost, step = specified("late.seconds", 1.0, "s"), specified("trace.step", 10.0, "s")
    found = cost(context(without=("observed",)), lost, step)
    assert number(found.chip_hours) == pytest.approx(0.1 * 256 * 720)
    assert facts(context()).cost(lost).figures.keys() == found.figures.keys()


@settings(max_examples=30)
@given(st.floats(0.01, 7.0), st.floats(0.01, 7.0))
def test_points_grow_faster_than_seconds(first: float, second: float) -> None:
    one, two, both = (
        number(cost(context(), specified("lost", value, "s")).mfu_points) for value in (first, second, first + second)
    )
    assert both > one + two
