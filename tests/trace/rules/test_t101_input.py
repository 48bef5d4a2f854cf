"""T101: time under a data loader."""

import pytest
from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job

from ridgeline.trace.events import Category
from ridgeline.trace.facts import TraceFacts

FLAW = Scene(host=[("enumerate(DataLoader)#_Iter.__next__", Category.ANNOTATION)])


def test_planted() -> None:
    found = finding(job(FLAW), "T101")
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == pytest.approx(880e-6, rel=0.02)
    assert number(found.value) == pytest.approx(8.8, rel=0.02)
    assert found.cost.seconds is not None
    assert found.cost.seconds.name == "lost.input_gap"


@pytest.mark.parametrize("other", [None, Scene()])
def test_not_planted(other: Scene | None) -> None:
    found = finding(job(other), "T101")
    assert (str(found.verdict), found.cost.seconds) == ("pass", None)


def test_the_threshold_moves_the_verdict() -> None:
    assert [str(finding(job(FLAW), "T101", limit).verdict) for limit in (5, 20)] == ["fail", "pass"]


def test_one_rank_of_two_is_named() -> None:
    found = finding(job(None, FLAW), "T101")
    assert "rank1 most, with" in found.sentence
    assert number(found.value) == pytest.approx(4.4, rel=0.02)


def test_unknown_without_a_trace() -> None:
    found = finding(TraceFacts(), "T101")
    assert (str(found.verdict), found.fix) == ("unknown", "Record a profile of three steps.")
