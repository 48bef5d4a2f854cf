"""Learning-rate schedules as arrays: the rate of every optimizer step, shape (steps,), counted from step 0.

The multi-power law reads them, and so does the experiment that injects a schedule mismatch. Rates are in whatever
unit the optimizer takes; ``peak`` and ``end`` are absolute, not shares.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError

Array = NDArray[np.float64]
DECAYS = ("linear", "exponential", "sqrt")


@dataclass(frozen=True)
class Ramp:
    """What every schedule shares: its length and warm-up in steps, and its peak rate.

    The warm-up is a line from 0 at step 0 to ``peak`` at step ``warmup - 1``. Raises `InputError` for a length that
    is not positive, a warm-up that does not fit in it and a peak that is not a positive number.
    """

    steps: int
    peak: float
    warmup: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError.expected("at least one step", self.steps, where="the schedule's steps")
        if not 0 <= self.warmup <= self.steps:
            raise InputError.expected(f"a warm-up of 0 to {self.steps} steps", self.warmup, where="the warm-up")
        if not (np.isfinite(self.peak) and self.peak > 0):
            raise InputError.expected("a positive peak rate", self.peak, where="the schedule's peak")

    def then(self, rates: Array) -> Array:
        """The warm-up followed by ``rates``, shape (steps - warmup,)."""
        return np.concatenate([np.linspace(0.0, self.peak, self.warmup), rates])

    def until(self, start: int) -> int:
        """``start`` where it lies between the end of the warm-up and the end of the run. Raises `InputError` else."""
        if not self.warmup <= start < self.steps:
            expected = f"a step from {self.warmup} (after the warm-up) to {self.steps - 1}"
            raise InputError.expected(expected, start, where="where the decay starts")
        return start


def constant(ramp: Ramp) -> Array:
    """The peak to the end."""
    return ramp.then(np.full(ramp.steps - ramp.warmup, ramp.peak))


def cosine(ramp: Ramp, end: float) -> Array:
    """Half a cosine from the peak to ``end``, which is reached one step after the last (Loshchilov and Hutter 2017)."""
    turned = np.cos(np.pi * _share(ramp.warmup, ramp.steps))
    return ramp.then(_rate(end) + 0.5 * (ramp.peak - end) * (1 + turned))


def linear(ramp: Ramp, end: float) -> Array:
    """A line from the peak to ``end``, straight after the warm-up."""
    return wsd(ramp, end, ramp.warmup, "linear")


def wsd(ramp: Ramp, end: float, decay_from: int, decay: str = "linear") -> Array:
    """Warm-up, stable, decay: the peak until step ``decay_from``, then to ``end`` (Hu et al. 2024).

    With u the share of the decay that has passed, the rate is peak + (end - peak)*u for ``linear``,
    peak^(1-u) * end^u for ``exponential`` and peak + (end - peak)*sqrt(u) for ``sqrt``.
    """
    if decay not in DECAYS:
        raise InputError.expected("one of " + ", ".join(DECAYS), decay, where="the form of the decay")
    start, low = ramp.until(decay_from), _rate(end)
    passed = _share(start, ramp.steps)
    if decay == "exponential":
        if low == 0:
            raise InputError.expected("a positive end rate of an exponential decay", end, where="the end rate")
        tail = ramp.peak ** (1 - passed) * low**passed
    else:
        tail = ramp.peak + (low - ramp.peak) * (passed if decay == "linear" else np.sqrt(passed))
    return ramp.then(np.concatenate([np.full(start - ramp.warmup, ramp.peak), tail]))


def step_decay(ramp: Ramp, drops: Mapping[int, float]) -> Array:
    """The peak, and from each step of ``drops`` on the rate given there."""
    rates = constant(ramp)
    for start in sorted(drops):
        rates[ramp.until(start) :] = _rate(drops[start])
    return rates


def _share(start: int, steps: int) -> Array:
    """The share of ``start`` to ``steps`` that has passed at each step."""
    return np.asarray((np.arange(start, steps) - start) / max(steps - start, 1), float)


def _rate(value: float) -> float:
    if not (np.isfinite(value) and value >= 0):
        raise InputError.expected("a rate of 0 or more", value, where="the end rate")
    return value
