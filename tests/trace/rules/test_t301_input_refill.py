"""T301: stalls of the input."""

import numpy as np
import pytest
from tests.trace.charts import of_log, stalled, steady
from tests.trace.runs import finding, number


def test_a_phase_that_carries_the_stall_fails() -> None:
    found = finding(stalled("data_loading", 8, 6.0), "T301")
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == pytest.approx(6.0 / 8, rel=0.01)
    assert number(found.cost.mfu_points) > 0
    assert number(found.cost.chip_hours) == pytest.approx(6.0 / 8 / 15 * 256 * 720, rel=0.01)
    assert "every 8 steps" in found.sentence


def test_a_steady_log_passes() -> None:
    assert str(finding(of_log(steady()), "T301").verdict) == "pass"


def test_a_stall_of_another_cause_passes() -> None:
    assert str(finding(stalled("checkpoint", 8, 6.0), "T301").verdict) == "pass"


def test_the_threshold_moves_the_verdict() -> None:
    made = stalled("data_loading", 8, 6.0)
    share = number(finding(made, "T301").value)
    assert [str(finding(made, "T301", share + d).verdict) for d in (0.1, -0.1)] == ["pass", "fail"]


def test_the_shape_alone_warns() -> None:
    x = steady()
    x[::8] += np.abs(np.random.default_rng(1).normal(5, 2, 75))
    found = finding(of_log(x), "T301")
    assert str(found.verdict) == "warn"
    assert "(likely)" in found.sentence
