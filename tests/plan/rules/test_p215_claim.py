"""P215: the claim against the expectation."""

import pytest
from tests.plan.reviews import facts, finding, number

from ridgeline.plan.prelaunch.review_facts import ReviewFacts


def at(share: float) -> ReviewFacts:
    return facts(claim={"mfu": share / 100, "provenance": "folklore"})


def test_inside_the_interval_passes() -> None:
    middle = number(facts().mfu)
    found = finding(at(middle), "P215")
    assert (str(found.verdict), found.fix) == ("pass", "")


def test_above_the_interval_costs_what_the_schedule_lacks() -> None:
    of = facts(claim={"mfu": 0.99})
    found = finding(of, "P215")
    assert str(found.verdict) == "fail"
    assert number(found.cost.mfu_points) == pytest.approx(99 - number(of.mfu))
    assert number(found.cost.seconds) == pytest.approx(number(of.ideal) * (100 / number(of.mfu) - 100 / 99))


def test_between_the_intervals_warns() -> None:
    ends = facts().expected
    between = (number(ends.high) + number(ends.high95)) / 2
    found = finding(at(between), "P215")
    assert str(found.verdict) == "warn"
    assert "above the 80% interval" in found.sentence


def test_far_below_warns_without_a_cost() -> None:
    found = finding(facts(claim={"mfu": 0.01}), "P215")
    assert (str(found.verdict), found.cost.mfu_points) == ("warn", None)
    assert "below" in found.sentence


def test_unknown_without_a_claim() -> None:
    assert str(finding(facts(), "P215").verdict) == "unknown"
