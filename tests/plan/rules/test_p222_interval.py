"""P222: how wide the expectation is."""

import pytest
from tests.plan.reviews import facts, finding, number, verdict


def test_the_width_is_that_of_the_interval() -> None:
    of = facts()
    found = finding(of, "P222")
    ends = of.expected
    width = 100 * (number(ends.high) - number(ends.low)) / number(ends.mfu)
    assert number(found.value) == pytest.approx(width)


def test_the_threshold_moves_the_verdict() -> None:
    of = facts()
    width = number(finding(of, "P222").value)
    assert (verdict(of, "P222", width), verdict(of, "P222", width - 1)) == ("pass", "warn")
