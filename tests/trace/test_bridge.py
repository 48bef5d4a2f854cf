"""The bridge: bars, points three ways, reconciliation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trace.runs import number

from ridgeline.core.case import Case
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import given as specified
from ridgeline.trace.attribution import Cause
from ridgeline.trace.bridge import Bridge, Ends, bridge, reconciled

BUCKETS = {"compute": 9.0, "exposed_comm": 3.6, "host_gap": 1.5, "late_gap": 0.9}
STEP, IDEAL = specified("run.step", 15.0, "s"), specified("step.ideal", 3.75, "s")
EXPECTED, CORRECTED = specified("run.expected_mfu", 50, "%"), specified("expected.corrected", 47, "%")


def built(*causes: Cause, ends: Ends | None = None) -> Bridge:
    return bridge(ends or Ends(STEP, IDEAL, EXPECTED, CORRECTED), BUCKETS, causes)


def test_without_causes_everything_is_unexplained() -> None:
    found = built()
    assert found.bars == ()
    assert number(found.reached) == number(found.observed) == 25
    assert number(found.unexplained) == pytest.approx(15 - 3.75 / 0.47)
    assert reconciled(found, 3) is False


def test_one_cause() -> None:
    found = built(Cause("late", {"exposed_comm": 3.6}))
    (bar,) = found.bars
    assert number(bar.after) == pytest.approx(11.4)
    assert bar.mfu is not None
    gain = 100 * 3.75 * (1 / 11.4 - 1 / 15)
    for way in (bar.mfu.points, bar.mfu.even, bar.mfu.first, bar.mfu.last):
        assert number(way) == pytest.approx(gain)


def test_points_depend_on_the_order_and_even_ones_do_not() -> None:
    one, two = Cause("a", {"compute": 2.0}, confirm_s=60), Cause("b", {"exposed_comm": 3.0}, confirm_s=120)
    again = Cause("a", {"compute": 2.0}, confirm_s=180)
    forward, backward = built(one, two), built(again, two)
    assert [bar.cause.name for bar in forward.bars] == ["a", "b"]
    assert [bar.cause.name for bar in backward.bars] == ["b", "a"]
    first, last = forward.bars[0].mfu, backward.bars[1].mfu
    assert first is not None
    assert last is not None
    assert number(first.points) == pytest.approx(number(first.first))
    assert number(last.points) == pytest.approx(number(last.last))
    assert number(first.even) == pytest.approx(number(last.even))
    assert number(first.first) < number(first.even) < number(first.last)


def test_shared_seconds_are_taken_off_and_said() -> None:
    found = built(Cause("a", {"exposed_comm": 3.0}), Cause("b", {"exposed_comm": 2.0}))
    second = found.bars[1].seconds
    assert number(second) == pytest.approx(0.6)
    assert second.formula == "found - shared"


def test_a_cause_with_nothing_of_its_own_has_no_bar() -> None:
    found = built(Cause("a", {"exposed_comm": 3.6}), Cause("b", {"exposed_comm": 2.0}))
    assert [bar.cause.name for bar in found.bars] == ["a"]


def test_reconciled_is_unknown_without_a_target() -> None:
    found = built(Cause("a", {"compute": 1.0}), ends=Ends(STEP, IDEAL))
    assert reconciled(found, 3) is None
    assert found.unexplained is None
    assert found.bars[0].mfu is not None


def test_without_an_ideal_there_are_seconds_only() -> None:
    found = built(Cause("a", {"compute": 1.0}), ends=Ends(STEP, expected=EXPECTED))
    assert found.bars[0].mfu is None
    assert found.observed is None
    assert number(found.final) == 14


def test_the_plain_expectation_is_the_target_where_none_is_corrected() -> None:
    assert number(built(ends=Ends(STEP, IDEAL, EXPECTED)).target_step) == 7.5


def test_causes_that_explain_too_much_are_said_to() -> None:
    found = built(Cause("a", {"compute": 7.0}), Cause("b", {"exposed_comm": 3.6}))
    assert number(found.unexplained) < 0
    assert reconciled(found, 3) is False


def test_causes_cannot_take_the_whole_step() -> None:
    short = Ends(specified("run.step", 9.0, "s"), IDEAL)
    with pytest.raises(InputError, match="leave some of the 9 s step"):
        built(Cause("a", {"compute": 9.0}), ends=short)


def test_every_quantity_fits_into_one_case() -> None:
    found = built(Cause("a", {"exposed_comm": 3.0}), Cause("b", {"exposed_comm": 2.0}), Cause("c", {"compute": 1.0}))
    case = Case("trace", "test")
    case.add(*found.quantities)
    assert {"bridge.1.seconds", "bridge.3.points_even", "bridge.unexplained", "bridge.mfu.fixed"} <= set(
        case.quantities
    )


@given(st.lists(st.floats(0.01, 1.5), min_size=1, max_size=6), st.permutations(range(6)))
def test_points_sum_to_the_gain_in_every_order(seconds: list[float], rank: list[int]) -> None:
    buckets = {f"b{i}": 2.0 for i in range(len(seconds))}
    causes = [Cause(f"c{i}", {f"b{i}": s}, confirm_s=60.0 * rank[i]) for i, s in enumerate(seconds)]
    found = bridge(Ends(STEP, IDEAL, EXPECTED), buckets, causes)
    gain = number(found.reached) - number(found.observed)
    points = [bar.mfu for bar in found.bars if bar.mfu is not None]
    assert sum(number(p.points) for p in points) == pytest.approx(gain)
    assert sum(number(p.even) for p in points) == pytest.approx(gain)
    explained = sum(number(bar.seconds) for bar in found.bars)
    assert number(found.target_step) + number(found.unexplained) + explained == pytest.approx(15)
    for p in points:
        assert number(p.first) <= number(p.points) * (1 + 1e-9)
        assert number(p.points) <= number(p.last) * (1 + 1e-9)
