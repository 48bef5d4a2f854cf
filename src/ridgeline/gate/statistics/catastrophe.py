"""Rare large losses: a bound on their rate, because no interval of the mean sees what the sample does not hold.

With one example in a hundred broken, 37% of samples of a hundred hold none, and every interval of the mean is then
narrow and wrong. The bound is the exact one of Clopper and Pearson (1934): with none among n it is 1 - alpha^(1/n).
"""

from math import ceil, log, log1p

import numpy as np
from numpy.typing import NDArray

from ridgeline.gate.statistics.interval import Interval

Floats = NDArray[np.float64]


def clopper_pearson(events: float, n: float, alpha: float) -> tuple[float, float]:
    """Exact lower and upper bound of a rate, each one-sided at ``1 - alpha``; counts may be effective ones."""
    from scipy.special import betainccinv, betaincinv

    low = 0.0 if events <= 0 else float(betaincinv(events, n - events + 1, alpha))
    high = 1.0 if events >= n else float(betainccinv(events + 1, n - events, alpha))
    return low, high


def fewest(rate: float, alpha: float) -> int:
    """Pairs among which broken examples at half the tolerated ``rate`` are all missing with probability ``alpha``.

    With fewer, a sample without a broken example says too little about the mean, which one such example can decide.
    """
    return ceil(log(alpha) / log1p(-rate / 2))


def rare_losses(differences: Floats, beyond: float, alpha: float) -> Interval:
    """Minus the rate of examples that lost more than ``beyond``: compare it with minus the rate allowed."""
    n = len(differences)
    if n < 2:
        return Interval(0.0, -1.0, 0.0, n, alpha, "Clopper-Pearson", degenerate="fewer than two pairs")
    events = int((differences < -beyond).sum())
    low, high = clopper_pearson(events, n, alpha)
    return Interval(0.0 - events / n, -high, 0.0 - low, n, alpha, "Clopper-Pearson")
