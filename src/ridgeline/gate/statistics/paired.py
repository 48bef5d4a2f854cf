"""Differences of two runs on the same examples, without clusters.

Zeros and ones: the score interval of Tango (1998, Statistics in Medicine 17), which stays open when no example is
discordant. Other scores: Student's t on the differences, with the variance at the bound where they are skewed; for
losses too rare to be seen no interval repairs it, see `ridgeline.gate.statistics.catastrophe`. Arrays of counts give
arrays of ends: one element per slice.
"""

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.quantiles import normal, student

Floats = NDArray[np.float64]
_BISECTIONS = 60  # past the precision of a float on [-1, 1]
_ROUNDING = 1e-12  # equal differences have a spread of that size


def tango_statistic(gained: ArrayLike, lost: ArrayLike, n: ArrayLike, difference: ArrayLike) -> Floats:
    """The score statistic at a hypothetical ``difference`` of proportions; it falls as the difference grows.

    ``gained`` examples are right in the candidate alone, ``lost`` in the baseline alone, of ``n``. Counts need not be
    whole: effective counts of clustered examples are allowed.
    """
    b, c, size, at = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (gained, lost, n, difference)))
    linear = -b - c + (2 * size - b + c) * at
    constant = -c * at * (1 - at)
    rate = (np.sqrt(np.maximum(linear**2 - 8 * size * constant, 0)) - linear) / (4 * size)
    spread = size * (2 * rate + at * (1 - at))
    distance = b - c - size * at
    with np.errstate(divide="ignore", invalid="ignore"):
        found = distance / np.sqrt(np.maximum(spread, 0))
    return np.where(distance == 0, 0.0, found)


def tango_ends(gained: ArrayLike, lost: ArrayLike, n: ArrayLike, alpha: float) -> tuple[Floats, Floats]:
    """Lower and upper bound of candidate minus baseline, each one-sided at ``1 - alpha``.

    Where nothing was gained the difference is a plain rate of losses, and the exact bound of Clopper and Pearson is
    taken where it is lower: there alone the score's size passes 6% (6.6% at 1% lost among 270). Likewise above.
    """
    limit = normal(alpha)
    b, c, size = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (gained, lost, n)))
    middle = (b - c) / size
    low = _root(b, c, size, (np.full(middle.shape, -1.0), middle), limit)
    high = _root(b, c, size, (middle, np.ones(middle.shape)), -limit)
    low = np.where(b == 0, np.minimum(low, -_exact(c, size, alpha)), low)
    return low, np.where(c == 0, np.maximum(high, _exact(b, size, alpha)), high)


def _exact(events: Floats, n: Floats, alpha: float) -> Floats:
    """Clopper and Pearson's upper bound of rates; counts may be effective ones."""
    from scipy.special import betaincinv

    found: Floats = betaincinv(events + 1, np.maximum(n - events, np.finfo(np.float64).tiny), 1 - alpha)
    return np.where(events < n, found, 1.0)


def _root(b: Floats, c: Floats, n: Floats, ends: tuple[Floats, Floats], level: float) -> Floats:
    """Where the falling statistic crosses ``level`` between the ends."""
    left, right = ends
    for _ in range(_BISECTIONS):
        middle = (left + right) / 2
        above = tango_statistic(b, c, n, middle) > level
        left, right = np.where(above, middle, left), np.where(above, right, middle)
    return (left + right) / 2


def paired_binary(gained: float, lost: float, n: int, alpha: float) -> Interval:
    """Tango's score interval of one pair of runs; fewer than two pairs are no evidence."""
    if n < 2:
        return Interval(0.0, -1.0, 1.0, n, alpha, "Tango score", degenerate="fewer than two pairs")
    low, high = tango_ends(gained, lost, n, alpha)
    return Interval((gained - lost) / n, float(low), float(high), n, alpha, "Tango score")


def paired_mean(differences: Floats, alpha: float) -> Interval:
    """Student's t on the differences; no variance, or fewer than two pairs, is no evidence."""
    n = len(differences)
    if n < 2:
        only = float(differences[0]) if n else 0.0
        return Interval(only, -np.inf, np.inf, n, alpha, "paired t", degenerate="fewer than two pairs")
    mean, error = float(differences.mean()), float(differences.std(ddof=1)) / n**0.5
    shape = Interval(mean, mean, mean, n, alpha, "paired t")
    return around(mean, error, n - 1, shape, skew(differences - mean) / n)


def skew(deviations: Floats) -> float:
    """The third moment over the second: how much the variance of a sum grows per unit that its mean grows."""
    square = float((deviations**2).sum())
    return float((deviations**3).sum()) / square if square > 0 else 0.0


def around(mean: float, error: float, freedom: float, shape: Interval, lean: float = 0.0) -> Interval:
    """Student's t around a mean with its standard error; ``shape`` names n, alpha, clusters and the method.

    ``lean`` is how much the squared error grows per unit that the mean grows. Where losses are rare and large, a sample
    with few of them has a small loss and a small spread together. The bound on the side of the longer tail is therefore
    where its distance is t standard errors *of the bound*, as a score interval does; the other one is Student's own.
    """
    if not error > _ROUNDING * abs(mean):
        why = "all differences are equal: no variance to judge by"
        return Interval(mean, mean, mean, shape.n, shape.alpha, shape.method, shape.clusters, why)
    quantile = student(shape.alpha, freedom)
    low = mean - _distance(quantile, error, max(-lean, 0.0))
    high = mean + _distance(quantile, error, max(lean, 0.0))
    return Interval(mean, low, high, shape.n, shape.alpha, shape.method, shape.clusters)


def _distance(quantile: float, error: float, growth: float) -> float:
    """The root x of x^2 = quantile^2 (error^2 + growth x)."""
    bend = quantile**2 * growth
    return (bend + sqrt(bend**2 + 4 * (quantile * error) ** 2)) / 2


def regression_p(gained: ArrayLike, lost: ArrayLike, n: ArrayLike) -> Floats:
    """One-sided p-values of *the candidate lost*, from the score statistic at no difference."""
    from scipy.special import ndtr

    found: Floats = ndtr(tango_statistic(gained, lost, n, 0.0))
    return found
