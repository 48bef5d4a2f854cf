"""P203: the vocabulary on one chip."""

import pytest
from tests.plan.reviews import facts, finding, incident, number, verdict


def test_a_multiple_passes() -> None:
    assert verdict(facts(), "P203") == "pass"


def test_the_incident() -> None:
    found = finding(incident(), "P203")
    assert str(found.verdict) == "warn"
    assert number(found.value) == pytest.approx(0.33, abs=0.01)
    assert "163,840" in found.fix  # 256 chips of five tiles of 128


def test_a_prime_vocabulary_is_padded_to_a_tile_on_every_chip() -> None:
    of = facts(model={"vocab": 50257}, plan={"tp": 8})
    found = finding(of, "P203", 0.01)
    assert str(found.verdict) == "warn"
    assert "51,200" in found.fix
    assert number(found.cost.seconds) > 0
