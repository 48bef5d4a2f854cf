"""The verdict: each refusal has its cause, and its sentence."""

from dataclasses import replace

import numpy as np
import pytest

from ridgeline.forecast.average import Choice
from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.laws.chinchilla import FORM as CHINCHILLA
from ridgeline.forecast.rollout import Growth
from ridgeline.forecast.synthetic import simulate
from ridgeline.forecast.verdict import Case, judge, risk

POINTS = simulate("epoch", "gaussian", 0).points
FIT = fit(POINTS, CHINCHILLA)
GOOD = Case(
    doubt=0.02, level=0.95, decades=1.0, span=4.0, gain=0.1, worth=1.5, scatter=1.1, fit=FIT,
    choice=Choice(0, np.ones(1), "Chinchilla."), growth=Growth(0.015, 0.01, 0.004, 6.0, 4), degenerate=0.0, labels={},
)  # fmt: skip


def test_a_good_record_decides() -> None:
    found = judge(GOOD)
    assert found.word == "decide"
    assert "0.20 of the 0.1 nats" in found.because[0]
    assert "4 cuts" in found.because[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"doubt": 0.3}, "gains nothing"),
        ({"scatter": 1.8}, "do not follow one law"),
        ({"degenerate": 0.6}, "60% of the resampled ladders"),
        ({"growth": Growth(0.015, np.nan, 0.0, 4.0, 0), "decades": 2.5}, "too few to hold any out"),
        ({"decades": 12.5}, "12.5 decades beyond a ladder of 4.0: nothing measured says"),
    ],
)
def test_refusals(change: dict[str, object], said: str) -> None:
    found = judge(replace(GOOD, **change))  # type: ignore[arg-type]
    assert found.word == "refuse"
    assert said in " ".join(found.because)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"doubt": 0.06}, "0.60 of the 0.1"),
        ({"decades": 4.5}, "4.5 decades beyond"),
        ({"worth": 20.0}, "factor 20"),
        ({"scatter": 1.4}, "factor 1.4"),
        ({"growth": Growth(0.015, 0.01, 0.004, 5.0, 1)}, "1 cut only"),
    ],
)
def test_doubts(change: dict[str, object], said: str) -> None:
    found = judge(replace(GOOD, **change))  # type: ignore[arg-type]
    assert found.word == "indicative"
    assert said in " ".join(found.because)


def labelled(name: str, values: np.ndarray) -> Case:
    """The good case with a label."""
    points = replace(POINTS, labels={name: values.astype(np.str_)})
    return replace(GOOD, fit=replace(FIT, points=points))


def test_a_target_of_another_recipe_is_refused() -> None:
    case = labelled("recipe", np.full(len(POINTS), "sweep"))
    assert judge(replace(case, labels={"recipe": "sweep"})).word == "decide"
    found = judge(replace(case, labels={"recipe": "flagship"}))
    assert found.word == "refuse"
    assert "recipe is flagship" in found.because[0]


def test_a_ladder_of_two_kinds_is_refused() -> None:
    kinds = np.where(np.arange(len(POINTS)) % 2, "new", "old")
    better = POINTS["loss"] * np.where(kinds == "new", 0.97, 1.0)
    points = replace(POINTS, columns={**POINTS.columns, "loss": better}, labels={"recipe": kinds})
    found = judge(replace(GOOD, fit=fit(points, CHINCHILLA)))
    assert found.word == "refuse"
    assert "mixes kinds" in found.because[0]
    mixed = labelled("recipe", kinds)  # the same runs, two names
    assert judge(mixed).word == "decide"


@pytest.mark.parametrize(("name", "word"), [("kaplan", "refuse"), ("const", "refuse"), ("cosine", "decide")])
def test_schedules_by_name(name: str, word: str) -> None:
    assert judge(labelled("schedule", np.full(len(POINTS), name))).word == word


def test_a_constant_rate_is_no_mismatch_for_a_target_of_the_same() -> None:
    case = labelled("schedule", np.full(len(POINTS), "const"))
    assert judge(replace(case, labels={"schedule": "const"})).word == "decide"


def test_losses_read_before_the_schedule_ended() -> None:
    points = replace(POINTS, columns={**POINTS.columns, "horizon": 2 * POINTS["D"]})
    found = judge(replace(GOOD, fit=replace(FIT, points=points)))
    assert found.word == "refuse"
    assert "100% of the losses" in found.because[0]


def test_a_floor_of_nothing_is_refused() -> None:
    floor = FIT.theta.copy()
    floor[2] = np.log(1e-3)
    found = judge(replace(GOOD, fit=replace(FIT, theta=floor)))
    assert found.word == "refuse"
    assert "do not show a floor" in found.because[0]


@pytest.mark.parametrize(
    ("decades", "width", "score", "level"),
    [(3, 0.008, 3.5, "moderate"), (5, 0.040, 9.0, "high"), (1, 0.01, 1.2, "low")],
)
def test_risk_score(decades: float, width: float, score: float, level: str) -> None:
    found = risk(decades, width)
    assert round(found.score, 1) == score
    assert found.level == level
    assert level in found.explained


def test_a_target_within_the_ladder_gains_nothing_and_says_so() -> None:
    found = judge(replace(GOOD, decades=-0.5, gain=-0.2))
    assert found.word == "decide"
    assert "within the ladder" in found.because[0]
    assert "buys" not in found.because[0]


def test_large_factors_are_written_out() -> None:
    assert "a factor 2,200 of compute" in " ".join(judge(replace(GOOD, worth=2200.0)).because)
