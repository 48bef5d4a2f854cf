"""Whether confidences mean what they say: the squared calibration error without the bias of bins, and its difference.

Binned calibration errors are biased upwards, and the bias does not cancel between two models: a calibrated model's
bootstrap interval of ECE covers zero in none of a thousand runs. The U-statistic of the squared error,

    T = sum_b (n_b / n) (S_b^2 - Q_b) / (n_b (n_b - 1)),  S_b, Q_b: sum and sum of squares of U = correct - confidence,

has no bias in a bin, and its variance a closed form. Bins hold equal numbers of examples: by the middle rank of ties,
so that equal confidences stay together. Errors are shown as a signed root: the root mean square error of a
confidence, below zero where the estimate of its square is.
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.gate.statistics.clusters import Labels, clustered_mean
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.paired import paired_mean
from ridgeline.gate.statistics.quantiles import normal

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
BINS = 15
LEAST = 1_000  # examples, below which coverage falls under its level and a verdict is refused
SEED = 0


def bins_for(n: int) -> int:
    """At least 15 bins, and half the root of ``n``: bias within a bin falls as 1 / bins^2, noise as 1 / root n."""
    return max(BINS, round(sqrt(n) / 2))


def equal_mass(confidence: Floats, bins: int) -> Codes:
    """The bin of each example by the middle rank of its ties: equal confidences share one, bins may be empty."""
    from scipy.stats import rankdata

    found: Codes = np.floor(bins * (rankdata(confidence) - 0.5) / len(confidence)).astype(np.int64)
    return found


@dataclass(frozen=True)
class _Bins:
    """The examples of one run in its bins. ``own`` is the U-statistic of a bin, zero where it holds one example."""

    code: Codes
    n: Floats
    residual: Floats
    centred: Floats
    own: Floats

    @property
    def mean(self) -> Floats:
        """The mean residual of each bin."""
        return np.bincount(self.code, weights=self.residual) / np.maximum(self.n, 1)

    @property
    def value(self) -> float:
        return float((self.n * self.own).sum() / self.n.sum())

    @property
    def spread(self) -> Floats:
        squares = np.bincount(self.code, weights=self.centred**2, minlength=len(self.n))
        return squares / np.maximum(self.n - 1, 1)

    @property
    def variance(self) -> float:
        """Exact for U-statistics of a product kernel, with the bin's own term for the squared mean."""
        kept = self.n > 1
        n, spread = self.n[kept], self.spread[kept]
        mean = np.maximum(self.own[kept], 0)
        terms = 4 * mean * spread / n + 2 * spread**2 / (n * (n - 1))
        return float(((n / self.n.sum()) ** 2 * terms).sum())

    @property
    def slope(self) -> float:
        """How much the variance grows per squared calibration error."""
        return float(4 * (self.n * self.spread).sum() / self.n.sum() ** 2)


def _binned(confidence: Floats, correct: Floats) -> _Bins:
    code = equal_mass(confidence, bins_for(len(confidence)))
    residual = correct - confidence
    n = np.bincount(code).astype(np.float64)
    total, squares = np.bincount(code, weights=residual), np.bincount(code, weights=residual**2)
    mean = total / np.maximum(n, 1)
    own = (total**2 - squares) / np.maximum(n * (n - 1), 1)
    return _Bins(code, n, residual, residual - mean[code], np.where(n > 1, own, 0.0))


def skipped_bins(confidence: Floats) -> int:
    """Bins of one example, which have no pair to estimate from and are left out of the error."""
    code = equal_mass(confidence, bins_for(len(confidence)))
    return int(np.count_nonzero(np.bincount(code) == 1))


def calibration(confidence: Floats, correct: Floats, alpha: float) -> Interval:
    """Minus the root-mean-square calibration error, so that higher is better: compare with minus the error tolerated.

    Fewer than 1,000 examples are no evidence. Raises `InputError` for NaN, confidences outside [0, 1] and answers that
    are not 0 or 1.
    """
    _checked(confidence, correct)
    found = _binned(confidence, correct)
    method = f"L2 U-statistic, {bins_for(len(confidence))} bins"
    return _signed(-found.value, found.variance, (found.slope, found.slope), _shape(len(confidence), alpha, method))


def calibration_difference(
    base: Floats, base_correct: Floats, candidate: Floats, candidate_correct: Floats, alpha: float
) -> Interval:
    """How much less calibration error the candidate has: the signed root of the difference of squared errors.

    A margin ``m`` tolerates a squared error larger by ``m**2``. Each run is cut into its own bins; examples that share
    a bin in both carry the covariance. Fewer than 1,000 pairs are no evidence. Raises `InputError` as `calibration`
    does, and for runs of unequal length.
    """
    _checked(base, base_correct)
    _checked(candidate, candidate_correct)
    if len(base) != len(candidate):
        raise InputError.expected(f"{len(base)} paired confidences", len(candidate), where="the candidate")
    one, other = _binned(base, base_correct), _binned(candidate, candidate_correct)
    middle, variance = one.value - other.value, _variance(one, other)
    apart = float(((other.residual - one.residual) ** 2).mean())
    slope = other.slope * min(1.0, apart / (abs(middle) or 1.0))  # two runs that agree share their noise
    return _signed(middle, variance, (slope, 0.0), _shape(len(base), alpha, "L2 U-statistics, paired"))


def _variance(one: _Bins, other: _Bins) -> float:
    """Of the difference of two U-statistics over the same examples.

    The part of the mean errors and the part of the noise alone, each from products of the residuals of both runs by the
    cells of their bins. Squares of one example's own noise are taken out, so neither part is biased; the first is a
    quadratic form and not below zero.
    """
    means, noises = [], []
    for left, right, sign in ((one, one, 1), (other, other, 1), (one, other, -2)):
        mean, noise = _products(left, right)
        means.append(sign * mean)
        noises.append(sign * noise)
    return max(sum(means), 0.0) + max(sum(noises), 0.0)


def _products(one: _Bins, other: _Bins) -> tuple[float, float]:
    """The covariance of two U-statistics: 4 mu mu' s / n^2 summed over examples, and 2 s^2 over pairs."""
    n, width = len(one.code), len(other.n)
    cell, both = one.code * width + other.code, one.centred * other.centred
    sums = np.bincount(cell, weights=both, minlength=len(one.n) * width).reshape(-1, width)
    squares = np.bincount(cell, weights=both**2, minlength=sums.size).reshape(sums.shape)
    mean = np.outer(one.mean, other.mean) - sums / np.maximum(np.outer(one.n, other.n), 1)
    pairs = (sums**2 - squares) / np.outer(np.maximum(one.n - 1, 1), np.maximum(other.n - 1, 1))
    return 4 * float((sums * mean).sum()) / n**2, 2 * float(pairs.sum()) / n**2


def _shape(n: int, alpha: float, method: str) -> Interval:
    why = f"{n:,} examples of the {LEAST:,} that a calibration verdict needs" if n < LEAST else ""
    return Interval(0.0, 0.0, 0.0, n, alpha, method, degenerate=why)


def _signed(middle: float, variance: float, slopes: tuple[float, float], shape: Interval) -> Interval:
    """Where the distance is z standard errors *of the bound*: the variance grows by a slope per squared error.

    A sample with a small error has a small estimate of its variance too, and would bless too often.
    """
    z = normal(shape.alpha)
    below, above = (z**2 * slope / 2 for slope in slopes)
    low = middle - below - sqrt(below**2 + z**2 * variance)
    high = middle - above + sqrt(above**2 + z**2 * variance)
    why = shape.degenerate or ("" if variance > 0 else "no variance to judge by")
    return replace(shape, estimate=_root(middle), low=_root(low), high=_root(high), degenerate=why)


def _root(value: float) -> float:
    return float(np.copysign(abs(value) ** 0.5, value))


def in_the_large(confidence: Floats, correct: Floats, alpha: float, groups: Labels | None = None) -> Interval:
    """Mean confidence minus accuracy: above zero the model is more sure than it is right. Any n of two or more."""
    _checked(confidence, correct)
    return _mean(confidence - correct, alpha, groups)


def in_the_large_difference(
    base: Floats,
    base_correct: Floats,
    candidate: Floats,
    candidate_correct: Floats,
    alpha: float,
    groups: Labels | None = None,
) -> Interval:
    """The candidate's `in_the_large` minus the baseline's, paired. Neither sign is good: judge it by `both_sides`."""
    _checked(base, base_correct)
    _checked(candidate, candidate_correct)
    if len(base) != len(candidate):
        raise InputError.expected(f"{len(base)} paired confidences", len(candidate), where="the candidate")
    return _mean((candidate - candidate_correct) - (base - base_correct), alpha, groups)


def _mean(values: Floats, alpha: float, groups: Labels | None) -> Interval:
    if groups is not None and len(np.unique(groups)) < len(values):
        return clustered_mean(values, groups, alpha)
    return paired_mean(values, alpha)


def both_sides(found: Interval) -> Interval:
    """Minus the distance of a signed difference from zero, so that higher is better: two one-sided tests.

    Its lower bound is above minus the margin where both of them reject (Schuirmann 1987).
    """
    inside = found.low <= 0 <= found.high
    nearest = 0.0 if inside else -min(abs(found.low), abs(found.high))
    return replace(
        found, estimate=-abs(found.estimate), low=-max(abs(found.low), abs(found.high)), high=nearest,
        method=f"{found.method}, two one-sided tests",
    )  # fmt: skip


@dataclass(frozen=True)
class Bin:
    """A row of the reliability table: examples, mean confidence, accuracy with its Wilson interval, and the band.

    A calibrated model's accuracy lies between ``band_low`` and ``band_high`` with the level of the table.
    """

    n: int
    confidence: float
    accuracy: float
    low: float
    high: float
    band_low: float
    band_high: float


@dataclass(frozen=True)
class Reliability:
    """What is shown beside a verdict, never decided on.

    ``error`` is the expected calibration error over 15 bins of equal mass, ``if_calibrated`` its mean over resampled
    answers of a calibrated model with these confidences: the part of ``error`` that is bias.
    """

    bins: tuple[Bin, ...]
    error: float
    if_calibrated: float
    skipped: int


def reliability(confidence: Floats, correct: Floats, alpha: float, draws: int = 200, seed: int = SEED) -> Reliability:
    """The reliability table over 15 bins of equal mass; empty bins have no row. ``alpha`` is one-sided."""
    from statsmodels.stats.proportion import proportion_confint

    _checked(confidence, correct)
    code = np.unique(equal_mass(confidence, BINS), return_inverse=True)[1]
    n = np.bincount(code)
    mean = np.bincount(code, weights=confidence) / n
    hits = np.bincount(code, weights=correct)
    rng = np.random.default_rng(seed)
    drawn = np.stack([np.bincount(code, weights=rng.random(len(code)) < confidence) / n for _ in range(draws)])
    band = np.quantile(drawn, [alpha, 1 - alpha], axis=0)
    low, high = proportion_confint(hits, n, alpha=2 * alpha, method="wilson")
    rows = zip(n, mean, hits / n, low, high, *band, strict=True)
    bins = tuple(Bin(int(first), *map(float, rest)) for first, *rest in rows)
    share = n / n.sum()
    expected = float((np.abs(drawn - mean) @ share).mean())
    return Reliability(bins, float(np.abs(hits / n - mean) @ share), expected, skipped_bins(confidence))


def _checked(confidence: Floats, correct: Floats) -> None:
    if len(confidence) != len(correct):
        raise InputError.expected(f"{len(confidence)} answers, one a confidence", len(correct), where="the answers")
    if len(confidence) == 0:
        raise InputError.expected("at least one confidence", 0, where="the confidences")
    wrong = ~((confidence >= 0) & (confidence <= 1))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError.expected("confidences in [0, 1]", float(confidence[first]), where=f"confidence {first}")
    if not np.isin(correct, (0, 1)).all():
        got = float(correct[~np.isin(correct, (0, 1))][0])
        raise InputError.expected("answers of 0 or 1", got, where="the answers")
