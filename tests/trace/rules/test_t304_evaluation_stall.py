"""T304: stalls of evaluations."""

import pytest
from tests.trace.charts import of_log, stalled, steady
from tests.trace.runs import finding, number


def test_a_phase_that_carries_the_stall_fails() -> None:
    found = finding(stalled("evaluation", 50, 40.0), "T304")
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == pytest.approx(40.0 / 50, rel=0.01)
    assert number(found.cost.mfu_points) > 0
    assert number(found.cost.chip_hours) == pytest.approx(40.0 / 50 / 15 * 256 * 720, rel=0.01)
    assert "every 50 steps" in found.sentence


def test_a_steady_log_passes() -> None:
    assert str(finding(of_log(steady()), "T304").verdict) == "pass"


def test_a_stall_of_another_cause_passes() -> None:
    assert str(finding(stalled("checkpoint", 50, 40.0), "T304").verdict) == "pass"


def test_the_threshold_moves_the_verdict() -> None:
    made = stalled("evaluation", 50, 40.0)
    share = number(finding(made, "T304").value)
    assert [str(finding(made, "T304", share + d).verdict) for d in (0.1, -0.1)] == ["pass", "fail"]


def test_a_mark_names_it() -> None:
    x = steady()
    x[49::50] += 40
    found = finding(of_log(x, marks={"evaluation": list(range(49, 600, 50))}), "T304")
    assert str(found.verdict) == "fail"
    assert "logged as evaluation" in found.sentence
