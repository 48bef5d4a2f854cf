"""Areas under the ROC curve and the difference of two on the same examples.

The variance is that of DeLong, DeLong and Clarke-Pearson (1988, Biometrics 44) from placement values: of a positive,
the share of negatives scored below it; of a negative, the share of positives above it; ties count half. Midranks give
them in O(n log n) (Sun and Xu 2014). Examples of one user are not independent: their residuals are summed by user first
(Obuchowski 1997, Biometrics 53). A long tail of them lengthens the bound on its side, as for other means.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.gate.statistics.clusters import Labels
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.paired import around, skew

Floats = NDArray[np.float64]


def placements(scores: Floats, labels: Floats) -> Floats:
    """The placement value of each example; the mean over the positives, or over the negatives, is the AUC.

    Raises `InputError` for NaN scores, labels that are not 0 or 1, and where one of the two classes is missing.
    """
    from scipy.stats import rankdata

    positive = _positive(scores, labels)
    wins = rankdata(scores)
    wins[positive] -= rankdata(scores[positive])
    wins[~positive] -= rankdata(scores[~positive])
    count = int(positive.sum())
    found: Floats = np.where(positive, wins / (len(scores) - count), 1 - wins / count)
    return found


def _positive(scores: Floats, labels: Floats) -> NDArray[np.bool_]:
    if len(scores) != len(labels):
        raise InputError.expected(f"{len(scores)} labels, one a score", len(labels), where="the labels")
    if not np.isfinite(scores).all():
        raise InputError.expected("finite scores", f"{int((~np.isfinite(scores)).sum())} that are not", where="scores")
    if not np.isin(labels, (0, 1)).all():
        raise InputError.expected("labels of 0 or 1", np.unique(labels)[:5].tolist(), where="the labels")
    positive = np.asarray(labels == 1)
    if positive.all() or not positive.any():
        raise InputError.expected("both classes", f"{int(positive.sum())} positives of {len(labels)}", where="labels")
    return positive


def auc(scores: Floats, labels: Floats) -> float:
    """The probability that a positive is scored above a negative, ties counting half."""
    return float(placements(scores, labels)[labels == 1].mean())


def auc_interval(scores: Floats, labels: Floats, users: Labels | None = None, *, alpha: float) -> Interval:
    """One AUC with DeLong's interval, by user where users are given."""
    return _interval(placements(scores, labels), labels, users, alpha)


def auc_difference(
    base: Floats, candidate: Floats, labels: Floats, users: Labels | None = None, *, alpha: float
) -> Interval:
    """AUC of the candidate minus that of the baseline on the same examples, by user where users are given.

    Equal orders, one user, or fewer than two of a class are no evidence.
    """
    return _interval(placements(candidate, labels) - placements(base, labels), labels, users, alpha)


def _interval(values: Floats, labels: Floats, users: Labels | None, alpha: float) -> Interval:
    positive, n = labels == 1, len(values)
    middle, sizes = float(values[positive].mean()), np.where(positive, positive.sum(), (~positive).sum())
    parts = (values - middle) / sizes
    if users is None or len(np.unique(users)) == n:
        variances = (values[at].var(ddof=1) / at.sum() if at.sum() > 1 else 0.0 for at in (positive, ~positive))
        shape, variance, freedom = Interval(middle, middle, middle, n, alpha, "DeLong"), sum(variances), np.inf
    else:
        parts = np.bincount(np.unique(users, return_inverse=True)[1], weights=parts)
        shape, freedom = (
            Interval(middle, middle, middle, n, alpha, "DeLong by user", len(parts)),
            max(len(parts) - 1, 1),
        )
        variance = (parts**2).sum() * len(parts) / freedom
    found = around(middle, float(variance) ** 0.5, freedom, shape, skew(parts))
    return replace(found, degenerate=_why(found, int(sizes.min())))


def _why(found: Interval, fewest: int) -> str:
    """Why there is no evidence, or nothing."""
    if found.clusters == 1:
        return "one user"
    if fewest < 2:
        return "fewer than two positives or two negatives"
    return "both orders agree: no variance to judge by" if found.degenerate else ""
