"""T103: a queue drained by a synchronisation."""

import pytest
from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job

from ridgeline.trace.events import Category

FLAW = Scene(host=[("cudaDeviceSynchronize", Category.RUNTIME)])


def test_planted() -> None:
    found = finding(job(FLAW), "T103")
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == pytest.approx(900e-6, rel=0.02)
    assert number(found.value) == pytest.approx(9, rel=0.02)
    assert found.cost.seconds is not None
    assert found.cost.seconds.name == "lost.sync_gap"


@pytest.mark.parametrize("other", [None, Scene()])
def test_not_planted(other: Scene | None) -> None:
    found = finding(job(other), "T103")
    assert (str(found.verdict), found.cost.seconds) == ("pass", None)


def test_the_threshold_moves_the_verdict() -> None:
    assert [str(finding(job(FLAW), "T103", limit).verdict) for limit in (5, 20)] == ["fail", "pass"]


def test_one_rank_of_two_is_named() -> None:
    found = finding(job(None, FLAW), "T103")
    assert "rank1 most, with" in found.sentence
    assert number(found.value) == pytest.approx(4.5, rel=0.02)
