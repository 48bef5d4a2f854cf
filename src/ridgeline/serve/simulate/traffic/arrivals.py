"""When requests arrive: Poisson, Gamma and on-off processes.

Every function is a pure one of its generator. Times are in seconds from zero.
"""

import math
from dataclasses import dataclass

import numpy as np

from ridgeline.core import parse
from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.traffic.requests import Floats

Random = np.random.Generator


@dataclass(frozen=True)
class Bursts:
    """A Poisson process whose rate is ``ratio`` times higher while on than while off.

    It stays on and off for exponential times of mean ``on_s`` and ``off_s``: a Markov-modulated Poisson process of two
    states. The mean rate does not depend on the shape. Raises `InputError` for times that are not positive and finite
    or a ratio below 1.
    """

    ratio: float = 10.0
    on_s: float = 10.0
    off_s: float = 50.0

    def __post_init__(self) -> None:
        for name in ("on_s", "off_s"):
            parse.positive(getattr(self, name), where=f"burst.{name}", what="a duration in seconds")
        if not (math.isfinite(self.ratio) and self.ratio >= 1):
            raise InputError.expected("a ratio of rates, at least 1", self.ratio, where="burst.ratio")

    @property
    def off_share(self) -> float:
        """The rate while off, as a share of the mean rate."""
        return (self.on_s + self.off_s) / (self.ratio * self.on_s + self.off_s)


def poisson(rate_per_s: float, n: int, random: Random) -> Floats:
    """Arrivals of n requests with exponential gaps, (n,)."""
    return gamma(rate_per_s, 1.0, n, random)


def gamma(rate_per_s: float, cv: float, n: int, random: Random) -> Floats:
    """Arrivals with Gamma gaps whose coefficient of variation is ``cv``, (n,): 1 is Poisson, more is burstier."""
    parse.positive(rate_per_s, where="rate", what="requests per second")
    parse.positive(cv, where="cv", what="a coefficient of variation")
    shape = cv**-2
    return np.asarray(np.cumsum(random.gamma(shape, 1 / (rate_per_s * shape), n)), dtype=np.float64)


def on_off(rate_per_s: float, bursts: Bursts, n: int, random: Random) -> Floats:
    """Arrivals of mean ``rate_per_s`` in bursts, (n,).

    The points of a unit Poisson process, carried through the inverse of the integrated rate.
    """
    parse.positive(rate_per_s, where="rate", what="requests per second")
    off = rate_per_s * bursts.off_share
    rates = np.array([off * bursts.ratio, off])
    means = np.array([bursts.on_s, bursts.off_s])
    first = int(random.random() * means.sum() >= means[0])
    target = np.cumsum(random.exponential(1.0, n))
    spans, expected = np.zeros(0), 0.0
    while expected <= target[-1]:
        pairs = 64 + int((target[-1] - expected) / (rate_per_s * means.sum()))
        more = random.exponential(1.0, 2 * pairs) * np.tile(np.roll(means, -first), pairs)
        spans = np.concatenate([spans, more])
        steps = spans * np.tile(np.roll(rates, -first), len(spans) // 2)
        expected = float(steps.sum())
    ends, done = np.cumsum(np.r_[0.0, spans]), np.cumsum(np.r_[0.0, steps])
    return np.asarray(np.interp(target, done, ends), dtype=np.float64)


def rate_of(arrival_s: Floats) -> float:
    """Requests per second between the first and the last arrival; infinity where all arrive at once."""
    span = float(arrival_s[-1] - arrival_s[0]) if len(arrival_s) else 0.0
    return (len(arrival_s) - 1) / span if span > 0 else math.inf
