"""What a fit minimises, as a function of ln L per run.

Residuals are r = ln(observed) - ln(predicted). ``huber``: the sum of Huber's loss of r (Hoffmann et al. 2022 write a
delta of 1e-3). A sum and not a mean: a mean shrinks gradients below the absolute stopping rules of general
optimisers. ``lad``: the sum of absolute r, reached by Huber losses of shrinking delta. ``ls``: squares of the loss
itself. ``logls``: squares of r. ``mle``: the likelihood under a noise model of `ridgeline.forecast.fitting.noise`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError, did_you_mean

Array = NDArray[np.float64]
Noise = Literal["", "lognormal", "size", "group"]
_LAD_STEPS = (1e-3, 1e-4, 1e-6, 1e-8)  # of delta; the last leaves the sum of |r| exact to n*5e-9


@dataclass(frozen=True)
class Response:
    """Of each run, shape (B, n): the loss, its first and second derivative by ln L, and a majorising curvature."""

    value: Array
    slope: Array
    bend: Array
    major: Array


@dataclass(frozen=True)
class Objective:
    """A loss of residuals. ``delta`` is Huber's, in nats of ln L; ``scale`` says which residuals are used.

    ``noise`` names the noise model of ``mle``.
    """

    name: str
    delta: float = np.inf
    scale: Literal["log", "raw"] = "log"
    noise: Noise = ""

    def respond(self, log_y: Array, value: Array) -> Response:
        """The loss of ln L = ``value`` (B, n) against ``log_y`` (n,) or (B, n)."""
        if self.scale == "raw":
            predicted = np.exp(value)
            gap = np.exp(log_y) - predicted
            square = predicted * predicted
            return Response(0.5 * gap * gap, -gap * predicted, square - gap * predicted, square)
        residual = log_y - value
        if not np.isfinite(self.delta):
            ones = np.ones_like(residual)
            return Response(0.5 * residual * residual, -residual, ones, ones)
        bounded = np.clip(residual, -self.delta, self.delta)
        inside = (bounded == residual).astype(float)
        major = self.delta / np.maximum(np.abs(residual), self.delta)
        loss, slope = bounded * (residual - 0.5 * bounded), -bounded
        if self.name != "lad":
            return Response(loss, slope, inside, major)
        size = self.unit  # so that the sum tends to that of |r|
        return Response(loss * size, slope * size, inside * size, major * size)

    def total(self, log_y: Array, value: Array, weights: Array) -> Array:
        """The objective, shape (...,): for ``lad`` the exact sum of absolute residuals."""
        if self.name == "lad":
            summed: Array = np.sum(weights * np.abs(log_y - value), axis=-1)
        else:
            summed = np.sum(weights * self.respond(log_y, value).value, axis=-1)
        return summed

    @property
    def unit(self) -> float:
        """What half the square of a tiny residual counts in this objective."""
        return 1 / self.delta if self.name == "lad" else 1.0

    @property
    def plain(self) -> "Objective":
        """The objective where the noise is known: for ``mle`` the squares that its weights and coupling belong to."""
        return LOGLS if self.name == "mle" else self

    @property
    def path(self) -> tuple["Objective", ...]:
        """The objectives to minimise one after the other, each from the optimum of the one before."""
        return tuple(replace(self, delta=step) for step in _LAD_STEPS) if self.name == "lad" else (self,)


HUBER = Objective("huber", delta=1e-3)
LAD = Objective("lad", delta=_LAD_STEPS[-1])
LS = Objective("ls", scale="raw")
LOGLS = Objective("logls")
MLE = Objective("mle", noise="lognormal")
OBJECTIVES: Mapping[str, Objective] = {o.name: o for o in (HUBER, LAD, LS, LOGLS, MLE)}
NOISES: tuple[Noise, ...] = ("lognormal", "size", "group")


def objective(name: str, *, delta: float | None = None, noise: str = "lognormal") -> Objective:
    """An objective by name, with another delta for ``huber`` or noise model for ``mle``.

    Raises `InputError` for an unknown name or noise model and for a delta that is not positive.
    """
    if name not in OBJECTIVES:
        hint = did_you_mean(name, OBJECTIVES, "objectives: " + ", ".join(OBJECTIVES))
        raise InputError.expected("an objective", name, where="--objective", hint=hint)
    found = OBJECTIVES[name]
    if delta is not None and name == "huber":
        if not (np.isfinite(delta) and delta > 0):
            raise InputError.expected("a positive delta", delta, where="the Huber delta")
        found = replace(found, delta=float(delta))
    if name == "mle":
        known = next((model for model in NOISES if model == noise), None)
        if known is None:
            raise InputError.expected("a noise model: " + ", ".join(NOISES), noise, where="the noise model")
        found = replace(found, noise=known)
    return found
