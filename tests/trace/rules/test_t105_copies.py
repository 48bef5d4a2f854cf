"""T105: copies alone on the device."""

import pytest
from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job
from tests.trace.synthetic import Table

from ridgeline.trace.context import RunContext
from ridgeline.trace.events import Kind, Run
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l0 import run_buckets

FLAW = Scene(fill=Kind.H2D)


def test_planted() -> None:
    found = finding(job(FLAW), "T105")
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == pytest.approx(900e-6, rel=0.02)
    assert number(found.value) == pytest.approx(9, rel=0.02)
    assert found.cost.seconds is not None
    assert found.cost.seconds.name == "lost.exposed_copy"


@pytest.mark.parametrize("other", [None, Scene(fill=Kind.COMPUTE)])
def test_not_planted(other: Scene | None) -> None:
    found = finding(job(other), "T105")
    assert (str(found.verdict), found.cost.seconds) == ("pass", None)


def test_the_threshold_moves_the_verdict() -> None:
    assert [str(finding(job(FLAW), "T105", limit).verdict) for limit in (5, 20)] == ["fail", "pass"]


def test_one_rank_of_two_is_named() -> None:
    found = finding(job(None, FLAW), "T105")
    assert "rank1 most, with" in found.sentence
    assert number(found.value) == pytest.approx(4.5, rel=0.02)


def test_copy_bound_is_said() -> None:
    made = Table()
    made.work("gemm", 0, 100, launch=-10)
    made.copy(100, 900, launch=-5)
    run = Run((made.build(),), (0,))
    found = finding(TraceFacts(RunContext(), run=run, l0=run_buckets(run)), "T105")
    assert "copy-bound" in found.sentence
    assert "copy-bound" not in finding(job(FLAW), "T105").sentence
