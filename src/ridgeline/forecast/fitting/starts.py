"""Where the fit of a law with several exponents should start: variable projection on a grid of any size.

Most laws are linear in some constants once the others are set. `project` solves for the linear ones at every cell of a
grid of the others and keeps the basins (`forecast.fitting.projection`); `settle` helps where no choice of exponents
makes a law linear.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgeline.forecast.fitting.projection import distinct, nonnegative
from ridgeline.forecast.form import Array, Columns, Form

Axes = Sequence[Sequence[float] | Array]
Basis = Callable[[Array], Array]  # cells of the grid (g, axes) -> the basis at each (g, n, K)
SMALLEST = 1e-2  # share of the loss with which a term that projection sets to zero starts: it can still grow
_HELD = 4_000_000  # numbers of a basis in memory at once
_RIDGE = 1e-12  # of the diagonal: two columns of a basis may be parallel
_STEPS, _DAMPING, _EASE, _STIFFEN, _MOST = 12, 1e-3, 5.0, 10.0, 1e8


@dataclass(frozen=True)
class Projected:
    """Basins of a grid, lowest first: the grid's constants (S, axes) and the linear ones (S, K)."""

    cells: Array
    linear: Array


def grid(axes: Axes) -> tuple[Array, tuple[int, ...]]:
    """The cells (G, axes) of a product of axes, and the shape of the product."""
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([m.ravel() for m in mesh], axis=-1).astype(float), mesh[0].shape


def basins(shape: tuple[int, ...], misfit: Array) -> NDArray[np.int64]:
    """The cells (flat indices) to start from, best first; ``misfit`` has shape (G,)."""
    finite = np.where(np.isfinite(misfit), misfit, np.inf).reshape(shape)
    return np.array([np.ravel_multi_index(cell, shape) for cell in distinct(finite)], dtype=np.int64)


def project(axes: Axes, basis: Basis, log_y: Array, weights: Array) -> Projected:
    """The basins of a law whose loss is ``basis`` times non-negative constants. ``log_y``, ``weights``: (n,)."""
    y = np.exp(log_y)[None, :, None]

    def solve(cells: Array) -> tuple[Array, Array]:
        relative = basis(cells) / y
        size = np.max(relative, axis=1)
        unit = relative / size[:, None, :]
        gram = np.einsum("gnk,n,gnl->gkl", unit, weights, unit, optimize=True)
        linear, _ = nonnegative(gram, np.einsum("gnk,n->gk", unit, weights))
        linear = np.maximum(linear, SMALLEST)
        off = np.log(np.einsum("gnk,gk->gn", unit, linear))
        return linear / size, np.abs(off) @ weights

    return _walk(axes, solve, len(log_y))


def project_log(axes: Axes, basis: Basis, log_y: Array, weights: Array) -> Projected:
    """The basins of a law whose logarithm is ``basis`` times constants of either sign."""

    def solve(cells: Array) -> tuple[Array, Array]:
        columns = basis(cells)
        size = np.sqrt(np.einsum("gnk,n->gk", columns**2, weights))
        unit = columns / size[:, None, :]
        normal = np.einsum("gnk,n,gnl->gkl", unit, weights, unit, optimize=True)
        normal += _RIDGE * np.eye(normal.shape[-1])
        linear = np.linalg.solve(normal, np.einsum("gnk,n->gk", unit, weights * log_y)[..., None])[..., 0]
        off = np.einsum("gnk,gk->gn", unit, linear) - log_y
        return linear / size, np.abs(off) @ weights

    return _walk(axes, solve, len(log_y))


def settle(
    form: Form,
    theta: Array,
    free: Sequence[int],
    columns: Columns,
    log_y: Array,
    weights: Array,
    steps: int = _STEPS,
) -> Array:
    """``theta`` (S, P) after a few damped Gauss-Newton steps over the constants ``free``, best first, the others held.

    A step that does not lower the weighted squares of the log residuals is not taken.
    """
    index = list(free)
    low, high = (end[index] for end in form.box)
    theta, damping = boxed(form, theta), np.full(len(theta), _DAMPING)
    value, slopes = form.gradient(theta, columns)
    best = (log_y - value) ** 2 @ weights
    for _ in range(steps):
        jacobian = slopes[..., index]
        normal = np.einsum("snp,n,snq->spq", jacobian, weights, jacobian, optimize=True)
        pull = np.einsum("snp,sn->sp", jacobian, weights * (log_y - value))
        diagonal = np.einsum("spp->sp", normal) * damping[:, None] + np.finfo(float).tiny
        normal[:, np.arange(len(index)), np.arange(len(index))] += np.maximum(diagonal, _RIDGE)
        tried = theta.copy()
        tried[:, index] = np.clip(theta[:, index] + np.linalg.solve(normal, pull[..., None])[..., 0], low, high)
        with np.errstate(all="ignore"):
            reached = (log_y - form.log_loss(tried, columns)) ** 2 @ weights
        better = reached < best  # not where it is undefined
        theta[better], best = tried[better], np.where(better, reached, best)
        damping = np.clip(np.where(better, damping / _EASE, damping * _STIFFEN), 1 / _MOST, _MOST)
        value, slopes = form.gradient(theta, columns)
    return theta[np.argsort(best, kind="stable")]


def boxed(form: Form, theta: Array) -> Array:
    """``theta`` moved into the form's box."""
    low, high = form.box
    return np.clip(theta, low, high)


def spread(exponents: Array, column: Array) -> Array:
    """``column`` (n,) to the power of minus each exponent (g,), scaled to 1 at its middle: shape (g, n)."""
    return np.exp(-exponents[:, None] * (np.log(column) - middle(column))[None, :])


def middle(column: Array) -> float:
    """The mean logarithm of a column, where `spread` is 1."""
    return float(np.mean(np.log(column)))


def _walk(axes: Axes, solve: Callable[[Array], tuple[Array, Array]], count: int) -> Projected:
    """Solve every cell, a part of the grid at a time, and keep the basins."""
    cells, shape = grid(axes)
    at_once = max(1, _HELD // (8 * count))
    parts = [solve(cells[i : i + at_once]) for i in range(0, len(cells), at_once)]
    linear, misfit = (np.concatenate(found) for found in zip(*parts, strict=True))
    best = basins(shape, misfit)
    return Projected(cells[best], linear[best])
