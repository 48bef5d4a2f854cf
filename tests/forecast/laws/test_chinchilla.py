"""Chinchilla: the worked terms, and starts that lead to its basins."""

import numpy as np
import pytest
from tests.forecast.laws import ladders

from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.laws.chinchilla import FORM
from ridgeline.forecast.points import Points

LAW_H = ladders.constants("law-h")
LADDER = ladders.mesh(N=np.geomspace(3e7, 3e9, 5), D=np.geomspace(1e9, 3e11, 6))


def test_terms_of_the_worked_point() -> None:
    loss = np.exp(FORM.log_loss(FORM.internal(LAW_H), {"N": np.array([70e9]), "D": np.array([1.4e12])}))
    assert loss == pytest.approx([1.6900 + 0.0835 + 0.1632], abs=1e-4)


def test_formula_and_derivatives() -> None:
    ladders.assert_formula_and_slopes(FORM, LADDER, LAW_H)


@pytest.mark.parametrize(
    "truth",
    [LAW_H, {"E": 0.4, "A": 20.0, "alpha": 0.12, "B": 90.0, "beta": 0.2}, {**LAW_H, "alpha": 0.9, "A": 4e6}],
)
def test_starts_lead_to_the_truth(truth: dict[str, float]) -> None:
    found = fit(ladders.observed(FORM, LADDER, truth), FORM)
    assert found.constants == pytest.approx(truth, rel=1e-5)


def test_starts_come_best_first_and_few() -> None:
    points = ladders.observed(FORM, LADDER, LAW_H, noise=0.01)
    log_y, weights = np.log(points["loss"]), np.ones(len(points))
    starts = FORM.starts(LADDER, log_y, weights)
    scores = np.abs(log_y - FORM.log_loss(starts, LADDER)).sum(axis=1)
    assert scores.tolist() == sorted(scores)
    assert 2 <= len(starts) <= 8


def test_huge_and_tiny_scales_fit_alike() -> None:
    base = fit(ladders.observed(FORM, LADDER, LAW_H, noise=0.003), FORM)
    scaled = {"N": LADDER["N"] * 1e3, "D": LADDER["D"] / 1e3, "loss": base.points["loss"]}
    found = fit(Points(scaled), FORM)
    assert found.value == pytest.approx(base.value, rel=1e-7)
    assert found.constants["alpha"] == pytest.approx(base.constants["alpha"], rel=1e-4)
