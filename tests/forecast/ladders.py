"""Ladders that several tests of this room share."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ridgeline.forecast.points import Points
from ridgeline.forecast.reading.read_points import ReadOptions, from_columns

Array = NDArray[np.float64]
LAW_H: Mapping[str, float] = {"E": 1.69, "A": 406.4, "alpha": 0.34, "B": 410.7, "beta": 0.28}


def law_h(n: Array, d: Array, **changed: float) -> Array:
    """The loss of law H in nats, with some constants changed."""
    k = {**LAW_H, **changed}
    found: Array = k["E"] + k["A"] / n ** k["alpha"] + k["B"] / d ** k["beta"]
    return found


def sweep(computes: Sequence[float], sizes: Sequence[Sequence[float]], **changed: float) -> Points:
    """IsoFLOP curves of law H: ``sizes`` of each budget, D = C/(6N)."""
    c = np.concatenate([np.full(len(row), compute) for compute, row in zip(computes, sizes, strict=True)])
    n = np.concatenate([np.asarray(row, float) for row in sizes])
    d = c / 6 / n
    return from_columns({"N": n, "D": d, "C": c, "loss": law_h(n, d, **changed)})


def five_sizes() -> Points:
    """The ladder of the worked numbers: four budgets, five sizes each, a factor of three apart or so."""
    scales = (1, 3, 10, 30)
    return sweep([1e19, 1e20, 1e21, 1e22], [[k * s * 1e7 for k in (1, 3, 10, 30, 100)] for s in scales])


def noisy(noise: float = 0.003, seed: int = 0, **columns: object) -> Points:
    """A grid of 5 sizes and 6 token counts of law H with log-normal noise, and further columns."""
    n, d = (grid.ravel() for grid in np.meshgrid(np.geomspace(3e7, 3e9, 5), np.geomspace(1e9, 3e11, 6)))
    loss = law_h(n, d) * np.exp(noise * np.random.default_rng(seed).standard_normal(len(n)))
    return from_columns({"N": n, "D": d, "loss": loss, **columns}, ReadOptions(params="total"))
