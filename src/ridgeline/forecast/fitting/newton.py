"""Damped Newton in a box, many problems at once.

A step d solves (H + lambda*M) d = -g with H the exact second derivative of the objective and M the Gauss-Newton
matrix with iteratively reweighted (majorising) weights, so that the damping has the scale of the problem. Parameters
on a bound whose gradient points outward are held; a step ends at the first bound that it meets. Problems are worked in
chunks that fit the cache, chunks in threads (NumPy lets go of the interpreter), and whatever has converged leaves its
chunk.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ridgeline.forecast.fitting.objective import Objective
from ridgeline.forecast.form import Array, Columns, Form

_ITERATIONS = 200
_CHUNK = 16_384  # runs times problems in one chunk: an array of 128 KiB
_DAMPING, _EASE, _STIFFEN = 1e-3, 0.2, 4.0
_RIDGE = 1e-2  # of the diagonal, beside the majoriser
_FLOOR, _CEILING = 1e-12, 1e8  # of the damping
_DROP = 1e-11  # relative: a step that promises less ends the search
_EXACT = 1e-13  # root-mean-square residual below which a fit is exact
_PIVOT = 1e-14  # of a scaled matrix: smaller is not positive definite
_VANISHED = 12.0  # in ln: a coefficient so near its lower bound is tried there
_CLOSE = 1e-9  # relative: what rounding may leave of a promised drop


@dataclass(frozen=True)
class Batch:
    """Of B problems: the best parameters (B, P), the objective there, and whether it is a minimum.

    ``start`` is the start that led there, ``every`` and ``values`` what each start (B, S, P), (B, S) came to.
    """

    theta: Array
    value: Array
    converged: NDArray[np.bool_]
    start: NDArray[np.int64]
    every: Array
    values: Array
    settled: NDArray[np.bool_]


@dataclass(frozen=True)
class Data:
    """What problems are fitted to: ``log_y`` and ``weights`` each (n,) or (B, n).

    ``coupling`` (n, G): columns of runs with a shared error; the objective loses half the square of the weighted
    residuals along each (`ridgeline.forecast.fitting.noise`). ``held`` (P,) parameters stay where they start.
    ``tilt`` (B, n) adds that much times ln L of a run to the objective: Lagrange multipliers.
    """

    form: Form
    columns: Columns
    log_y: Array
    weights: Array
    coupling: Array | None = None
    held: NDArray[np.bool_] | None = None
    tilt: Array | None = None

    def part(self, rows: NDArray[np.int64]) -> "Side":
        """What differs between problems, of some of them."""
        return Side(self.log_y, self.weights, self.tilt).take(rows)


@dataclass(frozen=True)
class Side:
    """What may differ between problems: ``log_y`` and ``weights`` (n,) or (B, n), and ``tilt`` (B, n) or None."""

    log_y: Array
    weights: Array
    tilt: Array | None = None

    def take(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> "Side":
        """Of some problems."""
        tilt = None if self.tilt is None else self.tilt[keep]
        log_y, weights = (a[keep] if a.ndim == 2 else a for a in (self.log_y, self.weights))
        return Side(log_y, weights, tilt)


def minimise(data: Data, starts: Array, objective: Objective) -> Batch:
    """The minimum of each problem from each of its starts.

    ``starts`` (S, P), or (B, S, P) for starts of each problem's own. The best start wins; a problem converged if that
    one did.
    """
    counts = [len(a) for a in (data.log_y, data.weights, data.tilt) if a is not None and a.ndim == 2] + [
        len(starts)
    ] * (starts.ndim == 3)
    count = max(counts, default=1)
    begin = np.broadcast_to(starts, (count, *starts.shape[-2:]))
    low, high = data.form.box
    theta = np.clip(begin.reshape(-1, begin.shape[-1]), low, high)
    problem = np.repeat(np.arange(count), begin.shape[1])
    for stage in objective.path:
        theta, value, settled = _all(data, theta, problem, stage)
    theta, value = _snapped(data, theta, value, problem, objective.path[-1])
    every, values = theta.reshape(begin.shape), value.reshape(begin.shape[:2])
    settled = settled.reshape(begin.shape[:2])
    best = np.argmin(np.where(np.isfinite(values), values, np.inf), axis=1)
    rows = np.arange(count)
    return Batch(every[rows, best], values[rows, best], settled[rows, best], best, every, values, settled)


def _all(
    data: Data, theta: Array, problem: NDArray[np.int64], objective: Objective
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Every (problem, start) pair, in chunks and threads."""
    size = max(4, _CHUNK // data.log_y.shape[-1])
    cuts = [slice(i, i + size) for i in range(0, len(theta), size)]

    def work(cut: slice) -> _Search:
        search = _Search(data, objective, problem[cut], theta[cut].copy())
        with np.errstate(all="ignore"):  # a wild trial step overflows, its objective is not finite, it is refused
            search.run()
        return search

    threads = min(len(cuts), os.cpu_count() or 1)
    if threads == 1:
        done = [work(cut) for cut in cuts]
    else:
        with ThreadPoolExecutor(threads) as pool:
            done = list(pool.map(work, cuts))
    return (
        np.concatenate([s.theta for s in done]),
        np.concatenate([s.value for s in done]),
        np.concatenate([s.converged for s in done]),
    )


def _snapped(
    data: Data, theta: Array, value: Array, problem: NDArray[np.int64], objective: Objective
) -> tuple[Array, Array]:
    """Coefficients that have all but vanished, put on their lower bound where that costs nothing.

    The logarithm of a coefficient that the data want to be zero runs away without changing the objective.
    """
    low, _ = data.form.box
    for p, parameter in enumerate(data.form.parameters):
        if not parameter.log or (data.held is not None and data.held[p]):
            continue
        rows = np.flatnonzero((theta[:, p] < low[p] + _VANISHED) & (theta[:, p] > low[p]))
        moved = theta[rows]
        moved[:, p] = low[p]
        there = model(data, moved, data.part(problem[rows]), objective).value
        keep = there <= value[rows] + _CLOSE * np.abs(value[rows])
        theta[rows[keep]], value[rows[keep]] = moved[keep], there[keep]
    return theta, value


@dataclass
class _Local:
    """The quadratic model at the current points of some problems."""

    value: Array
    gradient: Array
    hessian: Array
    majoriser: Array

    def take(self, keep: NDArray[np.bool_]) -> "_Local":
        return _Local(self.value[keep], self.gradient[keep], self.hessian[keep], self.majoriser[keep])

    def put(self, where: NDArray[np.bool_], other: "_Local") -> None:
        for name in ("value", "gradient", "hessian", "majoriser"):
            getattr(self, name)[where] = getattr(other, name)[where]


@dataclass
class _Search:
    """One chunk: the state of each of its problems."""

    data: Data
    objective: Objective
    problem: NDArray[np.int64]
    theta: Array
    value: Array = field(init=False)
    converged: NDArray[np.bool_] = field(init=False)

    def run(self) -> None:
        """Iterate until every problem has converged or cannot go on."""
        total = len(self.theta)
        self.value, self.converged = np.full(total, np.inf), np.zeros(total, bool)
        rows = np.arange(total)
        side = self.data.part(self.problem)
        theta, damping = self.theta, np.full(total, _DAMPING)
        local = model(self.data, theta, side, self.objective)
        exact = (
            np.broadcast_to(side.weights, (total, side.weights.shape[-1])).sum(axis=1) * _EXACT**2 * self.objective.unit
        )
        for _ in range(_ITERATIONS):
            step, promised, sound = self._step(theta, local, damping)
            trial = theta + step
            there = model(self.data, trial, side, self.objective)
            better = sound & (there.value <= local.value)
            free = promised * (1 + damping)  # about what a step without damping promises
            small = sound & (free <= _DROP * np.abs(local.value) + exact)
            theta = np.where(better[:, None], trial, theta)
            local.put(better, there)
            damping = np.where(better, np.maximum(damping * _EASE, _FLOOR), damping * _STIFFEN)
            stuck = ~better & (damping > _CEILING)
            near = free <= _CLOSE * np.abs(local.value) + exact
            over = small | stuck
            if over.any():
                self.theta[rows[over]], self.value[rows[over]] = theta[over], local.value[over]
                self.converged[rows[over]] = (small | near)[over] & np.isfinite(local.value[over])
                keep = ~over
                rows, theta, damping, exact = rows[keep], theta[keep], damping[keep], exact[keep]
                local = local.take(keep)
                side = side.take(keep)
                if not len(rows):
                    return
        self.theta[rows], self.value[rows] = theta, local.value

    def _step(self, theta: Array, local: _Local, damping: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """The step, the drop that it promises, and whether the damped matrix was positive definite."""
        low, high = self.data.form.box
        at_low, at_high = theta <= low, theta >= high
        held = (at_low & (local.gradient > 0)) | (at_high & (local.gradient < 0))
        if self.data.held is not None:
            held |= self.data.held
        step, sound = _directions(local, damping, held)
        outward = (at_low & (step < 0)) | (at_high & (step > 0))
        if (outward & ~held).any():
            held |= outward
            step, sound = _directions(local, damping, held)
            step = np.where(at_low, np.maximum(step, 0), np.where(at_high, np.minimum(step, 0), step))
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step < 0, (low - theta) / step, np.where(step > 0, (high - theta) / step, np.inf))
        short = np.minimum(1.0, np.nanmin(np.where(held, np.inf, room), axis=1))
        promised = -0.5 * np.sum(local.gradient * step, axis=1)
        step = np.where(held, 0.0, step * short[:, None])
        return np.clip(theta + step, low, high) - theta, promised, sound & (promised >= 0)


def _directions(local: _Local, damping: Array, held: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
    """Damped Newton steps; Gauss-Newton ones where the Hessian is not positive definite, far from a minimum."""
    diagonal = np.einsum("bii->bi", local.majoriser)
    ridge = (damping * _RIDGE)[:, None, None] * diagonal[:, None] * np.eye(diagonal.shape[1])
    step, sound = solve(local.hessian + damping[:, None, None] * local.majoriser + ridge, -local.gradient, held)
    if not sound.all():
        poor = ~sound
        matrix = (1 + damping[poor])[:, None, None] * local.majoriser[poor] + ridge[poor]
        step[poor], sound[poor] = solve(matrix, -local.gradient[poor], held[poor])
    return step, sound


def model(data: Data, theta: Array, side: Side, objective: Objective) -> _Local:
    """The objective (B,) at ``theta`` (B, P) with its gradient, Hessian and majorising matrix."""
    around, weights = data.form.expand(theta, data.columns), side.weights
    response = objective.respond(side.log_y, around.value)
    value = np.sum(weights * response.value, axis=-1)
    slope, bend, major = weights * response.slope, weights * response.bend, weights * response.major
    if side.tilt is not None:
        value = value + np.sum(side.tilt * around.value, axis=-1)
        slope = slope + side.tilt
    if data.coupling is None:
        sums = around.sums(slope, bend, major)
        return _Local(value, sums.gradient, sums.hessian, sums.majoriser)
    spread = np.broadcast_to(weights, slope.shape)
    members = (data.coupling != 0).astype(float)
    heavy = (spread @ members) / members.sum(axis=0)  # mean weight of each group's runs
    scale = 1 / np.sqrt(np.where(heavy > 0, heavy, 1.0))
    shared = (slope @ data.coupling) * scale  # (B, G)
    value -= 0.5 * np.sum(shared**2, axis=-1)
    slope = slope - spread * ((shared * scale) @ data.coupling.T)
    sums = around.sums(slope, bend, major)
    slopes = data.form.gradient(theta, data.columns)[1]
    joint = (data.coupling.T @ (spread[..., None] * slopes)) * scale[..., None]
    return _Local(value, sums.gradient, sums.hessian - np.swapaxes(joint, -1, -2) @ joint, sums.majoriser)


def solve(matrix: Array, right: Array, held: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
    """Solve positive definite systems (B, P, P) x = (B, P) by a scaled Cholesky factorisation, all at once.

    ``held`` (B, P) variables stay zero. Returns x and whether each matrix was positive definite; x is zero elsewhere.
    """
    count = matrix.shape[-1]
    diagonal = np.einsum("bii->bi", matrix)
    scale = np.where(held, 0.0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, np.inf)))
    work = np.ascontiguousarray(np.moveaxis(matrix * scale[:, :, None] * scale[:, None, :], 0, -1))
    solution = np.ascontiguousarray((right * scale).T)
    for p in range(count):  # a held variable is a row of its own
        work[p, p] = np.where(scale[:, p] == 0, 1.0, work[p, p])
    sound = np.all(held | (diagonal > 0), axis=1)
    for p in range(count):
        pivot = work[p, p]
        good = pivot > _PIVOT
        sound &= good
        root = np.sqrt(np.where(good, pivot, 1.0))
        work[p, p] = root
        column = work[p + 1 :, p]
        column /= root
        work[p + 1 :, p + 1 :] -= column[:, None] * column[None]
        solution[p] /= root
        solution[p + 1 :] -= column * solution[p]
    for p in reversed(range(count)):
        solution[p] /= work[p, p]
        solution[:p] -= work[p, :p] * solution[p]
    return np.where(sound[:, None], solution.T * scale, 0.0), sound
