"""Calibration beside the scores: when it is judged, and what an overconfident candidate does."""

import numpy as np
import pytest
from tests.gate.runs import pairs

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.gate.decision import Check, Outcome
from ridgeline.gate.evidence.pairing import Pairs
from ridgeline.gate.judging.calibrated import LARGE, calibrated, scored, shown
from ridgeline.gate.registration.plan import Plan

PLAN = build(Plan, {"gate": "precision", "slices": "slice"})


def runs(n: int = 6000, sharper: float = 1.0) -> Pairs:
    """A calibrated baseline, and a candidate with the same answers whose logits are so many times as large."""
    rng = np.random.default_rng(0)
    logit = rng.normal(1.0, 1.2, n)
    confidence = 1 / (1 + np.exp(-logit))
    correct = (rng.random(n) < confidence).astype(float)
    later = 1 / (1 + np.exp(-sharper * logit))
    names = ["large" if row < n - 500 else "small" for row in range(n)]
    base, cand = {"acc": correct, "confidence": confidence}, {"acc": correct, "confidence": later}
    return pairs(base, cand, slice=names)


def made(found: Pairs, plan: Plan = PLAN) -> dict[tuple[str, str], Check]:
    return {(check.name, check.metric): check for check in calibrated(scored(found, plan), plan)}


def test_where_it_is_judged() -> None:
    assert set(made(runs(sharper=1.001))) == {
        ("overall", "calibration"), ("overall", LARGE), ("large", "calibration"), ("large", LARGE), ("small", LARGE),
    }  # fmt: skip


def test_an_unchanged_candidate_ships() -> None:
    assert {check.outcome for check in made(runs(20_000, 1.01)).values()} == {Outcome.SHIP}


def test_an_overconfident_one_does_not() -> None:
    found = made(runs(20_000, 2.5))
    assert found["overall", "calibration"].outcome is Outcome.NO_SHIP
    assert found["overall", "calibration"].interval.estimate < -0.05
    assert found["overall", LARGE].outcome is Outcome.NO_SHIP


def test_fewer_than_a_thousand_are_not_judged() -> None:
    check = made(runs(900, 1.01))["overall", "calibration"]
    assert check.outcome is Outcome.INCONCLUSIVE
    assert check.needed == 100


@pytest.mark.parametrize("metrics", [("acc",), ("calibration",), ()])
def test_the_plan_says_whether(metrics: tuple[str, ...]) -> None:
    plan = PLAN.model_copy(update={"metrics": metrics})
    assert bool(made(runs(sharper=1.01), plan)) == (metrics != ("acc",))


def test_what_is_asked_for_and_not_there_is_refused() -> None:
    scores = {"acc": np.array([1.0, 0.0, 1.0])}
    plan = build(Plan, {"gate": "precision", "metrics": ["calibration"]})
    with pytest.raises(InputError, match="confidence"):
        scored(pairs(scores, scores), plan)
    assert scored(pairs(scores, scores), build(Plan, {"gate": "precision"})) is None


def test_the_reliability_is_shown() -> None:
    item = scored(runs(sharper=2.5), PLAN)
    found = shown(item, PLAN, ("baseline", "candidate"))
    assert {row[0] for row in found.tables["gate.reliability"].rows} == {"baseline", "candidate"}
    assert found.charts["gate.reliability.curve"].table == "gate.reliability"
    assert "Expected calibration error, described" in found.sections[0].paragraphs[0]
    assert shown(scored(runs(900), PLAN), PLAN, ("a", "b")).sections == ()
