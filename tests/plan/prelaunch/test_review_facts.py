"""The predicted step and what a second is worth."""

import pytest
from tests.plan.reviews import facts, incident, number

from ridgeline.core.quantity import given


def test_terms_add_up_to_the_step_and_the_mfu_follows() -> None:
    of = facts()
    assert number(of.step) == pytest.approx(sum(number(term) for term in of.terms.values()))
    assert number(of.step) == pytest.approx(float(of.predicted.steps.step_s[0]))
    assert number(of.mfu) == pytest.approx(100 * number(of.ideal) / number(of.step))


def test_intervals_are_nested_and_hold_the_middle() -> None:
    e = facts().expected
    ends = [number(q) for q in (e.low95, e.low, e.mfu, e.high, e.high95)]
    assert ends == sorted(ends)
    steps = [number(q) for q in (e.step_low95, e.step_low, e.step, e.step_high, e.step_high95)]
    assert steps == sorted(steps)
    assert number(e.low) == pytest.approx(number(e.mfu) * number(e.step) / number(e.step_high))


def test_lost_seconds_are_points_and_money() -> None:
    of = facts(price={"dollars_per_chip_hour": 2.0})
    seconds = given("test.lost", 0.1 * number(of.step), "s")
    cost = of.lost(seconds)
    assert number(cost.mfu_points) == pytest.approx(number(of.mfu) / 9)
    steps = -(-1e12 // (256 * 4096))
    assert number(cost.chip_hours) == pytest.approx(number(seconds) * steps * 64 / 3600)
    assert number(cost.dollars) == pytest.approx(2 * number(cost.chip_hours))


def test_points_and_seconds_agree() -> None:
    of = facts()
    by_points = of.points(given("test.points", 2.0, "%"))
    back = of.lost(given("test.back", number(by_points.seconds), "s"))
    assert number(back.mfu_points) == pytest.approx(2.0)


def test_what_is_not_known_has_no_cost() -> None:
    of = facts(base={"sequences": 256, "seq": 4096, "cluster": {"chips": "64xH100"}})
    cost = of.lost(given("test.lost", 0.01, "s"))
    assert (cost.chip_hours, cost.dollars) == (None, None)
    assert number(cost.mfu_points) > 0


def test_seconds_longer_than_the_step_are_only_seconds() -> None:
    of = facts()
    assert of.lost(given("test.lost", 2 * number(of.step), "s")).mfu_points is None


def test_instead_is_the_difference_of_two_reviews() -> None:
    of, other = facts(), facts({"recompute": "full"})
    points = of.instead("test.full", layouts=other.proposal.layouts)
    assert number(points) == pytest.approx(number(other.mfu) - number(of.mfu))
    assert number(points) < 0


def test_memory_parts_add_up() -> None:
    of = facts()
    assert number(of.memory) == pytest.approx(float(of.held.total_bytes[0]))


def test_a_device_without_a_surface_is_assumed() -> None:
    assert (facts().kind, incident().kind) == ("measured", "assumed")


def test_claims_are_in_their_own_convention() -> None:
    assert facts().convention.name == "6n"
    assert facts(claim={"mfu": "50%", "convention": "palm"}).convention.name == "palm"
    assert number(facts(claim={"mfu": "50%", "convention": "palm"}).mfu) > number(facts().mfu)
