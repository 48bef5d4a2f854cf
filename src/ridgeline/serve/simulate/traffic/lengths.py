"""How long requests are: one length, a log-normal by its percentiles or mean, or the lengths of a trace."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ridgeline.core import parse
from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.traffic.arrivals import Random
from ridgeline.serve.simulate.traffic.requests import Ints

_Z99 = NormalDist().inv_cdf(0.99)


@dataclass(frozen=True)
class LogNormal:
    """ln(tokens) is normal with mean ``mu`` and standard deviation ``sigma``; ``most`` cuts the tail off (0: it does
    not).
    """

    mu: float
    sigma: float
    most: int = 0

    @classmethod
    def of(cls, *, p50: float | None = None, p99: float | None = None, mean: float | None = None,
           most: int = 0, where: str = "lengths") -> "LogNormal":  # fmt: skip
        """From one of median and mean (every request alike) or two of median, mean and 99th percentile.

        Raises `InputError` for none or all three, and for figures that no log-normal has.
        """
        given = {"p50": p50, "p99": p99, "mean": mean}
        said = {
            name: parse.positive(value, where=f"{where}.{name}", what="tokens")
            for name, value in given.items()
            if value is not None
        }
        if len(said) == 1 and "p99" not in said:
            return cls(math.log(next(iter(said.values()))), 0.0, most)
        if len(said) != 2:
            hint = "a log-normal has two parameters"
            raise InputError.expected("two of p50, p99 and mean", ", ".join(said) or "none", where=where, hint=hint)
        sigma = _sigma(said, where)
        mu = math.log(said["p50"]) if "p50" in said else math.log(said["mean"]) - sigma**2 / 2
        return cls(mu, sigma, most)

    def draw(self, n: int, random: Random) -> Ints:
        """Whole tokens, at least one, (n,)."""
        found = np.maximum(1, np.rint(np.exp(self.mu + self.sigma * random.standard_normal(n))))
        return np.asarray(np.minimum(found, self.most or np.inf), dtype=np.int64)


def _sigma(said: dict[str, float], where: str) -> float:
    """The spread: p99 = e^(mu + z sigma), mean = e^(mu + sigma^2/2); of a mean and a p99 the smaller root."""
    if "p50" in said:
        other = said.get("p99", said.get("mean", 0.0))
        ratio = math.log(other / said["p50"])
        if ratio < 0:
            raise InputError.expected("a mean and a p99 of at least the median", other, where=where)
        return ratio / _Z99 if "p99" in said else math.sqrt(2 * ratio)
    gap = math.log(said["p99"] / said["mean"])
    if not 0 <= gap <= _Z99**2 / 2:
        most = said["mean"] * math.exp(_Z99**2 / 2)
        raise InputError.expected(f"a p99 between the mean and {most:,.0f}", said["p99"], where=f"{where}.p99")
    return _Z99 - math.sqrt(_Z99**2 - 2 * gap)


def taken(tokens: Ints, n: int, random: Random | None = None) -> Ints:
    """Rows of a trace, (n,) indices: from the top, and from the top again; drawn with replacement given ``random``."""
    if random is not None:
        return np.asarray(random.integers(0, len(tokens), n), dtype=np.int64)
    return np.asarray(np.arange(n) % len(tokens), dtype=np.int64)
