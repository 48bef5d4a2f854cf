"""Basins: every local optimum of the fits of several forms, with a weight and what each predicts, and how well.

A ladder of few runs has several optima whose losses agree and whose forecasts do not, and several forms that no run
tells apart yet. A basin's weight is a tempered likelihood: the evidence between basins counts as that of at most
`Options.trust` runs, because no form is the truth (the coarsened posterior of Miller and Dunson 2019). A form's share
goes by its best basin, so that a form does not gain by having many of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.forecast.buying.discrepancy import Discrepancy, Prior, coupling, estimate
from ridgeline.forecast.fitting.newton import Data, minimise
from ridgeline.forecast.fitting.objective import HUBER, LOGLS, Objective
from ridgeline.forecast.form import Array, Columns, Form

_GAUSS = 1.4826  # standard deviation over median absolute deviation, for Gaussian noise
_EFFICIENT = 1.345  # Huber 1964: the threshold in standard deviations that keeps 95% efficiency
_WIDE = 10.0  # half width of the prior of a parameter whose box has no end
_ALIKE = 0.1  # of the noise: two optima that predict closer than this everywhere are one
_SAME = 1e-5  # two searches that end closer than this in every parameter came to one optimum
_FAINT = 0.01  # a basin of less weight is not followed


@dataclass(frozen=True)
class Options:
    """How basins are found and weighed.

    ``noise`` is the standard deviation of ln L between runs that differ by the seed alone, assumed until residuals
    say otherwise, and worth ``noise_runs`` runs. ``trust``: see the module. ``resamples`` is how many random
    reweightings of the runs give starts, ``keep`` how many basins of a form are followed.
    """

    noise: float = 3e-3
    noise_runs: float = 2.0
    trust: float = 30.0
    resamples: int = 3
    keep: int = 4
    seed: int = 0


@dataclass(frozen=True)
class Basin:
    """A local optimum ``theta`` (P,) of runs ``seen``, its ``weight`` among all and the ``covariance`` of theta (P, P).

    ``residual`` and ``slopes`` are those of ln L on the runs, ``inverse`` (n, n) the inverse of their covariance.
    """

    form: Form
    theta: Array
    weight: float
    covariance: Array
    discrepancy: Discrepancy
    seen: Columns
    residual: Array
    slopes: Array
    inverse: Array

    def predict(self, columns: Columns) -> tuple[Array, Array, Array]:
        """ln L (n,) where the discrepancy is known, its covariance (n, n), and its derivatives by theta (n, P)."""
        value, slopes = self.form.gradient(self.theta, columns)
        own = {name: columns[name] for name in self.seen}
        reach = self.discrepancy.shared(own, self.seen)
        known = reach @ self.inverse
        apart = slopes - known @ self.slopes
        error = self.discrepancy.shared(own, own) - known @ reach.T + apart @ self.covariance @ apart.T
        return value + known @ self.residual, error, apart


@dataclass(frozen=True)
class Optima:
    """What the forms came to on runs: of each its optima (S, P), best first, and the scale of its residuals."""

    columns: Columns
    log_y: Array
    options: Options
    every: tuple[tuple[Form, Array, float], ...]
    _known: dict[tuple[int, int], tuple[Basin, float]] = field(default_factory=dict, repr=False)

    def basins(self, at: Columns) -> tuple[Basin, ...]:
        """The optima that differ on the runs or at ``at``, weighed, heaviest first.

        Raises `InputError` where no optimum predicts a finite loss.
        """
        found = [kept for place in range(len(self.every)) for kept in self._distinct(place, at)]
        if not found:
            raise InputError.expected("a form that fits the runs", "none", where="the design")
        weights = _weights([(b.form.slug, evidence) for b, evidence in found], len(self.log_y), self.options.trust)
        weights = np.where(weights >= _FAINT, weights, 0.0) / np.sum(weights[weights >= _FAINT])
        basins = [replace(b, weight=float(w)) for (b, _), w in zip(found, weights, strict=True) if w > 0]
        return tuple(sorted(basins, key=lambda basin: -basin.weight))

    def _distinct(self, place: int, at: Columns) -> list[tuple[Basin, float]]:
        """The first ``keep`` optima of a form that predict apart, with their log evidence."""
        form, thetas, scale = self.every[place]
        prior = Prior(self.options.noise, self.options.noise_runs)
        near = _ALIKE * self.options.noise
        kept, seen = list[tuple[Basin, float]](), list[Array]()
        for number, one in enumerate(thetas):
            where = np.concatenate([form.log_loss(one, self.columns), form.log_loss(one, at)])
            if not np.all(np.isfinite(where)) or any(np.max(np.abs(where - o)) < near for o in seen):
                continue
            seen.append(where)
            if (place, number) not in self._known:
                self._known[place, number] = _describe(form, one, self.columns, self.log_y, (scale, prior))
            kept.append(self._known[place, number])
            if len(kept) == self.options.keep:
                break
        return kept


def optima(columns: Columns, losses: Array, forms: Sequence[Form], options: Options) -> Optima:
    """The optima of every form on runs of ``losses`` (n,). Raises `InputError` without runs or forms."""
    if not forms or not len(losses):
        raise InputError.expected(
            "runs and forms to fit", f"{len(losses)} runs, {len(forms)} forms", where="the design"
        )
    log_y = np.log(losses)
    draws = [np.random.default_rng((options.seed, index)) for index in range(len(forms))]
    every = [_descended(form, columns, log_y, (options, draw)) for form, draw in zip(forms, draws, strict=True)]
    return Optima(columns, log_y, options, tuple(one for one in every if one is not None))


def find(columns: Columns, losses: Array, forms: Sequence[Form], at: Columns, options: Options) -> tuple[Basin, ...]:
    """The basins of every form on runs of ``losses`` (n,), heaviest first; ``at`` is where they must differ to count.

    Raises `InputError` without runs or forms, or where no start of any form leads anywhere.
    """
    return optima(columns, losses, forms, options).basins(at)


def predict(basins: Sequence[Basin], columns: Columns) -> tuple[Array, Array, Array]:
    """The weighted mean of ln L (n,), and its variance within (n,) and between (n,) basins.

    The sum of the two variances is the mean squared prediction error of the mean, without a new run's own noise.
    """
    weights = np.array([basin.weight for basin in basins])
    every = [basin.predict(columns) for basin in basins]
    values = np.array([value for value, _, _ in every])
    mean = weights @ values
    return mean, weights @ np.array([np.diag(error) for _, error, _ in every]), weights @ (values - mean) ** 2


def prior_precision(form: Form) -> Array:
    """The inverse variance (P,) of a uniform prior on the box of theta: the ridge where runs identify nothing."""
    low, high = form.box
    width = np.where(np.isfinite(high - low), high - low, 2 * _WIDE)
    precision: Array = 12.0 / width**2
    return precision


def covariance(slopes: Array, inverse: Array, ridge: Array) -> Array:
    """The inverse of J' K^-1 J + ridge, scaled to unit diagonal first: exponents and coefficients correlate."""
    information = slopes.T @ inverse @ slopes + np.diag(ridge)
    scale = np.sqrt(np.diag(information))
    found: Array = np.linalg.pinv(information / np.outer(scale, scale), hermitian=True) / np.outer(scale, scale)
    return found


def _descended(
    form: Form, columns: Columns, log_y: Array, how: tuple[Options, np.random.Generator]
) -> tuple[Form, Array, float] | None:
    """The optima of one form, best first, and the scale of its residuals; None where it has no start.

    Least squares find the scale, a Huber fit the outliers and the discrepancy, and a generalised Huber fit the rest.
    """
    options, draw = how
    starts = _starts(form, columns, log_y, options.resamples, draw)
    if not len(starts):
        return None
    theta, _ = _descend(Data(form, columns, log_y, np.ones(len(log_y))), starts, LOGLS)
    scale = _scale(form, theta[0], columns, log_y, options)
    huber = replace(HUBER, delta=_EFFICIENT * scale)
    theta, _ = _descend(Data(form, columns, log_y, np.ones(len(log_y))), theta, huber)
    residual = log_y - form.log_loss(theta[0], columns)
    prior = Prior(options.noise, options.noise_runs)
    shared, _ = estimate(residual, columns, _robust(residual, scale), prior, theta.shape[1])
    if shared.size > 0:
        data = Data(form, columns, log_y, np.ones(len(log_y)), coupling(shared, columns))
        theta, _ = _descend(data, theta, huber)
    return form, theta, scale


def _describe(
    form: Form, theta: Array, columns: Columns, log_y: Array, how: tuple[float, Prior]
) -> tuple[Basin, float]:
    scale, prior = how
    value, slopes = form.gradient(theta, columns)
    residual = log_y - value
    weights = _robust(residual, scale)
    found, likelihood = estimate(residual, columns, weights, prior, len(theta))
    inverse: Array = np.asarray(np.linalg.inv(found.seen(columns, weights)), float)
    ridge = prior_precision(form)
    spread = covariance(slopes, inverse, ridge)
    basin = Basin(form, theta, 1.0, spread, found, dict(columns), residual, slopes, inverse)
    identified = len(theta) - float(np.diag(spread) @ ridge)  # a constant that only its box bounds costs nothing
    return basin, likelihood - 0.5 * identified * float(np.log(len(log_y)))


def _robust(residual: Array, scale: float) -> Array:
    """Huber's weights of residuals."""
    weights: Array = np.minimum(1.0, _EFFICIENT * scale / np.maximum(np.abs(residual), np.finfo(float).tiny))
    return weights


def _starts(form: Form, columns: Columns, log_y: Array, resamples: int, draw: np.random.Generator) -> Array:
    """Starts of the runs as they are and of ``resamples`` exponential reweightings (the Bayesian bootstrap)."""
    found = [form.starts(columns, log_y, np.ones(len(log_y)))[:4]]
    found += [form.starts(columns, log_y, draw.exponential(size=len(log_y)))[:2] for _ in range(resamples)]
    low, high = form.box
    inside: Array = np.clip(np.concatenate(found), low, high)
    return inside[np.all(np.isfinite(inside), axis=1)]


def _descend(data: Data, starts: Array, objective: Objective) -> tuple[Array, Array]:
    """Every start followed to its own optimum, each once, the best first: theta (S, P) and values (S,)."""
    batch = minimise(data, starts, objective)
    theta, value = batch.every[0], batch.values[0]
    order = np.argsort(np.where(np.isfinite(value), value, np.inf), kind="stable")
    kept = list[int]()
    for i in order:
        if not any(np.allclose(theta[i], theta[j], rtol=_SAME, atol=_SAME) for j in kept):
            kept.append(int(i))
    return theta[kept], value[kept]


def _scale(form: Form, theta: Array, columns: Columns, log_y: Array, options: Options) -> float:
    """A robust standard deviation of the residuals, corrected for the parameters, never below the assumed noise."""
    residual = np.abs(log_y - form.log_loss(theta, columns))
    freedom = max(len(log_y) - len(theta), 1)
    return max(options.noise, float(_GAUSS * np.median(residual) * np.sqrt(len(log_y) / freedom)))


def _weights(found: Sequence[tuple[str, float]], runs: int, trust: float) -> NDArray[np.float64]:
    """Weights of basins from (form, log evidence): a form by its best basin, then its basins among themselves."""
    temper = trust / (trust + runs)
    evidence = temper * np.array([value for _, value in found])
    names = np.array([name for name, _ in found])
    raw = np.exp(evidence - np.max(evidence))
    weights = np.empty(len(found))
    for name in dict.fromkeys(names):
        own = names == name
        weights[own] = np.max(raw[own]) * raw[own] / np.sum(raw[own])
    result: NDArray[np.float64] = weights / np.sum(weights)
    return result
