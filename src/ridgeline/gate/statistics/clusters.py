"""Examples that come in groups: needles of a context, epochs of a question, prompts of a user.

Means take the bias-reduced sandwich of Bell and McCaffrey (2002) with their degrees of freedom. No sandwich repairs
rare events, where whole groups have none: rates of zeros and ones take the exact interval on effective counts (Korn and
Graubard 1998), and paired zeros and ones Tango's interval on them.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ridgeline.gate.statistics.catastrophe import clopper_pearson
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.paired import around, skew, tango_ends
from ridgeline.gate.statistics.quantiles import student

Floats = NDArray[np.float64]
Labels = NDArray[np.object_] | NDArray[np.int64]
PRIOR = 3  # groups; two leave a size of 6.3% at the margin, four cost more power than they save
FREE = 15  # degrees of freedom: about seven groups that carry the spread
MANY = 50  # groups, below which a mean is no evidence
FEW = 30  # groups, below which an interval may bless but not condemn


@dataclass(frozen=True)
class Groups:
    """Group sizes and sums of deviations from the mean."""

    sizes: Floats
    deviations: Floats
    n: int
    mean: float

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.sizes)

    @property
    def typical(self) -> float:
        """The mean size of the group of an example."""
        return float((self.sizes**2).sum() / self.n)


def groups_of(values: Floats, labels: Labels) -> Groups:
    """The groups of ``values``; ``labels`` may be of any type that sorts."""
    _, codes = np.unique(labels, return_inverse=True)
    mean = float(values.mean())
    sizes = np.bincount(codes).astype(np.float64)
    deviations = np.bincount(codes, weights=values - mean).astype(np.float64)
    return Groups(sizes, deviations, len(values), mean)


def clustered_mean(values: Floats, labels: Labels, alpha: float) -> Interval:
    """The mean with its CR2 standard error and Bell-McCaffrey degrees of freedom, fewer where few groups carry it.

    Fewer than `MANY` groups, or as many of which a few carry the spread, are no evidence: where whole groups break, and
    none or two of those seen did, the mean and its spread are both too small.
    """
    found = groups_of(values, labels)
    why = "one group" if found.count == 1 else f"{found.count} of the {MANY} groups that a mean needs"
    shape = Interval(found.mean, -np.inf, np.inf, found.n, alpha, "CR2 t", found.count, why)
    if found.count < 2:
        return shape
    kept = 1 - found.sizes / found.n
    variance, freedom = float((found.deviations**2 / kept).sum()) / found.n**2, _freedom(found, kept)
    interval = around(found.mean, variance**0.5, freedom, shape, skew(found.deviations) / found.n)
    if found.count >= MANY:
        why = "a few of the groups carry all of the spread" if freedom < FREE else interval.degenerate
    return replace(interval, degenerate=why)


def _freedom(groups: Groups, kept: Floats) -> float:
    """Bell-McCaffrey: n^2 over the trace of the squared covariance of the adjusted residuals.

    It holds for normal groups. The variance of a variance by its fourth moment gives fewer where the tails are long.
    """
    square, scaled = groups.sizes**2, groups.sizes**2 / kept
    cross = (scaled.sum() ** 2 - (scaled**2).sum()) / groups.n**2
    normal = float(groups.n**2 / (square.sum() + cross))
    second = float((groups.deviations**2).sum())
    excess = float((groups.deviations**4).sum()) / second**2 - 1 / groups.count if second > 0 else 0.0
    return min(normal, 2 / excess) if excess > 0 else normal


def design_effect(values: Floats, labels: Labels) -> float:
    """How many times larger the variance of the mean is than without groups, between 1 and the size of a group.

    Where all values are equal, the size of a group: nothing was seen, so nothing speaks for independence.
    """
    found = groups_of(values, labels)
    plain = float(values.var()) / found.n
    if not plain > 0 or found.count < 2:
        return max(1.0, found.typical)
    sandwich = found.count / (found.count - 1) * float((found.deviations**2).sum()) / found.n**2
    return float(np.clip(sandwich / plain, 1.0, max(1.0, found.typical)))


def effective(values: Floats, labels: Labels, alpha: float) -> tuple[float, int]:
    """The number of independent examples that carry as much, and the number of groups.

    The design effect is seen in the groups where anything happened. Few of them underestimate it just where they
    underestimate the rate, so `PRIOR` groups are added in which all examples go together.
    """
    found = groups_of(values, labels)
    seen, whole = _eventful(values, labels), max(1.0, found.typical)
    effect = (seen * design_effect(values, labels) + PRIOR * whole) / (seen + PRIOR)
    freedom = (student(alpha, found.n - 1) / student(alpha, found.count - 1)) ** 2
    return found.n / effect * freedom, found.count


def _eventful(values: Floats, labels: Labels) -> int:
    """Groups that hold anything but the most frequent value."""
    distinct, counts = np.unique(values, return_counts=True)
    return len(np.unique(labels[values != distinct[counts.argmax()]]))


def clustered_rate(events: Floats, labels: Labels, alpha: float) -> Interval:
    """The rate of zeros and ones: Clopper-Pearson on effective counts. One group is no evidence."""
    method = "Clopper-Pearson on effective counts"
    if len(np.unique(labels)) < 2:
        return Interval(float(events.mean()), 0.0, 1.0, len(events), alpha, method, 1, "one group")
    rate = float(events.mean())
    size, count = effective(events, labels, alpha)
    low, high = clopper_pearson(rate * size, size, alpha)
    return Interval(rate, low, high, len(events), alpha, method, count)


def clustered_binary(differences: Floats, labels: Labels, alpha: float) -> Interval:
    """Differences of zeros and ones: Tango's score interval on effective counts. One group is no evidence."""
    method, n = "Tango score on effective counts", len(differences)
    if len(np.unique(labels)) < 2:
        return Interval(float(differences.mean()), -1.0, 1.0, n, alpha, method, 1, "one group")
    size, count = effective(differences, labels, alpha)
    gained, lost = float((differences > 0).mean()) * size, float((differences < 0).mean()) * size
    low, high = tango_ends(gained, lost, size, alpha)
    return Interval(float(differences.mean()), float(low), float(high), n, alpha, method, count)
