"""One law fitted to one ladder: constants, every basin that was found, and how well the data pin them down."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError, NotEnoughDataError
from ridgeline.core.law import CONSTANTS, Law
from ridgeline.core.quantity import Source, leaf
from ridgeline.forecast.fitting.newton import Batch, Data, Side, minimise, model
from ridgeline.forecast.fitting.noise import NoiseModel, estimate, groups
from ridgeline.forecast.fitting.objective import HUBER, LOGLS, Objective
from ridgeline.forecast.form import Array, Columns, Form
from ridgeline.forecast.points import Points

_SAME = 1e-5  # ends whose ln L is closer than this at every run are one basin
_EDGE = 1e-9  # of a bound
STEEP = 1.5  # an exponent above it bends within the ladder only: the term is a kink, not a law
_NORMAL_MAD = 0.6745  # median absolute deviation of a standard normal
_SINGULAR = 1e-10  # curvature along an eigenvector of the scaled Hessian, whose diagonal is 1: less is none
_TAKES_PART = 1e-3  # component of a parameter in such a direction


@dataclass(frozen=True)
class Basin:
    """A local minimum of the objective. ``why`` says what is degenerate about it, empty where nothing is."""

    theta: Array
    value: float
    converged: bool
    why: str = ""


@dataclass(frozen=True)
class Fit:
    """A fitted law.

    ``theta`` (P,) are the internal parameters of ``form`` at the best of ``basins`` (best first), ``value`` the
    objective there. ``weights`` (n,) are those of the runs, with the noise model's. ``at_bound`` names the constants
    that sit on a bound.
    """

    form: Form
    points: Points
    objective: Objective
    theta: Array
    value: float
    basins: tuple[Basin, ...]
    at_bound: tuple[str, ...]
    weights: Array
    noise: NoiseModel | None = None

    @property
    def converged(self) -> bool:
        """Whether the best basin is a minimum: its promised further drop is below rounding."""
        return self.basins[0].converged

    @property
    def data(self) -> Data:
        """What was fitted, as the minimiser takes it."""
        coupling = self.noise.coupling if self.noise else None
        return Data(self.form, self.columns, self.log_y, self.weights, coupling)

    @cached_property
    def columns(self) -> Columns:
        """The columns that the form reads, each (n,)."""
        return inputs(self.points, self.form)

    @cached_property
    def log_y(self) -> Array:
        """ln of what the form predicts, (n,)."""
        return observed(self.points, self.form)

    @property
    def constants(self) -> dict[str, float]:
        """The fitted constants by symbol, in natural units."""
        return {symbol: float(value) for symbol, value in self.form.natural(self.theta).items()}

    def predict(self, columns: Columns) -> Array:
        """The predicted loss in nats (or what the form predicts) at columns of shape (m,)."""
        found: Array = np.exp(self.form.log_loss(self.theta, columns))
        return found

    @cached_property
    def residuals(self) -> Array:
        """ln(observed) - ln(predicted), (n,)."""
        found: Array = self.log_y - self.form.log_loss(self.theta, self.columns)
        return found

    @property
    def freedom(self) -> int:
        """Runs less the constants that are not on a bound."""
        return int(np.count_nonzero(self.weights)) - len(self.form.parameters) + len(self.at_bound)

    @cached_property
    def scatter(self) -> float:
        """Root-mean-square residual of ln L with the degrees of freedom taken off; nan where none are left."""
        if self.freedom <= 0:
            return float("nan")
        used = self.weights > 0
        return float(np.sqrt(np.sum(self.residuals[used] ** 2) / self.freedom))

    @cached_property
    def covariance(self) -> Array:
        """Of the internal parameters, (P, P): zero for one on a bound, infinite where the data do not identify it.

        Least squares of ln L and likelihood: sigma^2 times the inverse Hessian. Otherwise the sandwich of Huber 1967,
        robust to unequal variances, with the factor n/(n - P).
        """
        return covariance(self)

    @property
    def standard_errors(self) -> dict[str, float]:
        """Of the natural constants, by the delta method."""
        spread = np.sqrt(np.diag(self.covariance))
        natural = self.form.natural(self.theta)
        return {
            p.symbol: float(spread[i] * (natural[p.symbol] if p.log else 1.0))
            for i, p in enumerate(self.form.parameters)
        }

    @property
    def correlations(self) -> Array:
        """Of the internal parameters, (P, P); nan beside one on a bound or not identified."""
        spread = np.sqrt(np.diag(self.covariance))
        with np.errstate(all="ignore"):
            found: Array = self.covariance / np.outer(spread, spread)
        return found

    def law(self, slug: str) -> Law:
        """The fitted constants as a law for `ridgeline.arithmetic.laws`. Raises `InputError` for a fit without them."""
        missing = CONSTANTS[self.form.kind] - {*self.constants, *self.form.fixed}
        if missing:
            raise InputError.expected(f"a {self.form.kind} law with {sorted(missing)[0]}", self.form.slug, where=slug)
        path = self.points.source.path if self.points.source else "the ladder"
        source = Source(f"{self.form.title} fitted to {path}", f"{len(self.points)} runs, {self.objective.name}")
        units = {"E": "nat"}
        constants = {
            symbol: leaf(f"law.{slug}.{symbol.lower()}", value, units.get(symbol, "1"), "measured", source)
            for symbol, value in {**self.form.fixed, **self.constants}.items()
        }
        fitted = {}
        for key, column, unit in (("params", "N", "param"), ("tokens", "D", "token"), ("compute", "C", "FLOP")):
            if column in self.points.columns:
                ends = (float(np.min(self.points[column])), float(np.max(self.points[column])))
                low, high = (
                    leaf(f"law.{slug}.fitted.{key}.{end}", value, unit, "measured", source)
                    for end, value in zip(("low", "high"), ends, strict=True)
                )
                fitted[key] = (low, high)
        return Law(
            name=f"{self.form.title}, fitted",
            slug=slug,
            kind=self.form.kind,
            predicts="",
            aliases=(),
            params=self.points.params,
            constants=constants,
            fitted=fitted,
            source=source,
            note=self.form.valid,
            disagreements=(),
        )


def fit(
    points: Points,
    form: Form,
    objective: Objective = HUBER,
    weights: Array | None = None,
    *,
    by: str = "budget",
    starts: Array | None = None,
) -> Fit:
    """The best constants of a form for a ladder.

    ``weights`` (n,) multiply the loss of each run. ``by`` names the groups of the noise model ``group``. ``starts``
    (S, P) replaces the form's own variable projection. Every start is followed to its end and the basins are
    compared: the best is returned, `Fit.converged` says whether it is a minimum.

    Raises `InputError` for a ladder with fewer distinct runs than constants, for losses that have no logarithm and for
    weights that do not fit, and `NotEnoughDataError` where no start leads anywhere.
    """
    columns, log_y = inputs(points, form), observed(points, form)
    used = _weights(weights, len(points))
    _enough(columns, used, form, points)
    with np.errstate(all="ignore"):  # wild cells of a grid overflow and lose
        begin = form.starts(columns, log_y, used) if starts is None else np.atleast_2d(starts)
    data, noise = Data(form, columns, log_y, used), None
    if objective.name == "mle":
        group = groups(points, by) if objective.noise == "group" else None
        noise = estimate(objective.noise, data, begin, group)
        data = Data(form, columns, log_y, noise.weights, noise.coupling)
    basins = find_basins(data, begin, objective.plain)
    best = basins[0]
    return Fit(
        form=form,
        points=points,
        objective=objective,
        theta=best.theta,
        value=best.value,
        basins=basins,
        at_bound=bounds_met(form, best.theta),
        weights=data.weights,
        noise=noise,
    )


def inputs(points: Points, form: Form) -> dict[str, Array]:
    """The columns that a form reads, checked: finite and present. Raises `InputError` naming column and row."""
    found = {}
    for name in form.inputs:
        column = np.asarray(points[name], float)
        bad = np.flatnonzero(~np.isfinite(column))
        if len(bad):
            raise InputError.expected(f"a finite {name}", float(column[bad[0]]), where=_row(points, int(bad[0])))
        found[name] = column
    return found


def observed(points: Points, form: Form) -> Array:
    """ln of what the form predicts, (n,). Raises `InputError` for a value that is not finite and positive."""
    values = np.asarray(points[form.predicts], float)
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if len(bad):
        got = float(values[bad[0]])
        raise InputError.expected(f"a positive finite {form.predicts}", got, where=_row(points, int(bad[0])))
    found: Array = np.log(values)
    return found


def find_basins(data: Data, starts: Array, objective: Objective) -> tuple[Basin, ...]:
    """The distinct minima that starts (S, P) lead to, best first. Raises `NotEnoughDataError` where there is none."""
    ends = starts
    for stage in objective.path:
        batch = minimise(data, ends, stage)
        order = _distinct(data, batch)
        if not len(order):
            message = (
                f"Expected a start from which {data.form.title} can be fitted, got {len(starts)} of no finite loss"
            )
            raise NotEnoughDataError(message, hint="look for runs with absurd N, D or loss")
        ends, values, settled = batch.every[0, order], batch.values[0, order], batch.settled[0, order]
    if objective.name == "lad":  # the exact sum instead of the last Huber loss
        values = objective.total(data.log_y, data.form.log_loss(ends, data.columns), data.weights)
    found = [
        Basin(theta, float(value), bool(done), degenerate(data.form, theta))
        for theta, value, done in zip(ends, values, settled, strict=True)
    ]
    return tuple(sorted(found, key=lambda basin: basin.value))


def _distinct(data: Data, batch: Batch) -> list[int]:
    """The starts whose ends are apart, best first; of ends that are one, the one that settled."""
    values, settled = batch.values[0], batch.settled[0]
    curves = data.form.log_loss(batch.every[0], data.columns)
    found: list[int] = []
    for s in np.argsort(np.where(np.isfinite(values), values, np.inf), kind="stable"):
        if not np.isfinite(values[s]):
            break
        same = [i for i, f in enumerate(found) if np.max(np.abs(curves[s] - curves[f])) < _SAME]
        if not same:
            found.append(int(s))
        elif settled[s] and not settled[found[same[0]]]:
            found[same[0]] = int(s)
    return found


def bounds_met(form: Form, theta: Array) -> tuple[str, ...]:
    """The symbols of the constants on a bound."""
    return tuple(p.symbol for p, met in zip(form.parameters, _on_bound(form, theta), strict=True) if met)


def degenerate(form: Form, theta: Array) -> str:
    """What is degenerate about a point: constants on a bound, exponents that only bend within the ladder."""
    said = [f"{symbol} on its bound" for symbol in bounds_met(form, theta)]
    steep = _steep(form, theta)
    return ", ".join(said + [f"{p.symbol} above {STEEP:g}" for p, s in zip(form.parameters, steep, strict=True) if s])


def degenerates(form: Form, theta: Array) -> NDArray[np.bool_]:
    """Which of many points (B, P) are degenerate, (B,)."""
    found: NDArray[np.bool_] = np.any(_on_bound(form, theta) | _steep(form, theta), axis=-1)
    return found


def _on_bound(form: Form, theta: Array) -> NDArray[np.bool_]:
    low, high = form.box
    found: NDArray[np.bool_] = (theta <= low + _EDGE) | (theta >= high - _EDGE)
    return found


def _steep(form: Form, theta: Array) -> NDArray[np.bool_]:
    """Exponents of N and D above `STEEP`, as they act on the loss (a coupled form raises its bracket to gamma)."""
    free = form.kind == "coupled" and "gamma" in form.symbols
    outer = theta[..., form.symbols.index("gamma"), None] if free else form.fixed.get("gamma", 1.0)
    exponents = np.array([symbol in ("alpha", "beta") for symbol in form.symbols])
    found: NDArray[np.bool_] = exponents & (np.abs(theta) * outer > STEEP) & ~_on_bound(form, theta)
    return found


def smooth(of: Fit) -> tuple[Objective, float]:
    """The objective whose curvature stands for that of the fit, and the factor between them.

    A Huber loss much narrower than the residuals has its curvature from the few of them near zero. A window of the
    usual width for a density (n^-1/5) gives the same expectation with less noise; the factor undoes the widening.
    """
    if of.objective.name in ("logls", "mle"):
        return LOGLS, 1.0
    if not np.isfinite(of.objective.delta):
        return of.objective, 1.0
    spread = float(np.median(np.abs(of.residuals - np.median(of.residuals)))) / _NORMAL_MAD
    window = max(spread * len(of.residuals) ** -0.2, of.objective.delta)
    return Objective("huber", delta=window), of.objective.delta / window


def covariance(of: Fit) -> Array:
    """See `Fit.covariance`."""
    count = len(of.form.parameters)
    free = np.array([symbol not in of.at_bound for symbol in of.form.symbols])
    found = np.zeros((count, count))
    corner = np.ix_(free, free)
    objective, factor = smooth(of)
    local = model(of.data, of.theta[None], Side(of.log_y, of.weights), objective)
    if of.freedom <= 0:
        found[np.diag_indices(count)] = np.where(free, np.inf, 0.0)
        return found
    bread, loose = _inverse(local.hessian[0][corner] * factor)
    if objective is LOGLS:
        spread = bread * 2 * float(local.value[0]) / of.freedom
    else:
        scores = of.form.gradient(of.theta, of.columns)[1][:, free] * scores_of(of)[:, None]
        spread = bread @ (scores.T @ scores) @ bread * np.count_nonzero(of.weights) / of.freedom
    spread[loose] = spread[:, loose] = np.nan
    spread[loose, loose] = np.inf
    found[corner] = spread
    return found


def scores_of(of: Fit) -> Array:
    """The derivative of each run's loss by its ln L, (n,), for ``lad`` of the last Huber loss."""
    plain = Objective("huber", delta=of.objective.delta) if of.objective.name == "lad" else of.objective
    found: Array = plain.respond(of.log_y, of.log_y - of.residuals).slope * of.weights
    return found


def _inverse(matrix: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The inverse of a Hessian on what the data identify, and which parameters lie outside of that.

    Directions without curvature are left out; whatever takes part in one of them is not identified.
    """
    diagonal = np.diag(matrix)
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    bends, turns = np.linalg.eigh(matrix * np.outer(scale, scale))
    flat = bends < _SINGULAR
    loose = (scale == 0) | np.any(np.abs(turns[:, flat]) > _TAKES_PART, axis=1)
    inverse = (turns * np.where(flat, 0.0, 1 / np.where(flat, 1.0, bends))) @ turns.T
    found: Array = inverse * np.outer(scale, scale)
    return found, loose


def _weights(weights: Array | None, count: int) -> Array:
    if weights is None:
        return np.ones(count)
    found = np.asarray(weights, float)
    if found.shape != (count,) or not np.all(np.isfinite(found) & (found >= 0)) or not found.any():
        raise InputError.expected(f"{count} weights >= 0", found.tolist(), where="the weights")
    return found


def _enough(columns: Columns, weights: Array, form: Form, points: Points) -> None:
    rows = np.stack([columns[name] for name in form.inputs], axis=1)[weights > 0]
    distinct, needed = len(np.unique(rows, axis=0)), len(form.parameters)
    if distinct < needed:
        where = points.source.path if points.source else "the points"
        hint = f"{form.text} has {needed} constants; more runs at other sizes and budgets are needed"
        raise InputError.expected(f"at least {needed} distinct runs for {form.title}", distinct, where=where, hint=hint)


def _row(points: Points, index: int) -> str:
    path = points.source.path if points.source else "the points"
    return f"{path}, line {points.rows[index]}" if len(points.rows) else f"{path}, run {index + 1}"
