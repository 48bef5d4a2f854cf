"""How many pairs a gate needs, and the smallest loss it can see.

n = (z_alpha + z_power)^2 variance / (margin - loss)^2, times the design effect of groups; for zeros and ones the
variance of a difference is the share of discordant pairs less the squared difference.
"""

from math import ceil

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.gate.statistics.catastrophe import clopper_pearson
from ridgeline.gate.statistics.quantiles import normal

POWER = 0.8
_BOUND = 0.2  # the variance is estimated by its upper 80% bound


def needed(variance: float, margin: float, *, alpha: float, power: float = POWER, loss: float = 0.0) -> int:
    """Pairs that ship a candidate whose true loss is ``loss`` with probability ``power``.

    Raises `InputError` for a margin that is not above the loss, or a power outside (0, 1).
    """
    if not margin > loss:
        raise InputError.expected(f"a margin above the true loss of {loss:g}", margin, where="the margin")
    if not 0 < power < 1:
        raise InputError.expected("a power between 0 and 1", power, where="the power")
    quantiles = normal(alpha) + normal(1 - power)
    return ceil(quantiles**2 * variance / (margin - loss) ** 2)


def detectable(variance: float, n: float, *, alpha: float, power: float = POWER) -> float:
    """The smallest margin that ``n`` pairs can clear for an unchanged candidate."""
    return float((normal(alpha) + normal(1 - power)) * np.sqrt(variance / n))


def variance_bound(differences: NDArray[np.float64]) -> float:
    """The upper 80% bound of the variance of the differences; of zeros and ones, from the share that is discordant.

    Infinite for fewer than two pairs.
    """
    from scipy.special import gammaincinv

    n = len(differences)
    if n < 2:
        return float("inf")
    if np.isin(differences, (-1.0, 0.0, 1.0)).all():
        _, discordant = clopper_pearson(float((differences != 0).sum()), n, _BOUND)
        return float(max(discordant - differences.mean() ** 2, 0.0))
    return float(differences.var(ddof=1) * (n - 1) / (2 * gammaincinv((n - 1) / 2, _BOUND)))
