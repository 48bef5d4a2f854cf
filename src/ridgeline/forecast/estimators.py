"""Estimator study: bias and spread of what each objective estimates, over simulated ladders of a known law."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ridgeline.forecast.fitting.fit import degenerates
from ridgeline.forecast.fitting.newton import Data, minimise
from ridgeline.forecast.fitting.objective import OBJECTIVES, Objective
from ridgeline.forecast.form import Array, Columns
from ridgeline.forecast.laws.chinchilla import FORM as CHINCHILLA
from ridgeline.forecast.rollout import stacked
from ridgeline.forecast.synthetic import AHEAD, Design, Noise, ahead, errors, runs, truth

QUANTITIES = ("E", "alpha", "beta", "a", *(f"loss +{decades:g}" for decades in AHEAD))


@dataclass(frozen=True)
class Estimate:
    """Of one objective and quantity: ``bias`` and ``spread`` (standard deviation) relative to the true value.

    ``lost`` counts simulations that did not converge or ended degenerate; they are not in the other two.
    """

    objective: str
    quantity: str
    bias: float
    spread: float
    count: int
    lost: int

    @property
    def error(self) -> float:
        """The root-mean-square error."""
        return float(np.hypot(self.bias, self.spread))


def estimators(
    design: Design, noise: Noise, seeds: Sequence[int], objectives: Sequence[Objective] = tuple(OBJECTIVES.values())
) -> list[Estimate]:
    """Every objective on the same simulated ladders, one design for all seeds.

    Each fit starts from the truth and from its ladder's own projection and ends in the better basin, so that what
    differs is the objective and not the search. The likelihood (``mle``) is log-normal: that of ``logls``.
    """
    theta = truth()
    n, d, group = runs(design, theta, np.random.default_rng(0))
    columns, target = {"N": n, "D": d}, ahead(float(np.max(6 * n * d)), theta)
    true = CHINCHILLA.log_loss(theta, columns)
    log_y = np.array([true + errors(noise, group, np.random.default_rng(seed)) for seed in seeds])
    flat = np.ones(len(n))
    starts = stacked([np.concatenate([theta[None], CHINCHILLA.starts(columns, one, flat)]) for one in log_y])
    found = []
    for objective in objectives:
        batch = minimise(Data(CHINCHILLA, columns, log_y, flat), starts, objective)
        sound = batch.converged & ~degenerates(CHINCHILLA, batch.theta)
        values = _quantities(batch.theta[sound], target) / _quantities(theta[None], target) - 1
        bias, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
        found += [
            Estimate(objective.name, name, float(bias[i]), float(spread[i]), int(sound.sum()), int((~sound).sum()))
            for i, name in enumerate(QUANTITIES)
        ]
    return found


def _quantities(theta: Array, target: Columns) -> Array:
    """E, alpha, beta, the exponent a of the optimum, and the loss at the targets: (B, Q) of theta (B, 5)."""
    floor, alpha, beta = theta[:, 2], theta[:, 3], theta[:, 4]
    losses = np.exp(CHINCHILLA.log_loss(theta, target))
    return np.column_stack([np.exp(floor), alpha, beta, beta / (alpha + beta), losses])
