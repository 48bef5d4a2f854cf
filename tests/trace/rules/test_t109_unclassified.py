"""T109: kernels of unknown kind."""

import pytest
from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job

from ridgeline.trace.events import Kind


def test_unknown_kernels_warn_without_a_cost() -> None:
    found = finding(job(Scene(fill=Kind.UNCLASSIFIED)), "T109")
    assert (str(found.verdict), found.cost.seconds) == ("warn", None)
    assert number(found.value) == pytest.approx(9)
    assert found.sentence.endswith("of it: fill.")


def test_known_kernels_pass() -> None:
    assert str(finding(job(Scene(fill=Kind.COMPUTE)), "T109").verdict) == "pass"
