"""Profile likelihood: how much worse the best fit becomes when one constant, or the loss at a target, is held.

An interval holds the values whose best objective is within a threshold of the optimum's: half of t^2 times
sum(psi^2)/sum(psi'), which is sigma^2 for least squares and makes an M-estimator's likelihood ratio chi-square
(Ronchetti 1982). A side on which the profile never reaches the threshold is open: the data do not bound it.
"""

from dataclasses import dataclass, replace

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.forecast.fitting.fit import Fit, scores_of, smooth
from ridgeline.forecast.fitting.newton import Data, Side, minimise, model
from ridgeline.forecast.form import Array, Columns

_NEAR: Array = np.arange(1, 17) / 4.0  # standard errors from the optimum, in quarters
_FAR = np.geomspace(8, 4096, 10)  # and on a side that is still open
_STEP = 0.05  # of an internal parameter, or of ln L, whose standard error is not known
_WORSE = 1e-7  # relative: less is rounding


@dataclass(frozen=True)
class Profile:
    """A profile of ``symbol`` (or of the loss at a target) on its natural scale.

    ``values`` (G,) is the best objective at each of ``grid`` (G,). ``low`` and ``high`` end the interval of ``level``;
    where ``open_low`` or ``open_high`` holds, the profile stays below ``threshold`` as far as the grid goes, and the
    end is that of the grid. ``beaten`` says that a better optimum than the fit's turned up on the way.
    """

    symbol: str
    level: float
    grid: Array
    values: Array
    threshold: float
    low: float
    high: float
    open_low: bool
    open_high: bool
    beaten: bool

    @property
    def closed(self) -> bool:
        """Whether the data bound the value on both sides."""
        return not (self.open_low or self.open_high)


def profile(fit: Fit, symbol: str, level: float = 0.95) -> Profile:
    """The profile of one constant. Raises `InputError` for a symbol that the form does not have."""
    if symbol not in fit.form.symbols:
        raise InputError.expected("one of " + ", ".join(fit.form.symbols), symbol, where="the profile")
    p = fit.form.symbols.index(symbol)
    parameter = fit.form.parameters[p]
    low, high = (float(end[p]) for end in fit.form.box)
    spread = float(np.sqrt(fit.covariance[p, p]))
    unit = spread if np.isfinite(spread) and spread > 0 else _STEP
    limit = _optimum(fit) + _allowance(fit, level)

    def at(offsets: Array) -> tuple[Array, Array]:
        grid = np.unique(np.clip(offsets * unit + fit.theta[p], low, high))
        return grid, _held(fit, p, grid)

    grid, values = at(np.concatenate([-_NEAR, [0.0], _NEAR]))
    for side in (-1.0, 1.0):
        end = 0 if side < 0 else -1
        if values[end] <= limit and low < grid[end] < high:
            more, further = at(side * _FAR)
            grid, values = np.concatenate([grid, more]), np.concatenate([values, further])
            grid, first = np.unique(grid, return_index=True)
            values = values[first]
    return _read(fit, symbol, level, parameter.natural(grid), values)


def profile_loss(fit: Fit, columns: Columns, level: float = 0.95) -> Profile:
    """The profile of the predicted loss at one target, columns of shape (1,).

    The objective plus mu times ln L of the target is minimised for a range of multipliers mu: each optimum is a point
    of the profile.
    """
    slope = fit.form.gradient(fit.theta, columns)[1][0]
    spread = float(np.sqrt(slope @ fit.covariance @ slope)) if np.all(np.isfinite(fit.covariance)) else 0.0
    unit = spread if spread > 0 else _STEP
    quantile = _quantile(fit, level)
    stiffness = 2 * _allowance(fit, level) / quantile**2 / unit
    joined = {name: np.append(fit.columns[name], columns[name]) for name in fit.form.inputs}
    log_y, weights = np.append(fit.log_y, 0.0), np.append(fit.weights, 0.0)
    base = fit.data.coupling
    coupling = None if base is None else np.vstack([base, np.zeros((1, base.shape[1]))])
    steps = np.concatenate([-_FAR[::-1], -_NEAR[::-1], [0.0], _NEAR, _FAR])
    tilt = np.zeros((len(steps), len(log_y)))
    tilt[:, -1] = steps * stiffness
    data = Data(fit.form, joined, log_y, weights, coupling, tilt=tilt)
    ends = minimise(data, fit.theta[None], fit.objective.plain).theta
    beside = np.stack([ends, np.roll(ends, 1, axis=0), np.roll(ends, -1, axis=0)], axis=1)
    theta = minimise(data, beside, fit.objective.plain).theta
    values = model(fit.data, theta, Side(fit.log_y, fit.weights), fit.objective.plain).value
    reached, first = np.unique(fit.form.log_loss(theta, columns)[:, 0], return_index=True)
    return _read(fit, "loss", level, np.exp(reached), values[first])


def _held(fit: Fit, p: int, grid: Array) -> Array:
    """The best objective with parameter p held at each grid point (G,): from the fit, then from neighbours' ends."""
    held = np.arange(len(fit.theta)) == p
    data = replace(fit.data, log_y=np.broadcast_to(fit.log_y, (len(grid), len(fit.log_y))), held=held)
    along = np.repeat(fit.theta[None], len(grid), axis=0)
    starts = [along]
    if np.all(np.isfinite(fit.covariance)) and fit.covariance[p, p] > 0:
        starts.append(along + (grid[:, None] - fit.theta[p]) * fit.covariance[p] / fit.covariance[p, p])
    starts += [np.repeat(basin.theta[None], len(grid), axis=0) for basin in fit.basins[1:3]]
    begin = np.stack(starts, axis=1)
    begin[:, :, p] = grid[:, None]
    batch = minimise(data, begin, fit.objective.plain)
    best, values = batch.theta, batch.value
    for shift in (1, -1):
        beside = np.roll(best, shift, axis=0)
        beside[:, p] = grid
        again = minimise(data, beside[:, None], fit.objective.plain)
        better = again.value < values
        best, values = np.where(better[:, None], again.theta, best), np.where(better, again.value, values)
    return values


def _read(fit: Fit, symbol: str, level: float, grid: Array, values: Array) -> Profile:
    middle = int(np.argmin(values))
    lowest = min(float(values[middle]), _optimum(fit))
    threshold = lowest + _allowance(fit, level)
    above = values > threshold
    left, right = np.flatnonzero(above[:middle]), np.flatnonzero(above[middle + 1 :]) + middle + 1
    low = _crossing(grid, values, threshold, int(left[-1]), int(left[-1]) + 1) if len(left) else float(grid[0])
    high = _crossing(grid, values, threshold, int(right[0]), int(right[0]) - 1) if len(right) else float(grid[-1])
    return Profile(
        symbol=symbol,
        level=level,
        grid=grid,
        values=values,
        threshold=threshold,
        low=low,
        high=high,
        open_low=not len(left),
        open_high=not len(right),
        beaten=bool(lowest < _optimum(fit) * (1 - _WORSE)),
    )


def _optimum(fit: Fit) -> float:
    return float(model(fit.data, fit.theta[None], Side(fit.log_y, fit.weights), fit.objective.plain).value[0])


def _allowance(fit: Fit, level: float) -> float:
    """How much worse than the optimum the edge of the interval is."""
    if fit.freedom <= 0:
        return float("inf")
    quantile = _quantile(fit, level)
    objective, factor = smooth(fit)
    response = objective.respond(fit.log_y, fit.log_y - fit.residuals)
    bend = float(np.sum(fit.weights * (response.major if fit.objective.name == "ls" else response.bend))) * factor
    squares = float(np.sum(scores_of(fit) ** 2 / np.maximum(fit.weights, np.finfo(float).tiny)))
    used = int(np.count_nonzero(fit.weights))
    return 0.5 * quantile**2 * squares / bend * fit.objective.unit * used / fit.freedom


def _quantile(fit: Fit, level: float) -> float:
    """Of Student's t with the fit's degrees of freedom."""
    from scipy.special import stdtrit  # not at import: a cold command line must not pay for it

    return float(stdtrit(max(fit.freedom, 1), (1 + level) / 2))


def _crossing(grid: Array, values: Array, threshold: float, outside: int, inside: int) -> float:
    """Where the profile crosses the threshold between two neighbours: its root is nearly straight there."""
    floor = min(float(values.min()), threshold)
    here, there, edge = (max(v - floor, 0.0) ** 0.5 for v in (values[inside], values[outside], threshold))
    return float(grid[inside] + (edge - here) / (there - here) * (grid[outside] - grid[inside]))
