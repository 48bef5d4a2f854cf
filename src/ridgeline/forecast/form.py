"""A functional form: what a scaling law says before its constants are known.

A form works on internal parameters ``theta``: a coefficient by its natural logarithm where `Parameter.log` is set,
everything else as it is. ``theta`` has shape (..., P), a column of the data shape (n,), and ``log_loss`` gives
(..., n). Derivatives come from complex steps (Squire and Trapp 1998: exact to rounding, no cancellation), so that a
form is one formula; a form on the hot path writes its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.expansion import Dense, Expansion

Array = NDArray[np.float64]
Columns = Mapping[str, Array]
_STEP = 1e-30  # of the complex step: no difference is taken, so it may be as small as one likes
_SECOND = 1e-4  # of the step whose real part holds the second derivative: truncation and rounding near 1e-7


@dataclass(frozen=True)
class Parameter:
    """One constant of a form: its symbol, whether it is fitted by its logarithm, and its bounds (natural values).

    A fit that ends on a bound says so; the bounds are where the constant stops meaning anything.
    """

    symbol: str
    log: bool
    low: float
    high: float
    meaning: str
    unit: str = "1"

    def internal(self, value: Array | float) -> Array:
        """Natural to internal values."""
        return np.log(np.asarray(value, float)) if self.log else np.asarray(value, float)

    def natural(self, theta: Array | float) -> Array:
        """Internal to natural values."""
        return np.exp(np.asarray(theta, float)) if self.log else np.asarray(theta, float)


@dataclass(frozen=True)
class Form(ABC):
    """A functional form of the loss (or of what ``predicts`` names).

    ``inputs`` are the columns that it reads (`ridgeline.forecast.points`), ``formula`` the expression in them and in
    the natural constants that `ridgeline.core.quantity.derive` evaluates (empty where no expression can say it: then
    ``text`` alone is printed). ``valid`` says where the form stops being valid, ``ambiguous`` what its source leaves
    open. ``kind`` is the `ridgeline.core.law.Law.kind` of its published constants.
    """

    slug: str
    title: str
    kind: str
    inputs: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    formula: str
    text: str
    valid: str
    source: Source
    ambiguous: str = ""
    predicts: str = "loss"
    fixed: Mapping[str, float] = field(default_factory=dict, hash=False)

    @abstractmethod
    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """ln L, shape (..., n), of parameters (..., P) and columns (n,). Takes complex ``theta`` too."""

    @abstractmethod
    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """Starting points, shape (S, P), best first, one per basin that variable projection sees.

        ``log_y`` and ``weights`` have shape (n,).
        """

    def gradient(self, theta: Array, columns: Columns) -> tuple[Array, Array]:
        """ln L, shape (..., n), and its derivatives by ``theta``, shape (..., n, P)."""
        value = self.log_loss(theta, columns)
        slopes = np.empty((*value.shape, theta.shape[-1]))
        for p in range(theta.shape[-1]):
            moved = theta.astype(complex)
            moved[..., p] += 1j * _STEP
            slopes[..., p] = np.imag(self.log_loss(moved, columns)) / _STEP
        return value, slopes

    def curvature(self, theta: Array, columns: Columns, weights: Array) -> Array:
        """The sum over points of ``weights`` (..., n) times the second derivatives of ln L: shape (..., P, P)."""
        count = theta.shape[-1]
        here = np.einsum("...n,...n->...", weights, self.log_loss(theta, columns))

        def along(*axes: int) -> Array:
            """The second derivative of the sum along the sum of axes: Re f(x + ihv) = f(x) - h^2/2 v'Kv + O(h^4)."""
            moved = theta.astype(complex)
            moved[..., list(axes)] += 1j * _SECOND
            there = np.einsum("...n,...n->...", weights, np.real(self.log_loss(moved, columns)))
            found: Array = 2 * (here - there) / _SECOND**2
            return found

        found = np.empty((*theta.shape[:-1], count, count))
        for p in range(count):
            found[..., p, p] = along(p)
        for p in range(count):
            for q in range(p):
                found[..., p, q] = (along(p, q) - found[..., p, p] - found[..., q, q]) / 2
                found[..., q, p] = found[..., p, q]
        return found

    def expand(self, theta: Array, columns: Columns) -> Expansion:
        """ln L and its derivatives around ``theta`` (B, P), in the shape that Newton's method sums over runs."""
        value, slopes = self.gradient(theta, columns)
        return Dense(value, slopes, lambda weights: self.curvature(theta, columns, weights))

    def optimum(self, theta: Array, compute: Array) -> tuple[Array, Array] | None:
        """The compute-optimal N and D at C = 6ND in closed form, shapes (...,), or None where there is none.

        `ridgeline.forecast.fitting.optimum` finds the minimum of forms without a closed form by search.
        """
        return None

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols of the fitted constants, in order."""
        return tuple(p.symbol for p in self.parameters)

    @property
    def box(self) -> tuple[Array, Array]:
        """The bounds of ``theta``, each of shape (P,)."""
        low = np.array([float(p.internal(p.low)) if p.low > 0 or not p.log else -np.inf for p in self.parameters])
        return low, np.array([float(p.internal(p.high)) for p in self.parameters])

    def natural(self, theta: Array) -> dict[str, Array]:
        """The constants by symbol, each of shape (...,)."""
        return {p.symbol: p.natural(theta[..., i]) for i, p in enumerate(self.parameters)}

    def internal(self, constants: Mapping[str, float]) -> Array:
        """``theta`` of shape (P,) from natural constants."""
        return np.array([float(p.internal(constants[p.symbol])) for p in self.parameters])
