"""T303: stalls of checkpoints."""

import pytest
from tests.trace.charts import of_log, stalled, steady
from tests.trace.runs import finding, number


def test_a_phase_that_carries_the_stall_fails() -> None:
    found = finding(stalled("save_checkpoint", 50, 40.0), "T303")
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == pytest.approx(40.0 / 50, rel=0.01)
    assert number(found.cost.mfu_points) > 0
    assert number(found.cost.chip_hours) == pytest.approx(40.0 / 50 / 15 * 256 * 720, rel=0.01)
    assert "every 50 steps" in found.sentence


def test_a_steady_log_passes() -> None:
    assert str(finding(of_log(steady()), "T303").verdict) == "pass"


def test_a_stall_of_another_cause_passes() -> None:
    assert str(finding(stalled("validation", 50, 40.0), "T303").verdict) == "pass"


def test_the_threshold_moves_the_verdict() -> None:
    made = stalled("save_checkpoint", 50, 40.0)
    share = number(finding(made, "T303").value)
    assert [str(finding(made, "T303", share + d).verdict) for d in (0.1, -0.1)] == ["pass", "fail"]
