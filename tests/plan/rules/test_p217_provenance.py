"""P217: where the claim is from."""

import pytest
from tests.plan.reviews import against, facts, finding, findings, incident


@pytest.mark.parametrize(
    ("provenance", "expected"),
    [("folklore", "warn"), ("roofline", "warn"), ("comparable", "warn"), ("pilot", "pass"), ("unknown", "unknown")],
)
def test_verdicts(provenance: str, expected: str) -> None:
    found = finding(facts(claim={"mfu": "40%", "provenance": provenance}), "P217")
    assert str(found.verdict) == expected
    assert bool(found.fix) == (expected != "pass")


def test_a_comparable_that_is_given_passes() -> None:
    of = against(incident(claim={"mfu": "50%", "provenance": "comparable"}))
    assert str(finding(of, "P217").verdict) == "pass"


def test_nothing_without_a_claim() -> None:
    assert findings(facts(), "P217") == []
