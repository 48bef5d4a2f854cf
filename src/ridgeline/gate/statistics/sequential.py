"""Looking more than once: sequences of intervals that hold at every look together.

A fixed-n test that is looked at every hundred pairs up to 5,000 ships a model exactly at the margin 31% of the time.
`asymptotic` is the confidence sequence of Waudby-Smith et al. (2021, arXiv:2103.06476); `betting_value` the exact
e-process of Waudby-Smith and Ramdas (2024, JRSS B 86) for scores in [0, 1], whose differences lie in [-1, 1].
"""

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.gate.statistics.interval import Interval

Floats = NDArray[np.float64]
LEAST_DISCORDANT = 10
TUNED_SHARE = 0.25  # the sequence is narrowest at a quarter of the registered n
_STAKE = 0.5  # of what keeps the wealth above zero


def asymptotic(differences: Floats, alpha: float, registered: int) -> Interval:
    """The interval after these pairs of ``registered`` planned ones, valid at every look, asymptotically.

    Fewer than ten discordant pairs are no evidence: the normal limit has not begun.
    """
    if registered < 1:
        raise InputError.expected("at least one registered pair", registered, where="the registered n")
    n, method = len(differences), "asymptotic confidence sequence"
    discordant = int((differences != 0).sum())
    mean = float(differences.mean()) if n else 0.0
    if discordant < LEAST_DISCORDANT:
        why = f"{discordant} of {LEAST_DISCORDANT} discordant pairs that a sequence starts with"
        return Interval(mean, -np.inf, np.inf, n, alpha, method, degenerate=why)
    half = float(differences.std()) * _radius(n, 2 * alpha, TUNED_SHARE * registered)
    return Interval(mean, mean - half, mean + half, n, alpha, method)


def _radius(n: int, both: float, tuned: float) -> float:
    """Half the width in standard deviations; ``both`` is the level of both sides, narrowest at ``tuned`` pairs."""
    rho = (-2 * np.log(both) + np.log(1 - 2 * np.log(both))) / tuned
    return float(np.sqrt(2 * (n * rho + 1) / (n**2 * rho) * np.log(np.sqrt(n * rho + 1) / both)))


def rate_sequence(events: int, n: int, alpha: float) -> Interval:
    """Minus the rate of rare events, valid at every look: the mixture of Robbins (1970) with a uniform prior.

    A rate p is excluded where B(k + 1, n - k + 1) / (p^k (1 - p)^(n - k)) reaches 1/alpha, for k events of n.
    """
    from scipy.optimize import brentq
    from scipy.special import betaln, xlog1py, xlogy

    method = "beta mixture sequence"
    if n < 2:
        return Interval(0.0, -1.0, 0.0, n, alpha, method, degenerate="fewer than two pairs")
    seen, level = events / n, float(betaln(events + 1, n - events + 1)) + np.log(alpha)

    def excluded(rate: float) -> float:
        return float(level - xlogy(events, rate) - xlog1py(n - events, -rate))

    high = 1.0 if events == n else float(brentq(excluded, max(seen, 1e-15), 1 - 1e-15))
    low = 0.0 if events == 0 else float(brentq(excluded, 1e-15, min(seen, 1 - 1e-15)))
    return Interval(0.0 - seen, -high, 0.0 - low, n, alpha, method)


def betting_value(differences: Floats, margin: float) -> float:
    """The largest wealth so far of a bettor against *the true difference is at most minus the margin*.

    The stake before each pair is set by the pairs before it, so that a wealth of 1/alpha rejects at level alpha at any
    look, exactly (Ville 1939). Differences lie in [-1, 1].
    """
    if not 0 < margin < 1:
        raise InputError.expected("a margin between 0 and 1", margin, where="the margin")
    if len(differences) == 0:
        return 1.0
    if np.abs(differences).max() > 1:
        raise InputError.expected("differences of scores in [0, 1]", float(np.abs(differences).max()), where="betting")
    steps = np.arange(1, len(differences) + 1)
    mean = np.cumsum(differences) / (steps + 1)
    spread = (0.25 + np.cumsum((differences - mean) ** 2)) / (steps + 1)
    before_mean, before_spread = np.r_[0.0, mean[:-1]], np.r_[0.25, spread[:-1]]
    edge = np.maximum(before_mean + margin, 0)
    stake = np.minimum(edge / (before_spread + edge**2), _STAKE / (1 - margin))
    return float(np.exp(np.cumsum(np.log1p(stake * (differences + margin))).max()))
