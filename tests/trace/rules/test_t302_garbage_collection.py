"""T302: stalls of the garbage collector."""

import numpy as np
import pytest
from tests.trace.charts import of_log, stalled, steady
from tests.trace.runs import finding, number


def test_a_phase_that_carries_the_stall_fails() -> None:
    found = finding(stalled("gc", 30, 5.0), "T302")
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == pytest.approx(5.0 / 30, rel=0.01)
    assert number(found.cost.mfu_points) > 0
    assert number(found.cost.chip_hours) == pytest.approx(5.0 / 30 / 15 * 256 * 720, rel=0.01)
    assert "every 30 steps" in found.sentence


def test_a_steady_log_passes() -> None:
    assert str(finding(of_log(steady()), "T302").verdict) == "pass"


def test_a_stall_of_another_cause_passes() -> None:
    assert str(finding(stalled("data", 30, 5.0), "T302").verdict) == "pass"


def test_the_threshold_moves_the_verdict() -> None:
    made = stalled("gc", 30, 5.0)
    share = number(finding(made, "T302").value)
    assert [str(finding(made, "T302", share + d).verdict) for d in (0.1, -0.1)] == ["pass", "fail"]


def test_gaps_that_drift_warn() -> None:
    x = steady()
    x[np.cumsum(np.round(np.random.default_rng(1).normal(23.5, 1, 24)).astype(int))] += 10
    found = finding(of_log(x), "T302")
    assert str(found.verdict) == "warn"
    assert "every about 23" in found.sentence
