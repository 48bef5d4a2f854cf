"""Noise models of maximum likelihood, and the groups of runs that share an error.

``lognormal``  ln L has one variance sigma^2.
``size``       sigma_i = s*N_i^-q: small models are noisier (or, at q < 0, large ones).
``group``      runs of a group (a budget, a recipe, a seed) share an offset: the covariance of the errors is
               sigma^2*((1 - rho)*I + rho*11') within the group, compound-symmetric.

q or rho come from the profile likelihood over a grid, all of whose fits are one batch, and a parabola through its top.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.forecast.fitting.newton import Data, minimise
from ridgeline.forecast.fitting.objective import LOGLS, Noise
from ridgeline.forecast.points import LABELS, Points

Array = NDArray[np.float64]
_SIZE_EXPONENTS = np.linspace(-0.6, 0.6, 25)
_SHARED = np.linspace(0.0, 0.95, 20)
_APART = 1e-6  # relative: ends of one basin agree better
BINS_PER_DECADE = 5  # of compute, where no budget is named


@dataclass(frozen=True)
class NoiseModel:
    """A noise model with its constants.

    ``constants``: sigma (of ln L; for ``size`` at the geometric mean of N) and q or rho. ``weights`` (n,) and
    ``coupling`` (n, G) make it a least-squares problem; ``log_likelihood`` is at the optimum.
    """

    kind: Noise
    constants: Mapping[str, float]
    weights: Array
    coupling: Array | None
    log_likelihood: float


def groups(points: Points, by: str) -> NDArray[np.int64]:
    """The group of each run, (n,), numbered from 0: a text column, or bins of compute where no budget is named.

    Raises `InputError` for a column that the ladder lacks.
    """
    if by in points.labels:
        return np.unique(points.labels[by], return_inverse=True)[1].astype(np.int64)
    if by == "budget" and ("C" in points.columns or {"N", "D"} <= set(points.columns)):
        bins = np.round(np.log10(points.compute) * BINS_PER_DECADE)
        return np.unique(bins, return_inverse=True)[1].astype(np.int64)
    known = ", ".join(sorted(points.labels)) or "no text column"
    raise InputError.expected("a column of groups", known, where=by, hint="columns of groups: " + ", ".join(LABELS))


def estimate(kind: Noise, data: Data, starts: Array, group: NDArray[np.int64] | None = None) -> NoiseModel:
    """The noise model of one problem (``data.log_y`` and ``data.weights`` of shape (n,))."""
    if kind == "size":
        return _size(data, starts)
    if kind == "group":
        assert group is not None
        return _group(data, starts, group)
    batch = minimise(data, starts, LOGLS)
    return _lognormal(data, 2 * float(batch.value[0]))


def _ends(data: Data, starts: Array) -> Array:
    """Where plain least squares ends from the best starts: near the optimum of every noise model."""
    batch = minimise(data, starts, LOGLS)
    order = np.argsort(batch.values[0])
    apart = [s for s in order[1:] if batch.values[0, s] > batch.values[0, order[0]] * (1 + _APART)]
    return batch.every[0, [order[0], *apart[:1]]]


def _likelihood(squares: Array | float, count: float, log_determinant: Array | float) -> Array:
    """Of normal errors with the variance at its optimum, squares/count."""
    found: Array = -0.5 * (count * (np.log(2 * np.pi * np.asarray(squares) / count) + 1) + log_determinant)
    return found


def _lognormal(data: Data, squares: float) -> NoiseModel:
    count = float(data.weights.sum())
    likelihood = float(_likelihood(squares, count, 0.0))
    return NoiseModel("lognormal", {"sigma": (squares / count) ** 0.5}, data.weights, None, likelihood)


def _size(data: Data, starts: Array) -> NoiseModel:
    if "N" not in data.columns:
        raise InputError.expected("a column N", ", ".join(data.columns), where="noise that varies with size")
    size = np.log(data.columns["N"])
    size = size - np.average(size, weights=data.weights)
    count = float(data.weights.sum())

    def profile(grid: Array) -> tuple[Array, Array, Array]:
        scaled = data.weights * np.exp(2 * grid[:, None] * size)
        batch = minimise(Data(data.form, data.columns, data.log_y, scaled), starts, LOGLS)
        twice = np.sum(data.weights * -2 * grid[:, None] * size, axis=1)  # ln determinant of the variances
        return _likelihood(2 * batch.value, count, twice), 2 * batch.value, scaled

    starts = _ends(data, starts)
    coarse = profile(_SIZE_EXPONENTS)[0]
    best = _top(_SIZE_EXPONENTS, coarse)
    likelihood, squares, scaled = profile(np.array([best]))
    constants = {"sigma": float(squares[0] / count) ** 0.5, "q": best}
    return NoiseModel("size", constants, scaled[0], None, float(likelihood[0]))


def _group(data: Data, starts: Array, group: NDArray[np.int64]) -> NoiseModel:
    members = np.eye(int(group.max()) + 1)[group]
    sizes = members.sum(axis=0)
    count = float(data.weights.sum())

    def at(shared: float) -> tuple[float, float, Array]:
        coupling = members * np.sqrt(shared / (1 - shared + shared * sizes))
        one = Data(data.form, data.columns, data.log_y, data.weights, coupling)
        squares = 2 * float(minimise(one, starts, LOGLS).value[0])
        determinant = float(np.sum((sizes - 1) * np.log(1 - shared) + np.log(1 + (sizes - 1) * shared)))
        return float(_likelihood(squares / (1 - shared), count, determinant)), squares / (1 - shared), coupling

    starts = _ends(data, starts)
    coarse = np.array([at(float(shared))[0] for shared in _SHARED])
    best = _top(_SHARED, coarse)
    likelihood, squares, coupling = at(best)
    return NoiseModel("group", {"sigma": (squares / count) ** 0.5, "rho": best}, data.weights, coupling, likelihood)


def _top(grid: Array, height: Array) -> float:
    """The abscissa of the highest point, between grid points by a parabola; an end stays an end."""
    i = int(np.argmax(height))
    if i in (0, len(grid) - 1):
        return float(grid[i])
    left, here, right = height[i - 1 : i + 2]
    bend = left - 2 * here + right
    shift = 0.5 * (left - right) / bend if bend < 0 else 0.0
    return float(grid[i] + shift * (grid[1] - grid[0]))
