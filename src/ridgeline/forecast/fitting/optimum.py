"""The compute-optimal N and D of any form along C = 6ND: its closed form, else a search."""

from collections.abc import Mapping

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.forecast.fitting.fit import Fit
from ridgeline.forecast.form import Array, Form

_GRID = 161  # of ln N in the first sweep, then of each zoom
_ZOOMS = 4  # each narrows the window 80-fold; the parabola does the rest
LEAST_SIZE = 1e3  # parameters or tokens: nothing smaller is searched


def optimum(
    of: Fit | Form, compute: Array | float, theta: Array | None = None, others: Mapping[str, float] | None = None
) -> tuple[Array, Array]:
    """N and D that minimise the loss at C = 6ND, shapes (...,) of ``theta`` (..., P) less its last axis.

    ``compute`` (FLOP) is a number or has that shape (for a fit: any shape). ``others`` holds the other columns that
    the form reads. Where the loss has no minimum inside the searched sizes, both are nan.

    Raises `InputError` for a compute that is not positive and for a form that does not read N and D.
    """
    form = of.form if isinstance(of, Fit) else of
    if isinstance(of, Fit):
        theta = of.theta if theta is None else theta
    assert theta is not None
    budget = np.asarray(compute, float)
    if not np.all(np.isfinite(budget) & (budget > 0)):
        raise InputError.expected("a positive compute in FLOP", compute, where="the target compute")
    closed = form.optimum(theta, budget)
    if closed is not None:
        return closed
    missing = sorted(set(form.inputs) - {"N", "D"} - set(others or {}))
    if not {"N", "D"} <= set(form.inputs) or missing:
        need = f"a form in N and D{' with ' + ', '.join(missing) + ' given' if missing else ''}"
        raise InputError.expected(need, ", ".join(form.inputs), where=form.slug)
    shape = np.broadcast_shapes(theta.shape[:-1], budget.shape)
    flat = np.broadcast_to(theta, (*shape, theta.shape[-1])).reshape(-1, theta.shape[-1])
    budgets = np.broadcast_to(budget, shape).reshape(-1)
    pairs = [_search(form, one, float(c), others or {}) for one, c in zip(flat, budgets, strict=True)]
    n = np.array(pairs).reshape(shape)
    return n, budget / (6 * n)


def _search(form: Form, theta: Array, compute: float, others: Mapping[str, float]) -> float:
    low, high = np.log(LEAST_SIZE), np.log(compute / (6 * LEAST_SIZE))
    if high <= low:
        return float("nan")

    def at(logs: Array) -> Array:
        columns = {"N": np.exp(logs), "D": compute / (6 * np.exp(logs))}
        return form.log_loss(theta, columns | {name: np.full(len(logs), value) for name, value in others.items()})

    for zoom in range(_ZOOMS):
        grid = np.linspace(low, high, _GRID)
        heights = at(grid)
        best = int(np.argmin(np.where(np.isfinite(heights), heights, np.inf)))
        if best in (0, _GRID - 1):
            return float("nan")
        if zoom < _ZOOMS - 1 and np.ptp(heights[best - 1 : best + 2]) > _FLAT:
            low, high = grid[best - 1], grid[best + 1]
            continue
        break
    left, here, right = heights[best - 1 : best + 2]
    bend = left - 2 * here + right
    shift = 0.5 * (left - right) / bend if bend > 0 else 0.0
    return float(np.exp(grid[best] + shift * (grid[1] - grid[0])))


_FLAT = 1e-8  # of ln L between neighbours: finer grids would see rounding
