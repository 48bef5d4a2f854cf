"""T152: the rank that the others wait for."""

from dataclasses import replace

import pytest
from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job

from ridgeline.trace.events import Category
from ridgeline.trace.levels.l4 import RankSpread, RankState, Verdict, rank_spread
from ridgeline.trace.rank_findings import carrier

WAITS = Scene(comm=[(9_000_000, 900_000, {})], launch=70)
LATE = Scene(host=[("DataLoader", Category.ANNOTATION)], comm=[(9_800_000, 100_000, {})], launch=9_890_000)


def test_the_late_rank_is_named_with_its_cause() -> None:
    found = finding(job(WAITS, WAITS, LATE), "T152")
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == pytest.approx(800e-6)
    assert "rank2" in found.sentence
    assert "arrives last in 4 of 4 calls" in found.sentence
    assert "longer idle than the others with input" in found.sentence


def test_the_cost_is_said_once() -> None:
    """T401 judges the same rank by more: its cost stands, and the sentence here points to it."""
    of = job(WAITS, WAITS, LATE, steps=12)
    of = replace(of, l4=rank_spread(buckets=of.l0, collectives=of.l1))
    here, there = finding(of, "T152"), finding(of, "T401")
    assert (str(here.verdict), here.cost.seconds) == ("fail", None)
    assert here.sentence.endswith("T401 has the cost of this wait.")
    assert number(there.cost.seconds) == pytest.approx(800e-6)


@pytest.mark.parametrize(
    ("verdict", "label", "cost_s", "code"),
    [
        ("straggler", "rank1", 1.0, "T401"),
        ("straggler", "rank0", 1.0, ""),
        ("straggler", "rank1", 0.4, ""),  # less than half of the wait is another thing
        ("low clock", "rank1", 1.0, "T404"),
        ("low clock", "rank2", 1.0, ""),  # T404 has the cost of the dearest rank only
        ("errors", "rank1", 1.0, ""),
    ],
)
def test_who_has_the_cost_of_a_wait(verdict: Verdict, label: str, cost_s: float, code: str) -> None:
    ranks = (RankState("rank1", cost_s=cost_s, verdict=verdict), RankState("rank2", cost_s=0.9, verdict="low clock"))
    assert carrier(RankSpread(ranks, 10.0, "collectives"), label, 1.0) == code
    assert carrier(None, label, 1.0) == ""


def test_equal_ranks_pass() -> None:
    found = finding(job(WAITS, WAITS, WAITS), "T152")
    assert (str(found.verdict), number(found.value)) == ("pass", 0)


def test_one_rank_cannot_tell() -> None:
    assert str(finding(job(WAITS), "T152").verdict) == "unknown"


def test_no_communication_passes() -> None:
    assert str(finding(job(None, None), "T152").verdict) == "pass"
