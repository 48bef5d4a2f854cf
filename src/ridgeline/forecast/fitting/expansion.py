"""A form around a point: its values, and the weighted sums of its first and second derivatives over the runs.

Newton's method needs sums over runs only. Where the derivatives of ln L are coefficients that vary by problem times
features that do not (a log-sum-exp of terms that are linear in theta), each sum is one matrix product of coefficients
(B, n) and features (n, k), and no array of shape (B, n, P, P) is ever made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sums:
    """Of B problems: ``gradient`` (B, P), ``hessian`` (B, P, P) and its ``majoriser`` (B, P, P)."""

    gradient: Array
    hessian: Array
    majoriser: Array


class Expansion(Protocol):
    """ln L and its derivatives around some points."""

    @property
    def value(self) -> Array:
        """ln L, shape (B, n)."""
        ...

    def sums(self, slope: Array, bend: Array, major: Array) -> Sums:
        """Sums over runs: slope*J, bend*JJ' + slope*K and major*JJ', for J and K the derivatives of ln L.

        The three arguments have shape (B, n).
        """


@dataclass(frozen=True)
class Dense:
    """Any form: its slopes (B, n, P) and how to sum its curvature."""

    value: Array
    slopes: Array
    curvature: "Curvature"

    def sums(self, slope: Array, bend: Array, major: Array) -> Sums:
        """See `Expansion`."""
        turned = np.swapaxes(self.slopes, -1, -2)
        return Sums(
            gradient=(turned @ slope[..., None])[..., 0],
            hessian=(turned * bend[..., None, :]) @ self.slopes + self.curvature(slope),
            majoriser=(turned * major[..., None, :]) @ self.slopes,
        )


class Curvature(Protocol):
    """Weights (B, n) to the weighted sum of second derivatives (B, P, P)."""

    def __call__(self, weights: Array, /) -> Array: ...


@dataclass(frozen=True)
class Block:
    """Derivatives by a few parameters at once: ``coefficient`` (B, n) times ``features`` (n, k)."""

    index: tuple[int, ...]
    features: Array
    coefficient: Array


@dataclass(frozen=True)
class Blocks:
    """ln L whose derivatives factor into blocks.

    ``second`` maps a pair of blocks (i <= j) to the coefficient (B, n) of the second derivatives between them; a
    pair that is absent has none.
    """

    value: Array
    blocks: tuple[Block, ...]
    second: Mapping[tuple[int, int], Array]

    @property
    def count(self) -> int:
        """The number of parameters."""
        return sum(len(block.index) for block in self.blocks)

    def slopes(self) -> Array:
        """The derivatives of ln L, shape (..., n, P)."""
        found = np.zeros((*self.value.shape, self.count))
        for block in self.blocks:
            found[..., list(block.index)] = block.coefficient[..., None] * block.features
        return found

    def curvature(self, weights: Array) -> Array:
        """The sum over runs of ``weights`` (..., n) times the second derivatives, shape (..., P, P)."""
        found = np.zeros((*self.value.shape[:-1], self.count, self.count))
        for (i, j), coefficient in self.second.items():
            self._put(found, i, j, weights * coefficient)
        return found

    def sums(self, slope: Array, bend: Array, major: Array) -> Sums:
        """See `Expansion`."""
        shape = self.value.shape[:-1]
        gradient = np.empty((*shape, self.count))
        hessian, majoriser = np.empty((2, *shape, self.count, self.count))
        for i, one in enumerate(self.blocks):
            gradient[..., list(one.index)] = (slope * one.coefficient) @ one.features
            bent, weighed = bend * one.coefficient, major * one.coefficient
            for j in range(i, len(self.blocks)):
                both = bent * self.blocks[j].coefficient
                if (i, j) in self.second:
                    both += slope * self.second[i, j]
                self._put(hessian, i, j, both)
                self._put(majoriser, i, j, weighed * self.blocks[j].coefficient)
        return Sums(gradient, hessian, majoriser)

    def _put(self, into: Array, i: int, j: int, coefficient: Array) -> None:
        """The sum over runs of coefficient times the features of both blocks, into their corner of the matrices."""
        one, other = self.blocks[i], self.blocks[j]
        crossed = (one.features[:, :, None] * other.features[:, None, :]).reshape(len(one.features), -1)
        summed = (coefficient @ crossed).reshape(*coefficient.shape[:-1], len(one.index), len(other.index))
        into[..., np.array(one.index)[:, None], np.array(other.index)] = summed
        if i != j:
            into[..., np.array(other.index)[:, None], np.array(one.index)] = np.swapaxes(summed, -1, -2)
