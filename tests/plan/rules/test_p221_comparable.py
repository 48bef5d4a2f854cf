"""P221: the comparable run."""

import pytest
from tests.plan.reviews import against, facts, finding, findings, incident, number


def test_nothing_without_one() -> None:
    assert findings(facts(), "P221") == []


def test_the_incident_is_corrected_by_three_points() -> None:
    of = against(incident(claim={"mfu": "50%", "provenance": "comparable"}))
    found = finding(of, "P221")
    assert str(found.verdict) == "warn"
    assert number(found.value) == pytest.approx(3.07, abs=0.01)
    assert number(found.cost.mfu_points) == number(found.value)


def test_the_same_shape_passes() -> None:
    ours = incident()
    found = finding(against(ours, model=dict(ours.proposal.file.model)), "P221")
    assert str(found.verdict) == "pass"
    assert "differs in nothing" in found.sentence


def test_another_chip_is_not_comparable() -> None:
    ours = incident()
    found = finding(against(ours, model=dict(ours.proposal.file.model), cluster={"chips": "256xH100"}), "P221")
    assert str(found.verdict) == "warn"
    assert "chip" in found.sentence
