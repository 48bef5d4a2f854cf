"""P109: the loss that a deviation gives up, said as compute."""

import pytest
from tests.plan.studies import finding, number, plan, product_plan


def test_the_optimum_gives_up_nothing() -> None:
    found = finding(plan(), "P109")
    assert (str(found.verdict), found.value, found.cost.dollars) == ("pass", None, None)


def test_a_deviation_is_a_warning_with_its_cost() -> None:
    made = product_plan(budget={"dollars_per_chip_hour": 2.5})
    found = finding(made, "P109")
    worth = made.choice.worth["besiroglu-2024"]
    assert str(found.verdict) == "warn"
    assert found.value is worth
    assert number(worth) > 50
    assert number(found.cost.dollars) == pytest.approx(1_800_000 * (1 - number(worth, "1")))
    assert "under hoffmann-2022)" in found.sentence
    assert found.margin is not None
    assert found.margin > 0


def test_below_half_of_the_compute_it_fails() -> None:
    found = finding(product_plan(choice="8B"), "P109")
    assert str(found.verdict) == "fail"
    assert number(found.value) < 50
    assert found.fix == "Take a larger candidate."
    assert found.margin is not None
    assert found.margin < 0


def test_the_threshold_moves_the_verdict() -> None:
    assert [str(finding(product_plan(), "P109", limit).verdict) for limit in (60, 65)] == ["warn", "fail"]


def test_without_a_price_there_is_no_cost() -> None:
    found = finding(plan({"chips": "2500xGaudi2"}, choice="30B"), "P109")
    assert (str(found.verdict), found.cost.dollars) == ("warn", None)


def test_a_single_law_names_no_other() -> None:
    assert "(" not in finding(plan(laws=["hoffmann"], choice="30B"), "P109").sentence
