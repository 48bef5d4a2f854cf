"""P106: how far the laws lie apart."""

import pytest
from tests.plan.studies import finding, number, plan


def test_published_laws_disagree_at_this_budget() -> None:
    made = plan({"dollars_per_chip_hour": 2.5})
    found = finding(made, "P106")
    sizes = [number(best.params) for best in made.optima.values()]
    assert str(found.verdict) == "warn"
    assert number(found.value) == pytest.approx(max(sizes) / min(sizes))
    assert [number(q) for q in found.cites] == [min(sizes), max(sizes)]
    worst = min(number(q, "1") for q in made.optimum.worth.values())
    assert number(found.cost.dollars) == pytest.approx(1_800_000 * (1 - worst))


def test_laws_that_agree_cost_nothing() -> None:
    found = finding(plan(laws=["20x", "besiroglu"]), "P106")
    assert (str(found.verdict), found.cost.dollars) == ("pass", None)


def test_unknown_with_a_single_law() -> None:
    found = finding(plan(laws=["hoffmann"]), "P106")
    assert str(found.verdict) == "unknown"
    assert found.fix


def test_the_threshold_moves_the_verdict() -> None:
    assert [str(finding(plan(), "P106", limit).verdict) for limit in (3, 1.5)] == ["pass", "warn"]


def test_without_a_price_there_is_no_cost() -> None:
    found = finding(plan({"chips": "5000xGaudi2"}), "P106")
    assert (str(found.verdict), found.cost.dollars) == ("warn", None)
