"""Ladders of known laws for the tests of comparison and design: the same N and D, noise from a seed."""

from collections.abc import Sequence

import numpy as np

from ridgeline.forecast.form import Array
from ridgeline.forecast.laws.chinchilla import FORM
from ridgeline.forecast.points import Points

H = FORM.internal({"E": 1.69, "A": 406.4, "alpha": 0.34, "B": 410.7, "beta": 0.28})
RIVAL = FORM.internal({"E": 1.69, "A": 500.0, "alpha": 0.38, "B": 380.0, "beta": 0.26})
EARLY = FORM.internal({"E": 1.69, "A": 75.0, "alpha": 0.26, "B": 142.4, "beta": 0.24})  # 6% ahead of H at 1e19


def scaled(theta: Array, factor: float) -> Array:
    """The law with every loss times ``factor``."""
    found: Array = theta + np.array([1.0, 1.0, 1.0, 0.0, 0.0]) * np.log(factor)
    return found


def ladder(
    theta: Array, noise: float = 0.001, seed: int = 0, budgets: Sequence[float] = (1e18, 5.6e18, 3.2e19, 1.8e20, 1e21)
) -> Points:
    """Six sizes at each budget, centred on the optimum of law H; relative noise of each loss."""
    compute, shift = (a.ravel() for a in np.meshgrid(budgets, np.geomspace(0.3, 3, 6), indexing="ij"))
    params = FORM.optimum(H, compute)[0] * shift
    columns = {"N": params, "D": compute / (6 * params), "C": compute}
    error = np.random.default_rng(seed).normal(size=len(params)) * noise
    return Points({**columns, "loss": np.exp(FORM.log_loss(theta, columns) + error)}, params="total")
