"""P107: decades beyond the runs behind the law."""

import math

import pytest
from tests.plan.studies import finding, number, plan


def test_warns_beyond_a_decade() -> None:
    made = plan()
    found = finding(made, "P107")
    assert str(found.verdict) == "warn"
    assert number(found.value) == pytest.approx(math.log10(number(made.cluster.compute) / 1.3e22))
    assert "read loss differences as order of magnitude" in found.sentence


def test_a_budget_inside_the_range() -> None:
    found = finding(plan({"chips": "8xH100", "days": 3}), "P107")
    assert (str(found.verdict), number(found.value)) == ("pass", 0)
    assert found.sentence.startswith("The budget is not above the largest run")


def test_a_budget_within_a_decade() -> None:
    found = finding(plan({"chips": "100xH100", "days": 10}), "P107")
    assert str(found.verdict) == "pass"
    assert 0 < number(found.value) < 1
    assert "decades above" in found.sentence
    assert "order of magnitude" not in found.sentence


@pytest.mark.parametrize("law", ["hoffmann", "busbridge"])
def test_unknown_where_no_range_of_compute_is_known(law: str) -> None:
    found = finding(plan(laws=[law]), "P107")
    assert (str(found.verdict), found.value) == ("unknown", None)


def test_the_threshold_moves_the_verdict() -> None:
    assert [str(finding(plan(), "P107", limit).verdict) for limit in (2, 1.5)] == ["pass", "warn"]
