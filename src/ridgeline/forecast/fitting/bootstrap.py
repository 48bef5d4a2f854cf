"""Bootstrap of a fitted law: refits of resampled ladders, all in one batch, the failed ones counted.

``point`` draws runs with replacement, ``group`` whole groups (budgets, recipes, seeds: errors that runs share stay
shared), ``residual`` keeps the runs and draws their residuals. A probe of the first resamples follows every start that
variable projection names; where another basin wins there, all resamples start from that one too.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.forecast.fitting.fit import Fit, degenerate, degenerates
from ridgeline.forecast.fitting.newton import Batch, Data, minimise
from ridgeline.forecast.fitting.noise import groups
from ridgeline.forecast.form import Array, Columns, Form

Method = Literal["point", "group", "residual"]
_PROBE = 32  # resamples that are fitted from every start
_BETTER = 1e-7  # relative: another basin, not rounding
_EXTRA = 3  # starts beside the fit's own
_LIFT = 10.0  # in ln: a start leaves a lower bound by so much, for there the objective is flat


@dataclass(frozen=True)
class Draws:
    """Refits of resampled ladders.

    ``theta`` (B, P) holds the refits that converged, ``value`` (B,) their objective, ``failed`` counts the others
    and ``degenerate`` (B,) marks those with a constant on its bound or an exponent that only bends. ``starts`` is how
    many starts each resample had.
    """

    fit: Fit
    method: Method
    theta: Array
    value: Array
    failed: int
    degenerate: NDArray[np.bool_]
    starts: int
    seed: int

    @property
    def count(self) -> int:
        """The resamples asked for."""
        return len(self.theta) + self.failed

    @property
    def constants(self) -> dict[str, Array]:
        """The natural constants by symbol, each (B,)."""
        return self.fit.form.natural(self.theta)

    def log_loss(self, columns: Columns) -> Array:
        """ln of the prediction of every refit at columns of shape (m,): (B, m)."""
        return self.fit.form.log_loss(self.theta, columns)

    def predict(self, columns: Columns, *, noise: bool = False) -> Array:
        """Predictions (B, m), with ``noise`` those of a new run: a residual of the fit added to each."""
        found = self.log_loss(columns)
        if noise:
            found = found + run_noise(self.fit, columns, len(self.theta), self.seed)
        return np.exp(found)

    def interval(self, columns: Columns, level: float = 0.95, noise: bool = False) -> tuple[Array, Array]:
        """The central percentile interval of the prediction at columns of shape (m,): low and high, each (m,).

        ``noise`` makes it one of a new run instead of one of the law.
        """
        if not 0 < level < 1:
            raise InputError.expected("a level between 0 and 1", level, where="the interval")
        low, high = np.quantile(self.predict(columns, noise=noise), [(1 - level) / 2, (1 + level) / 2], axis=0)
        return low, high


def bootstrap(fit: Fit, method: Method = "point", count: int = 1000, seed: int = 0, by: str = "budget") -> Draws:
    """``count`` refits. ``by`` names the groups of ``group``: a text column, or bins of compute for ``budget``.

    Raises `InputError` for an unknown method, for groups that are not there, and for fewer than two groups.
    """
    if method not in get_args(Method):
        raise InputError.expected("one of " + ", ".join(get_args(Method)), method, where="the bootstrap")
    data = _resampled(fit, method, count, np.random.default_rng(seed), by)
    starts = _starts(fit, data)
    batch = minimise(data, starts, fit.objective.plain)
    needed = len(fit.form.parameters) - len(fit.at_bound)
    weights = np.broadcast_to(data.weights, (count, data.weights.shape[-1]))
    good = batch.converged & (np.count_nonzero(weights, axis=1) >= needed)
    theta = batch.theta[good]
    return Draws(
        fit=fit,
        method=method,
        theta=theta,
        value=batch.value[good],
        failed=int(count - good.sum()),
        degenerate=degenerates(fit.form, theta),
        starts=len(starts),
        seed=seed,
    )


def run_noise(fit: Fit, columns: Columns, count: int, seed: int) -> Array:
    """Errors of ln L of new runs at columns (m,), drawn from the fit's residuals: (count, m).

    Residuals are widened for the constants that were fitted. Under noise that varies with size they are drawn on the
    scale where they are alike, and take the size of the new run.
    """
    size = len(next(iter(columns.values())))
    spread = standard_residuals(fit)
    rng = np.random.default_rng([seed, 1])
    drawn = spread[rng.integers(len(spread), size=(count, size))]
    if fit.noise is not None and fit.noise.kind == "size":
        centre = np.average(np.log(fit.columns["N"]))
        drawn = drawn * np.exp(-fit.noise.constants["q"] * (np.log(columns["N"]) - centre))
    return drawn


def standard_residuals(fit: Fit) -> Array:
    """Residuals of ln L on the scale where they are alike, widened by sqrt(n/(n - P)), of the runs in use."""
    used = fit.weights > 0
    scale = np.sqrt(fit.weights[used]) if fit.noise is not None and fit.noise.kind == "size" else 1.0
    widened = fit.residuals[used] * scale * np.sqrt(used.sum() / max(fit.freedom, 1))
    found: Array = widened
    return found


def _resampled(fit: Fit, method: Method, count: int, rng: np.random.Generator, by: str) -> Data:
    n = len(fit.log_y)
    base = fit.data
    if method == "residual":
        spread = standard_residuals(fit)
        drawn = spread[rng.integers(len(spread), size=(count, n))]
        if fit.noise is not None and fit.noise.kind == "size":
            drawn = drawn / np.sqrt(fit.weights)
        log_y = fit.log_y - fit.residuals + drawn - spread.mean()
        return Data(fit.form, fit.columns, log_y, fit.weights, base.coupling)
    if method == "point":
        times = rng.multinomial(n, np.full(n, 1 / n), size=count)
    else:
        group = groups(fit.points, by)
        size = int(group.max()) + 1
        if size < 2:
            raise InputError.expected("two groups or more", size, where=by, hint="use the point bootstrap")
        times = rng.multinomial(size, np.full(size, 1 / size), size=count)[:, group]
    return Data(fit.form, fit.columns, fit.log_y, times * fit.weights, base.coupling)


def _starts(fit: Fit, data: Data) -> Array:
    """The fit's optimum, and what beats it in the first resamples, (S, P)."""
    own = _lifted(fit.form, np.array([basin.theta for basin in fit.basins[: _EXTRA + 1]]))
    rows = np.arange(min(_PROBE, max(len(a) for a in (data.log_y, data.weights) if a.ndim == 2)))
    side = data.part(rows)
    probe = Data(fit.form, fit.columns, side.log_y, side.weights, data.coupling)
    with np.errstate(all="ignore"):  # wild cells of a grid overflow and lose
        more = fit.form.starts(fit.columns, fit.log_y, fit.weights)
    batch = minimise(probe, np.concatenate([own[:1], own[1:], more]), fit.objective.plain)
    return np.concatenate([own[:1], _lifted(fit.form, _winners(fit.form, batch))])


def _winners(form: Form, batch: Batch) -> Array:
    """Ends that beat the one from the first start: of each kind of degeneracy the one that wins by most, (W, P)."""
    with np.errstate(all="ignore"):  # a fit without residuals has nothing to gain
        gain = 1 - batch.value / batch.values[:, 0]
    found: dict[str, tuple[float, Array]] = {}
    for row in np.flatnonzero((batch.start > 0) & (gain > _BETTER)):
        kind = degenerate(form, batch.theta[row])
        if gain[row] > found.get(kind, (0.0, batch.theta[row]))[0]:
            found[kind] = (float(gain[row]), batch.theta[row])
    best = sorted(found.values(), key=lambda pair: -pair[0])[:_EXTRA]
    return np.array([theta for _, theta in best]).reshape(-1, batch.theta.shape[1])


def _lifted(form: Form, theta: Array) -> Array:
    low, _ = form.box
    logs = np.array([p.log for p in form.parameters])
    return np.where(logs & (theta < low + 1), low + _LIFT, theta)
