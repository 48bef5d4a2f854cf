"""P201: heads against the lanes."""

import pytest
from tests.plan.reviews import facts, finding, incident, number, verdict

NARROW = {"heads": 64, "head_dim": 64}


def test_a_full_head_passes() -> None:
    found = finding(facts(), "P201")
    assert (str(found.verdict), number(found.value)) == ("pass", 0)


def test_the_incident_by_the_tile() -> None:
    found = finding(incident(), "P201")
    assert str(found.verdict) == "warn"
    assert number(found.value) == pytest.approx(2.74, abs=0.01)
    assert "84 of 128" in found.fix


def test_a_measured_head_dimension_has_a_measured_price() -> None:
    of = facts(model=NARROW)
    found = finding(of, "P201")
    assert str(found.verdict) == "warn"
    assert "by measured attention times" in found.sentence
    assert 0 < number(found.cost.seconds) < number(of.terms["attention"])


def test_elsewhere_the_price_is_that_of_padding_in_this_step() -> None:
    of = incident()
    found = finding(of, "P201")
    assert "if the kernel pads" in found.sentence
    share = number(of.geometry.of("head_dim").share) / 100  # type: ignore[union-attr]
    assert number(found.cost.mfu_points) == pytest.approx(number(of.mfu) * share * (128 / 96 - 1))


def test_the_threshold_moves_the_verdict() -> None:
    of = facts(model=NARROW)
    value = number(finding(of, "P201").value)
    assert verdict(of, "P201", value) == "pass"
    assert verdict(of, "P201", value * 0.99) == "warn"


def test_a_width_without_whole_heads_lowers_the_expectation() -> None:
    found = finding(facts(model={"heads": 34, "kv_heads": 2, "head_dim": 96}, plan={"tp": 2}), "P201")
    assert "next model" in found.fix


def test_the_tile_is_the_teams_where_it_is_given() -> None:
    of = facts(model={"heads": 64, "head_dim": 48, "kv_heads": 8}, geometry={"head_tile": 16})
    assert verdict(of, "P201") == "pass"
