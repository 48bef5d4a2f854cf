"""Noise models: each finds the constants that its own noise was made with."""

import numpy as np
import pytest
from tests.forecast.ladders import law_h

from ridgeline.core.errors import InputError
from ridgeline.forecast.fitting.fit import Fit, fit
from ridgeline.forecast.fitting.noise import groups
from ridgeline.forecast.fitting.objective import objective
from ridgeline.forecast.laws.chinchilla import FORM
from ridgeline.forecast.points import Points

N, D = (grid.ravel() for grid in np.meshgrid(np.geomspace(2e7, 5e9, 12), np.geomspace(1e9, 3e11, 15)))
GROUP = np.repeat(np.arange(30), 6)


def ladder(errors: np.ndarray) -> Points:
    labels = {"recipe": np.array([f"r{g}" for g in GROUP])}
    return Points({"N": N, "D": D, "loss": law_h(N, D) * np.exp(errors)}, labels)


def estimated(errors: np.ndarray, noise: str) -> Fit:
    return fit(ladder(errors), FORM, objective("mle", noise=noise), by="recipe")


def test_one_variance() -> None:
    found = estimated(0.005 * np.random.default_rng(0).standard_normal(len(N)), "lognormal")
    assert found.noise is not None
    assert found.noise.constants["sigma"] == pytest.approx(0.005, rel=0.15)
    n = len(N)
    sigma2 = float(np.mean(found.residuals**2))
    assert found.noise.log_likelihood == pytest.approx(-0.5 * n * (np.log(2 * np.pi * sigma2) + 1))


def test_noise_that_falls_with_size() -> None:
    spread = 0.004 * (N / np.exp(np.mean(np.log(N)))) ** -0.3
    found = estimated(spread * np.random.default_rng(1).standard_normal(len(N)), "size")
    assert found.noise is not None
    assert found.noise.constants["q"] == pytest.approx(0.3, abs=0.08)
    assert found.noise.constants["sigma"] == pytest.approx(0.004, rel=0.15)
    assert np.corrcoef(np.log(found.weights), np.log(N))[0, 1] == pytest.approx(1.0)
    plain = estimated(spread * np.random.default_rng(1).standard_normal(len(N)), "lognormal")
    assert plain.noise is not None
    assert found.noise.log_likelihood > plain.noise.log_likelihood + 5


def test_errors_that_groups_share() -> None:
    rng = np.random.default_rng(2)
    errors = 0.003 * rng.standard_normal(len(N)) + 0.005 * rng.standard_normal(30)[GROUP]
    found = estimated(errors, "group")
    assert found.converged
    assert found.noise is not None
    assert found.noise.constants["rho"] == pytest.approx(0.005**2 / (0.005**2 + 0.003**2), abs=0.12)
    assert found.noise.constants["sigma"] == pytest.approx((0.005**2 + 0.003**2) ** 0.5, rel=0.2)
    plain = estimated(errors, "lognormal")
    assert plain.noise is not None
    assert found.noise.log_likelihood > plain.noise.log_likelihood + 10
    none = estimated(0.005 * rng.standard_normal(len(N)), "group")
    assert none.noise is not None
    assert none.noise.constants["rho"] < 0.1


def test_groups_by_label_or_by_compute() -> None:
    points = ladder(np.zeros(len(N)))
    assert groups(points, "recipe").tolist() == np.unique(points.labels["recipe"], return_inverse=True)[1].tolist()
    by_compute = groups(points, "budget")
    for one in np.unique(by_compute):
        inside = 6 * N[by_compute == one] * D[by_compute == one]
        assert inside.max() / inside.min() < 10**0.21
    with pytest.raises(InputError, match="column of groups"):
        groups(points, "seed")
