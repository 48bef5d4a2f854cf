"""T110: gaps without a cause."""

import pytest
from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job


def test_a_gap_before_unlinked_work_is_unknown() -> None:
    found = finding(job(Scene(launch=None)), "T110")
    assert str(found.verdict) == "unknown"
    assert number(found.cost.seconds) == pytest.approx(900e-6)


def test_a_gap_with_a_cause_passes() -> None:
    assert str(finding(job(Scene()), "T110").verdict) == "pass"
