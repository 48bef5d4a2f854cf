"""P219: chips without work."""

import pytest
from tests.plan.reviews import facts, finding, number


def test_all_chips_pass() -> None:
    found = finding(facts(), "P219")
    assert (str(found.verdict), number(found.value)) == ("pass", 0)


def test_idle_chips_are_billed() -> None:
    of = facts({"dp": 16}, price={"dollars_per_chip_hour": 2.0})
    found = finding(of, "P219")
    assert (str(found.verdict), number(found.value)) == ("warn", 50)
    steps = -(-1e12 // (256 * 4096))
    hours = number(of.step) * steps * 32 / 3600
    assert number(found.cost.chip_hours) == pytest.approx(hours)
    assert number(found.cost.dollars) == pytest.approx(2 * hours)
