"""P105: the MFU of the plan against that of billed hours."""

import pytest
from tests.plan.studies import finding, number, plan

from ridgeline.core.catalog import constant


@pytest.mark.parametrize(("mfu", "verdict"), [(0.25, "pass"), (0.39, "pass"), (0.391, "warn"), (0.6, "warn")])
def test_verdicts(mfu: float, verdict: str) -> None:
    found = finding(plan({"mfu": mfu}), "P105")
    assert str(found.verdict) == verdict
    assert number(found.value) == mfu


def test_the_cost_is_the_rent_that_buys_nothing() -> None:
    found = finding(plan({"mfu": 0.52, "dollars_per_chip_hour": 2.5}), "P105")
    assert number(found.cost.dollars) == pytest.approx(1_800_000 * (1 - 0.39 / 0.52))
    assert finding(plan({"mfu": 0.3}), "P105").cost.dollars is None


def test_without_a_price_there_is_no_cost() -> None:
    found = finding(plan({"chips": "512xGaudi2", "mfu": 0.6}), "P105")
    assert (str(found.verdict), found.cost.dollars) == ("warn", None)


def test_the_threshold_moves_verdict_and_cost() -> None:
    assert str(finding(plan(), "P105", 0.5).verdict) == "pass"
    found = finding(plan({"dollars_per_chip_hour": 2.5}), "P105", 0.2)
    assert str(found.verdict) == "warn"
    assert number(found.cost.dollars) == pytest.approx(900_000)


def test_the_low_end_of_the_budget() -> None:
    least = next(q for q in finding(plan(), "P105").cites if q.name == "compute.low")
    assert number(least) == pytest.approx(number(plan().cluster.compute) * 0.14 / 0.40)


def test_the_default_threshold_is_the_published_high_end() -> None:
    limit = finding(plan(), "P105").threshold
    assert number(limit) == number(constant("goodput.billed_mfu.high"))
