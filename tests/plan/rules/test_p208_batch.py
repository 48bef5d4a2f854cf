"""P208: micro-batches and the bubble."""

import pytest
from tests.plan.reviews import facts, finding, number, verdict


def test_no_pipeline_passes() -> None:
    found = finding(facts(), "P208")
    assert (str(found.verdict), found.value) == ("pass", None)


def test_a_short_pipeline_with_many_micro_batches_passes() -> None:
    assert verdict(facts({"pp": 2, "zero": 0}), "P208", 10) == "pass"


def test_few_micro_batches_leave_a_bubble_and_its_price() -> None:
    of = facts({"pp": 8, "zero": 0}, sequences=32)
    found = finding(of, "P208")
    assert str(found.verdict) == "warn"
    assert number(found.value) == pytest.approx(100 * number(of.terms["bubble"]) / number(of.step))
    assert number(found.cost.seconds) == pytest.approx(number(of.terms["bubble"]))


def test_uneven_stages_are_said() -> None:
    assert "do not divide" in finding(facts({"pp": 2, "zero": 0}, model={"layers": 33}), "P208").sentence
