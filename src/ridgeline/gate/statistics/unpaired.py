"""Two rates from different examples: a field sample against an offline one.

Newcombe's hybrid score interval (1998, Statistics in Medicine 17, method 10), which stays open where no event was seen;
in groups, on effective counts (Korn and Graubard 1998). The score interval of Miettinen and Nurminen as StatsModels has
it is undefined there.
"""

from dataclasses import dataclass
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from ridgeline.gate.statistics.catastrophe import clopper_pearson
from ridgeline.gate.statistics.clusters import Labels, effective
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.quantiles import normal
from ridgeline.gate.statistics.sizes import POWER

_BOUND = 0.2  # a rate is taken at its 80% bound
_MOST = 1e8  # examples, beyond which more do not matter


@dataclass(frozen=True)
class Count:
    """``events`` of ``n`` examples that carry as much as ``size`` independent ones, in ``clusters`` groups.

    ``why`` says why they are no evidence; it is empty otherwise.
    """

    events: int
    n: int
    size: float
    clusters: int | None = None
    why: str = ""

    @property
    def rate(self) -> float:
        """The share of events; zero of none."""
        return self.events / self.n if self.n else 0.0

    @property
    def effect(self) -> float:
        """How many examples carry as much as one independent one."""
        return self.n / max(self.size, 1.0)

    @property
    def cautious(self) -> float:
        """The rate at its 80% bound towards one half, where its variance is largest."""
        low, high = clopper_pearson(self.rate * self.size, max(self.size, 1.0), _BOUND)
        return min(max(0.5, low), high)


def counted(events: NDArray[np.bool_], groups: Labels | None, alpha: float) -> Count:
    """The events of some examples. None at all, or one group, is no evidence."""
    n, seen = len(events), int(events.sum())
    if not n:
        return Count(0, 0, 0.0, why="no examples")
    if groups is None or len(np.unique(groups.astype(str))) == n > 1:
        return Count(seen, n, float(n))
    names = groups.astype(str)
    found = len(np.unique(names))
    if found < 2:
        return Count(seen, n, 1.0, found, "one cluster")
    return Count(seen, n, effective(events.astype(np.float64), names.astype(object), alpha)[0], found)


def difference_of_rates(first: Count, second: Count, alpha: float) -> Interval:
    """The first rate minus the second; no evidence where either is none."""
    from statsmodels.stats.proportion import confint_proportions_2indep

    n = min(first.n, second.n)
    clusters = min((c.clusters for c in (first, second) if c.clusters is not None), default=None)
    method = "Newcombe" if clusters is None else "Newcombe on effective counts"
    middle = first.rate - second.rate
    if why := first.why or second.why:
        return Interval(middle, -1.0, 1.0, n, alpha, method, clusters, why)
    pairs = [(count.rate * count.size, count.size) for count in (first, second)]
    low, high = confint_proportions_2indep(*pairs[0], *pairs[1], method="newcomb", compare="diff", alpha=2 * alpha)
    return Interval(middle, float(low), float(high), n, alpha, method, clusters)


def field_needed(like: Count, offline: Count, margin: float, *, alpha: float, power: float = POWER) -> float:
    """Field examples that show a margin kept if the rates are equal; infinite where the offline sample is too small.

    The first n at which Newcombe's half width and the spread that ``power`` asks for are inside the margin. ``like`` is
    the sample that says what a field example is worth: its rate and its design effect.
    """
    if not offline.size or not like.size:
        return inf
    level, more = normal(alpha), normal(1 - power)

    def missing(n: float) -> float:
        below = like.cautious - _wilson(like.cautious, n, -level)
        above = _wilson(offline.cautious, offline.size, level) - offline.cautious
        spread = sum(p * (1 - p) / size for p, size in ((like.cautious, n), (offline.cautious, offline.size)))
        return float(np.hypot(below, above) + more * spread**0.5 - margin)

    low, high = 1.0, _MOST
    if missing(high) > 0:
        return inf
    while high > low * (1 + 1e-6):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if missing(middle) > 0 else (low, middle)
    return ceil(high * like.effect)


def _wilson(rate: float, n: float, level: float) -> float:
    """The end of Wilson's score interval on the side of the quantile's sign."""
    square = level**2 / n
    return float((rate + square / 2 + level * (rate * (1 - rate) / n + square / (4 * n)) ** 0.5) / (1 + square))


def spent(alpha: float, look: int) -> float:
    """The level of one look of many, whose number need not be known: alpha times 6 / (pi look)^2, which adds up to it.

    A union bound, so that all looks together err with probability alpha at most.
    """
    return alpha * 6 / (np.pi * look) ** 2
