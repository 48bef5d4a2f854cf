"""T305: stalls without a cause."""

import pytest
from tests.trace.charts import of_log, steady
from tests.trace.runs import finding, number


def test_a_stall_of_even_length_has_no_named_cause() -> None:
    x = steady()
    x[5::10] += 3
    found = finding(of_log(x), "T305")
    assert str(found.verdict) == "warn"
    assert number(found.cost.seconds) == pytest.approx(0.3, rel=0.01)


def test_a_steady_log_passes() -> None:
    assert str(finding(of_log(steady()), "T305").verdict) == "pass"


def test_a_short_log_is_unknown() -> None:
    assert str(finding(of_log(steady(10)), "T305").verdict) == "unknown"


def test_cheap_stalls_pass_as_one() -> None:
    x = steady() - 13
    x[5::10] += 0.08
    x[6::25] += 0.1
    found = finding(of_log(x), "T305")
    assert str(found.verdict) == "pass"
    assert "every 10 steps" in found.sentence
