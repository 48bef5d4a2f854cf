"""T306: single slow steps."""

import pytest
from tests.trace.charts import of_log, steady
from tests.trace.runs import finding, number


def test_slow_steps_warn_and_are_named() -> None:
    x = steady()
    x[[31, 122, 299, 410]] += 60
    found = finding(of_log(x), "T306")
    assert str(found.verdict) == "warn"
    assert "(steps 31, 122, 299, 410)" in found.sentence
    assert number(found.cost.seconds) == pytest.approx(0.4, rel=0.02)


def test_a_steady_log_passes_and_costs_nothing() -> None:
    found = finding(of_log(steady()), "T306")
    assert str(found.verdict) == "pass"
    assert found.cost.figures == {}


def test_the_threshold_moves_the_verdict() -> None:
    x = steady()
    x[[31, 122]] += 20
    share = number(finding(of_log(x), "T306").value)
    assert [str(finding(of_log(x), "T306", share + d).verdict) for d in (0.1, -0.1)] == ["pass", "warn"]
