"""Forms that are sums of exponentials of linear terms: ln L = ln sum_t exp(F_t theta).

Their derivatives are exact and cheap: with p_t the share of a term in the loss, the gradient is the mean of F_t under
p, the second derivative its covariance.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ridgeline.forecast.form import Array, Columns, Form


@dataclass(frozen=True)
class SumOfTerms(Form):
    """A form whose terms have logarithms that are linear in ``theta``."""

    @abstractmethod
    def design(self, columns: Columns) -> Array:
        """F: the derivative of the logarithm of each term by ``theta``, shape (T, n, P)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """See `Form`."""
        found: Array = np.log(np.sum(np.exp(self._logs(theta, self.design(columns))), axis=-2))
        return found

    def gradient(self, theta: Array, columns: Columns) -> tuple[Array, Array]:
        """See `Form`."""
        value, slopes, _, _ = self._around(theta, columns)
        return value, slopes

    def curvature(self, theta: Array, columns: Columns, weights: Array) -> Array:
        """See `Form`."""
        _, slopes, shares, design = self._around(theta, columns)
        count = design.shape[-1]
        outer = (design[..., :, None] * design[..., None, :]).reshape(-1, count * count)
        weighed = (weights[..., None, :] * shares).reshape(*weights.shape[:-1], len(outer))
        spread = (weighed @ outer).reshape(*weights.shape[:-1], count, count)
        found: Array = spread - np.swapaxes(weights[..., None] * slopes, -1, -2) @ slopes
        return found

    def _logs(self, theta: Array, design: Array) -> Array:
        """The logarithm of each term, (..., T, n)."""
        terms, runs, count = design.shape
        logs: Array = (theta @ design.reshape(terms * runs, count).T).reshape(*theta.shape[:-1], terms, runs)
        return logs

    def _around(self, theta: Array, columns: Columns) -> tuple[Array, Array, Array, Array]:
        design = self.design(columns)
        parts = np.exp(self._logs(theta, design))
        total = np.sum(parts, axis=-2)
        shares = parts / total[..., None, :]
        return np.log(total), np.einsum("...tn,tnp->...np", shares, design), shares, design


def stack(count: int, *terms: Mapping[int, Array | float]) -> Array:
    """A design (T, n, ``count``) from what each term has at which place of ``theta``; nothing elsewhere."""
    runs = max(np.size(value) for term in terms for value in term.values())
    found = np.zeros((len(terms), runs, count))
    for t, term in enumerate(terms):
        for place, value in term.items():
            found[t, :, place] = value
    return found
