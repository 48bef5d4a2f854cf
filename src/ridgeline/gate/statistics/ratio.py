"""Candidate over baseline: how much of a score is kept.

Zeros and ones: the score interval of the ratio of two proportions on the same examples (Tang, Tang and Chan 2003,
Statistics in Medicine 22; the constrained estimate of Nam and Blackwelder 2002), which stays open when no example is
discordant. Other scores: Fieller's interval (1954), the ratios r at which the mean of candidate - r * baseline is not
apart from zero. The estimate and its ends are ratio minus one: the relative change.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgeline.gate.statistics.clusters import Labels, clustered_mean, design_effect, effective
from ridgeline.gate.statistics.compare import is_binary
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.paired import paired_mean
from ridgeline.gate.statistics.quantiles import normal

Floats = NDArray[np.float64]
_ROUNDING = 1e-12
_WIDEST = 1e6  # a ratio beyond which nothing is said
EXACT = 2000  # examples, from where the normal limit is within a point


@dataclass(frozen=True)
class Counts:
    """Examples by who was right: both, the candidate alone, the baseline alone, of ``n``. Counts need not be whole."""

    both: float
    gained: float
    lost: float
    n: float


def counts_of(baseline: Floats, candidate: Floats) -> Counts:
    """The counts of two columns of zeros and ones."""
    both = float((baseline * candidate).sum())
    return Counts(both, float(candidate.sum()) - both, float(baseline.sum()) - both, float(len(baseline)))


def ratio_statistic(counts: Counts, ratio: float) -> float:
    """The score statistic at a hypothetical ``ratio`` above zero; it falls as the ratio grows.

    With x right in the candidate and y in the baseline: (x - ratio*y) over the square root of its variance where the
    rates are those most likely under the ratio.
    """
    right = counts.both + counts.gained + counts.lost
    distance = counts.both + counts.gained - ratio * (counts.both + counts.lost)
    if distance == 0 or not right:
        return 0.0
    some, shift = right / counts.n, (1 - ratio) * right / counts.n
    linear = -((1 + ratio) * shift * (counts.both + counts.lost) + some * (counts.gained + counts.lost))
    square, constant = (1 + ratio) * right, counts.lost * shift * some
    lost = (np.sqrt(max(linear**2 - 4 * square * constant, 0.0)) - linear) / (2 * square)
    both = (some - (1 + ratio) * lost) / ratio
    variance = counts.n * ratio * ((1 + ratio) * (both + lost) - 2 * both)
    return float(distance / np.sqrt(variance)) if variance > 0 else float(np.copysign(np.inf, distance))


def _binary(counts: Counts, shape: Interval) -> Interval:
    from scipy.optimize import brentq

    base = counts.both + counts.lost
    if not base or not counts.both + counts.gained:
        why = f"no example is right in the {'candidate' if base else 'baseline'}"
        return Interval(-1.0 if base else 0.0, -1.0, np.inf, shape.n, shape.alpha, shape.method, shape.clusters, why)
    limit, middle = normal(shape.alpha), (counts.both + counts.gained) / base
    low = brentq(lambda ratio: ratio_statistic(counts, ratio) - limit, 1 / _WIDEST, middle)
    above = ratio_statistic(counts, _WIDEST) + limit
    high = np.inf if above > 0 else brentq(lambda ratio: ratio_statistic(counts, ratio) + limit, middle, _WIDEST)
    ends = middle - 1, float(low) - 1, float(high) - 1
    return Interval(*ends, shape.n, shape.alpha, shape.method, shape.clusters)


def _fieller(baseline: Floats, candidate: Floats, shape: Interval, groups: Labels | None) -> Interval:
    """The ratios at which Student's t on candidate - r * baseline stays within its quantile, found by bisection."""
    from scipy.optimize import brentq

    def bound(ratio: float, side: int) -> float:
        difference = candidate - ratio * baseline
        at = paired_mean(difference, shape.alpha) if groups is None else clustered_mean(difference, groups, shape.alpha)
        return (at.low if side < 0 else at.high) / abs(float(baseline.mean()))

    middle = float(candidate.mean() / baseline.mean())
    ends = []
    for side in (-1, 1):
        step = 1e-3
        while step < _WIDEST and bound(middle + side * step, side) * side > 0:
            step *= 2
        ends.append(side * np.inf if step >= _WIDEST
                    else float(brentq(bound, middle, middle + side * step, args=(side,))) - 1)  # fmt: skip
    return Interval(middle - 1, ends[0], ends[1], shape.n, shape.alpha, shape.method, shape.clusters)


def paired_ratio(baseline: Floats, candidate: Floats, alpha: float, groups: Labels | None = None) -> Interval:
    """Candidate over baseline, minus one. A baseline that is not above zero for certain is no evidence."""
    n, binary = len(baseline), is_binary(baseline, candidate)
    grouped = groups is not None and len(np.unique(groups)) < n
    method = "score interval of the paired ratio" if binary else "Fieller's interval"
    count = len(np.unique(groups)) if grouped and groups is not None else None
    method += " on effective counts" if grouped and binary else ""
    shape = Interval(0.0, -np.inf, np.inf, n, alpha, method, count)
    if n < 2 or count == 1:
        return _nothing(shape, "one group" if count == 1 else "fewer than two pairs")
    if binary:
        counts = counts_of(baseline, candidate)
        if grouped and groups is not None:
            size = _effective(baseline, candidate, groups, alpha)
            counts = Counts(*(size / n * value for value in (counts.both, counts.gained, counts.lost, counts.n)))
        return _binary(counts, shape)
    level = paired_mean(baseline, alpha) if not grouped or groups is None else clustered_mean(baseline, groups, alpha)
    if np.array_equal(baseline, candidate):
        return _nothing(shape, "all differences are equal: no variance to judge by")
    if not level.low > 0 and not level.high < 0:
        return _nothing(shape, "the baseline's mean cannot be told from zero")
    return _fieller(baseline, candidate, shape, groups if grouped else None)


def _nothing(shape: Interval, why: str) -> Interval:
    return Interval(0.0, -np.inf, np.inf, shape.n, shape.alpha, shape.method, shape.clusters, why)


def _effective(baseline: Floats, candidate: Floats, groups: Labels, alpha: float) -> float:
    ratio = float(candidate.mean() / baseline.mean()) if baseline.any() else 1.0
    return effective(candidate - ratio * baseline, groups, alpha)[0]


def ratio_variance(baseline: Floats, candidate: Floats, groups: Labels | None = None) -> float:
    """The variance of one pair's part of the ratio, by the delta method, times the design effect of groups."""
    if not baseline.mean():
        return float("inf")
    ratio = float(candidate.mean() / baseline.mean())
    part = (candidate - ratio * baseline) / float(baseline.mean())
    return float(part.var()) * (1.0 if groups is None else design_effect(part, groups))


def rule_passes(kept: float, digits: int, least: float) -> bool:
    """The rule of a rounded ratio: ``round(candidate / baseline, digits) >= least``."""
    return round(kept, digits) >= least


def rule_probability(data: tuple[int, float, float], recovery: float, *, digits: int = 2, least: float = 0.95) -> float:
    """How often the rule of a rounded ratio passes a candidate whose true ratio is ``recovery``.

    Summed exactly up to `EXACT` examples, whose cost grows faster than their square; by the normal limit above.
    ``data`` holds the number of examples, the baseline's true rate, and the share of examples that the candidate alone
    gets right; those that the baseline alone gets right then follow. Raises `AssertionError` for rates that no pair of
    runs can have.
    """
    from scipy.stats import binom

    n, right, gained = data
    lost = right * (1 - recovery) + gained
    assert 0 <= gained <= 1 - right + _ROUNDING, gained
    assert 0 <= lost <= right + _ROUNDING, lost
    if n > EXACT:
        return _normal_probability(data, lost, least - 0.5 * 10.0**-digits)
    total = 0.0
    spread = np.sqrt(n * right * (1 - right))
    for base in range(max(1, int(n * right - 9 * spread)), min(n, int(n * right + 9 * spread) + 1) + 1):
        kept = binom.pmf(np.arange(base + 1), base, max(0.0, 1 - lost / right))
        more = binom.pmf(np.arange(n - base + 1), n - base, min(1.0, gained / (1 - right))) if right < 1 else np.ones(1)
        both = np.convolve(kept, more)
        first = _first_pass(base, digits, least)
        total += float(binom.pmf(base, n, right)) * float(both[first:].sum())
    return total


def _normal_probability(data: tuple[int, float, float], lost: float, threshold: float) -> float:
    """The chance that candidate - threshold * baseline is not below zero on average."""
    from scipy.stats import norm

    n, right, gained = data
    cand, both = right - lost + gained, right - lost
    mean = cand - threshold * right
    square = cand - 2 * threshold * both + threshold**2 * right
    return float(norm.sf(-mean * np.sqrt(n / (square - mean**2))))


def _first_pass(base: int, digits: int, least: float) -> int:
    """The smallest count of right answers that the rule passes for a baseline of ``base``."""
    count = max(0, int((least - 10.0**-digits) * base))
    while not rule_passes(count / base, digits, least):
        count += 1
    return count
