"""What a detector is worth at the prevalence it will meet.

PPV = TPR p / (TPR p + FPR (1 - p)). Rates come from counts, so PPV has an interval: quantiles of draws from Jeffreys'
posteriors Beta(k + 1/2, n - k + 1/2). The precision of a balanced test set is not an estimate of it. Functions of rates
take arrays.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ridgeline.core.errors import InputError
from ridgeline.gate.statistics.interval import Interval

Floats = NDArray[np.float64]
DRAWS = 20_000
SEED = 0


@dataclass(frozen=True)
class Rate:
    """``events`` of ``n``; ``n`` None is a rate that is known, or assumed, and then ``events`` is its value."""

    events: float
    n: int | None = None

    def __post_init__(self) -> None:
        most = 1 if self.n is None else self.n
        if not 0 <= self.events <= most or self.n == 0:
            raise InputError.expected(f"between 0 and {most}", self.events, where="the events of a rate")

    @property
    def value(self) -> float:
        """The rate itself."""
        return self.events if self.n is None else self.events / self.n

    def draws(self, rng: np.random.Generator, count: int = DRAWS) -> Floats:
        """Draws of the rate from Jeffreys' posterior; a known rate does not vary."""
        if self.n is None:
            return np.full(count, self.value)
        return rng.beta(self.events + 0.5, self.n - self.events + 0.5, count)


def ppv(tpr: ArrayLike, fpr: ArrayLike, prevalence: ArrayLike) -> Floats:
    """The share of alarms that are right; NaN where there are none."""
    hits = np.multiply(tpr, prevalence)
    return _share(hits, np.multiply(fpr, np.subtract(1, prevalence)))


def npv(tpr: ArrayLike, fpr: ArrayLike, prevalence: ArrayLike) -> Floats:
    """The share of silences that are right; NaN where there are none."""
    quiet = np.multiply(np.subtract(1, fpr), np.subtract(1, prevalence))
    return _share(quiet, np.multiply(np.subtract(1, tpr), prevalence))


def _share(right: ArrayLike, wrong: ArrayLike) -> Floats:
    total = np.add(right, wrong)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.divide(right, total)
    return found


def alarms(tpr: ArrayLike, fpr: ArrayLike, prevalence: ArrayLike) -> Floats:
    """The share of cases that raise an alarm; times cases per day, alarms per day."""
    found: Floats = np.multiply(tpr, prevalence) + np.multiply(fpr, np.subtract(1, prevalence))
    return found


def hits(tpr: ArrayLike, prevalence: ArrayLike) -> Floats:
    """The share of cases that raise a right alarm; times cases per day, hits per day."""
    found: Floats = np.multiply(tpr, prevalence)
    return found


def false_alarms_per_hit(tpr: ArrayLike, fpr: ArrayLike, prevalence: ArrayLike) -> Floats:
    """FPR (1 - p) / (TPR p); infinite where there are no hits."""
    with np.errstate(divide="ignore"):
        found: Floats = np.divide(np.multiply(fpr, np.subtract(1, prevalence)), np.multiply(tpr, prevalence))
    return found


def prevalence_needed(tpr: float, fpr: float, required: float) -> float:
    """The prevalence from which on PPV reaches ``required``: r FPR / (TPR (1 - r) + r FPR)."""
    _inside(required)
    if not tpr > 0:
        raise InputError.expected("a true-positive rate above zero", tpr, where="TPR")
    return required * fpr / (tpr * (1 - required) + required * fpr)


def fpr_needed(tpr: float, prevalence: float, required: float) -> float:
    """The largest false-positive rate at which PPV reaches ``required``: TPR p (1 - r) / (r (1 - p))."""
    _inside(required)
    if not 0 <= prevalence < 1:
        raise InputError.expected("a prevalence below 1", prevalence, where="prevalence")
    return min(1.0, tpr * prevalence * (1 - required) / (required * (1 - prevalence)))


def _inside(required: float) -> None:
    if not 0 < required < 1:
        raise InputError.expected("a required PPV between 0 and 1", required, where="the required PPV")


def ppv_interval(tpr: Rate, fpr: Rate, prevalence: Rate, *, alpha: float, seed: int = SEED) -> Interval:
    """PPV with quantiles of Jeffreys draws of its three rates; no positives or no negatives tested is no evidence."""
    return _drawn(ppv, (tpr, fpr, prevalence), alpha, seed)


def npv_interval(tpr: Rate, fpr: Rate, prevalence: Rate, *, alpha: float, seed: int = SEED) -> Interval:
    """NPV, in the same way."""
    return _drawn(npv, (tpr, fpr, prevalence), alpha, seed)


def _drawn(value: Callable[..., Any], rates: tuple[Rate, Rate, Rate], alpha: float, seed: int) -> Interval:
    rng = np.random.default_rng(seed)
    drawn = value(*(rate.draws(rng) for rate in rates))
    return _quantiles(float(value(*(rate.value for rate in rates))), drawn, _count(*rates[:2]), alpha)


def rate_interval(rate: Rate, *, alpha: float) -> Interval:
    """One rate with the quantiles of Jeffreys' posterior, its ends 0 and 1 where none or all were seen."""
    from scipy.special import betainccinv, betaincinv

    if rate.n is None:
        return Interval(rate.value, rate.value, rate.value, 0, alpha, "known")
    shape = (rate.events + 0.5, rate.n - rate.events + 0.5)
    low = 0.0 if rate.events == 0 else float(betaincinv(*shape, alpha))
    high = 1.0 if rate.events == rate.n else float(betainccinv(*shape, alpha))
    return Interval(rate.value, low, high, rate.n, alpha, "Jeffreys")


def ratio_interval(rate: Rate, reference: Rate, *, alpha: float, seed: int = SEED) -> Interval:
    """A subgroup's rate over that of the others, by Jeffreys draws; an estimate over none is infinite."""
    rng = np.random.default_rng(seed)
    drawn = rate.draws(rng) / np.maximum(reference.draws(rng), np.finfo(np.float64).tiny)
    middle = rate.value / reference.value if reference.value > 0 else float("inf")
    return _quantiles(middle, drawn, _count(rate, reference), alpha)


def _quantiles(middle: float, drawn: Floats, n: int, alpha: float) -> Interval:
    low, high = np.quantile(drawn, [alpha, 1 - alpha])
    return Interval(middle, float(low), float(high), n, alpha, "Jeffreys draws")


def _count(*rates: Rate) -> int:
    return sum(rate.n or 0 for rate in rates)
