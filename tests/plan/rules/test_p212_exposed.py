"""P212: communication that nothing hides."""

import pytest
from tests.plan.reviews import facts, finding, number, verdict


def test_one_chip_exposes_nothing() -> None:
    of = facts({"tp": 1, "sequence_parallel": 0, "zero": 0}, cluster={"chips": "1xH100"}, sequences=4)
    assert verdict(of, "P212") == "pass"


def test_the_share_is_that_of_all_groups() -> None:
    of = facts({"tp": 16})
    found = finding(of, "P212", 1)
    parts = sum(number(term) for name, term in of.terms.items() if name.endswith("_exposed"))
    assert number(found.value) == pytest.approx(100 * parts / number(of.step))
    assert str(found.verdict) == "warn"
    assert number(found.cost.seconds) == pytest.approx(parts)
