"""Variable projection: given the exponents, the coefficients of a law are a linear least-squares problem.

A grid over the exponents alone then shows the basins of the whole problem (Golub and Pereyra 1973). The squares are
of relative errors, which are those of ln L to first order.
"""

from itertools import combinations

import numpy as np

from ridgeline.forecast.form import Array

_RIDGE = 1e-12  # relative: features that are equal to rounding share their coefficient
_NEAR = 2  # cells: closer ones belong to one basin unless both are local minima
BASINS = 8


def nonnegative(gram: Array, moment: Array) -> tuple[Array, Array]:
    """Least squares with coefficients >= 0 from normal equations (K, m, m) c = (K, m), for a handful of features.

    Tries every subset of the features. Returns c (K, m) and what it takes off the sum of squares (K,).
    """
    count, size = moment.shape
    best, gain = np.zeros((count, size)), np.zeros(count)
    ridge = _RIDGE * np.einsum("kii->ki", gram)
    for chosen in range(1, size + 1):
        for subset in combinations(range(size), chosen):
            pick = np.array(subset)
            small = gram[:, pick[:, None], pick] + ridge[:, pick, None] * np.eye(chosen)
            found = np.linalg.solve(small, moment[:, pick, None])[..., 0]
            drop = np.sum(found * moment[:, pick], axis=1)
            take = np.all(found >= 0, axis=1) & (drop > gain)
            gain = np.where(take, drop, gain)
            full = np.zeros((count, size))
            full[:, pick] = found
            best = np.where(take[:, None], full, best)
    return best, gain


def distinct(score: Array, keep: int = BASINS) -> list[tuple[int, ...]]:
    """Cells of a grid to start from, best first: the local minima of the score, then the best of what is not near."""
    padded = np.pad(score, 1, constant_values=np.inf)
    inner = tuple(slice(1, -1) for _ in score.shape)
    lowest = np.ones(score.shape, bool)
    for axis in range(score.ndim):
        for shift in (-1, 1):
            lowest &= score <= np.roll(padded, shift, axis)[inner]
    order = [tuple(int(i) for i in cell) for cell in np.argwhere(lowest & np.isfinite(score))]
    found = sorted(order, key=lambda cell: float(score[cell]))[:keep]
    for flat in np.argsort(score, axis=None):
        cell = tuple(int(i) for i in np.unravel_index(flat, score.shape))
        if len(found) >= keep or not np.isfinite(score[cell]):
            break
        if all(max(abs(a - b) for a, b in zip(cell, other, strict=True)) > _NEAR for other in found):
            found.append(cell)
    return sorted(found, key=lambda cell: float(score[cell]))
