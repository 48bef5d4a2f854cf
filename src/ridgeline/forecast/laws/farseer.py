"""Farseer: L = exp(a3 N^gamma + b3) + exp(a2 N^beta + b2) D^(-exp(a1 N^alpha + b1)), Li et al. 2025.

At one size it is E + B/D^A with the logarithms of A, B and E all moving with N; Chinchilla's law holds A and B still.
Each a N^x + b is written here as h + s ((N/N0)^x - 1)/x: its value and its slope in ln N at N0 = 1e8, which a ladder
determines where a and b are only known together. `Farseer.published` turns them back.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.starts import settle
from ridgeline.forecast.form import Array, Columns, Form, Parameter
from ridgeline.forecast.laws import chinchilla

_N0 = 1e8
_STRAIGHT = 1e-6  # a power nearer to zero than this is a straight line in ln N
_POWERS = (-0.4, 0.0, 0.4)
_LINEAR = (0, 1, 3, 4, 6, 7)
_BASINS = 6


def bend(power: Array, x: Array) -> tuple[Array, Array, Array]:
    """(exp(power x) - 1)/power, which is x where the power is zero, and two derivatives by the power."""
    small = np.abs(power) < _STRAIGHT
    safe = np.where(small, 1.0, power)
    grown = np.exp(safe * x)
    value = (grown - 1) / safe
    slope = (x * grown - value) / safe
    second = (x**2 * grown - 2 * slope) / safe
    near = x + power * x**2 / 2, x**2 / 2 + power * x**3 / 3, x**3 / 3 + power * x**4 / 4
    return tuple(np.where(small, a, b) for a, b in zip(near, (value, slope, second), strict=True))  # type: ignore[return-value]


@dataclass(frozen=True)
class _Around:
    """Parts of the law at theta: three times h + s bend, each with its derivatives by (h, s, power)."""

    value: Array
    data: Array  # share of the data term in the loss
    steep: Array  # -(data exponent) ln D: what its logarithm moves
    firsts: tuple[Array, ...]  # (..., n, 3)
    cross: tuple[Array, ...]  # by s and power
    last: tuple[Array, ...]  # by power twice


@dataclass(frozen=True)
class Farseer(Form):
    """theta = (h1, s1, alpha, h2, s2, beta, h3, s3, gamma)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """See `Form`."""
        h1, s1, alpha, h2, s2, beta, h3, s3, gamma = (theta[..., i, None] for i in range(9))
        x, d = np.log(columns["N"] / _N0), np.log(columns["D"])
        data = h2 + s2 * bend(beta, x)[0] - np.exp(h1 + s1 * bend(alpha, x)[0]) * d
        found: Array = np.log(np.exp(h3 + s3 * bend(gamma, x)[0]) + np.exp(data))
        return found

    def _around(self, theta: Array, columns: Columns) -> _Around:
        x, d = np.log(columns["N"] / _N0), np.log(columns["D"])
        curves, firsts, cross, last = [], [], [], []
        for i in range(3):
            h, s, power = (theta[..., 3 * i + k, None] for k in range(3))
            value, slope, second = bend(power, x)
            curves.append(h + s * value)
            firsts.append(np.stack([np.ones_like(value), value, s * slope], axis=-1))
            cross.append(slope)
            last.append(s * second)
        steep = -np.exp(curves[0]) * d
        data, floor = np.exp(curves[1] + steep), np.exp(curves[2])
        total = data + floor
        return _Around(np.log(total), data / total, steep, tuple(firsts), tuple(cross), tuple(last))

    def gradient(self, theta: Array, columns: Columns) -> tuple[Array, Array]:
        """See `Form`."""
        at = self._around(theta, columns)
        outer = at.data * at.steep, at.data, 1 - at.data
        return at.value, np.concatenate([o[..., None] * f for o, f in zip(outer, at.firsts, strict=True)], axis=-1)

    def curvature(self, theta: Array, columns: Columns, weights: Array) -> Array:
        """See `Form`."""
        at = self._around(theta, columns)
        apart = np.concatenate([at.steep[..., None] * at.firsts[0], at.firsts[1], -at.firsts[2]], axis=-1)
        mixed = (weights * at.data * (1 - at.data))[..., None] * apart
        found: Array = np.swapaxes(mixed, -1, -2) @ apart
        shares = weights * at.data * at.steep, weights * at.data, weights * (1 - at.data)
        for i, share in enumerate(shares):
            corner = found[..., 3 * i : 3 * i + 3, 3 * i : 3 * i + 3]
            if i == 0:  # the exponent is the exponential of its curve
                corner += np.swapaxes(share[..., None] * at.firsts[0], -1, -2) @ at.firsts[0]
            crossed = np.sum(share * at.cross[i], axis=-1)
            corner[..., 1, 2] += crossed
            corner[..., 2, 1] += crossed
            corner[..., 2, 2] += np.sum(share * at.last[i], axis=-1)
        return found

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """See `Form`."""
        x, root = np.log(columns["N"] / _N0), np.sqrt(weights)
        theta = []
        for a, b, e, alpha, beta in chinchilla.FORM.starts(columns, log_y, weights)[:1]:
            floor = np.log(np.exp(a - alpha * np.log(columns["N"])) + np.exp(e))
            for gamma in _POWERS:
                basis = np.stack([np.ones_like(x), bend(np.asarray(gamma), x)[0]], axis=-1)
                h3, s3 = np.linalg.lstsq(basis * root[:, None], floor * root, rcond=None)[0]
                theta += [[np.log(beta), 0, p, b, 0, q, h3, s3, gamma] for p in _POWERS for q in _POWERS]
        found = settle(self, np.array(theta), _LINEAR, columns, log_y, weights)
        return settle(self, found[:_BASINS], range(9), columns, log_y, weights)

    def published(self, theta: Array) -> dict[str, Array]:
        """The constants a1, b1 to a3, b3 and the powers as the source writes them, each of shape (...,)."""
        found = dict[str, Array]()
        for i, power in enumerate(("alpha", "beta", "gamma")):
            h, s, x = (theta[..., 3 * i + k] for k in range(3))
            found |= {f"a{i + 1}": s / (x * _N0**x), f"b{i + 1}": h - s / x, power: x}
        return found


def _at(number: int, power: str) -> str:
    return f"h{number} + s{number}*((N/{_N0:.0f})**{power} - 1)/{power}"


def _parameters(number: int, what: str, power: str) -> tuple[Parameter, ...]:
    return (
        Parameter(f"h{number}", False, -200.0, 200.0, f"ln of {what} at 1e8 parameters"),
        Parameter(f"s{number}", False, -50.0, 50.0, "its slope in ln N at 1e8 parameters"),
        Parameter(power, False, -1.5, 1.5, "how that slope goes with N"),
    )


FORM = Farseer(
    slug="farseer",
    title="Farseer",
    kind="farseer",
    inputs=("N", "D"),
    parameters=(
        *_parameters(1, "the data exponent", "alpha"),
        *_parameters(2, "the data coefficient", "beta"),
        *_parameters(3, "the floor of a size", "gamma"),
    ),
    formula=f"exp({_at(3, 'gamma')}) + exp({_at(2, 'beta')})*D**(-exp({_at(1, 'alpha')}))",
    text="L = exp(H3) + exp(H2) D^(-exp(H1)), H = h + s ((N/1e8)^x - 1)/x, "
    "x being alpha in H1, beta in H2 and gamma in H3",
    valid="Between the sizes it was fitted on and about a decade beyond: nine constants, no floor that all sizes "
    "share, and a data exponent that may grow or vanish with size.",
    source=Source("Predictable Scale: Part II, Farseer (arXiv 2506.10972)", "the law of the abstract's method"),
    ambiguous="The source's constants were not found, so none are stored.",
)
