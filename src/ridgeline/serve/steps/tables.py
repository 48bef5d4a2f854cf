"""Times on nodes of tokens, so that one estimate is a look-up; more tokens never take less time.

Measured surfaces have noise in them, and a step that gets faster with a token more would mislead a scheduler: on the
nodes the running maximum holds. Between nodes the logarithm is interpolated, above the last one the time grows as its
tokens do.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ridgeline.core.surfaces import Estimate, Floats, corners

# Powers of two and the points half-way between them, to 2**18 tokens a step or 2**21 of context.
TOKENS: Floats = np.unique(np.round(2.0 ** (np.arange(37) / 2)))
BATCHES: Floats = np.exp2(np.arange(0.0, 13.0))
CONTEXTS: Floats = np.exp2(np.arange(0.0, 22.0))


@dataclass(frozen=True)
class Span:
    """Seconds with the ends of their 80% interval; arrays of one shape."""

    seconds: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, found: Estimate) -> "Span":
        """Without what was measured."""
        return cls(found.seconds, found.low, found.high)

    @classmethod
    def exact(cls, seconds: Floats) -> "Span":
        """Without an interval."""
        return cls(seconds, seconds, seconds)

    def __mul__(self, factor: float | Floats) -> "Span":
        return Span(self.seconds * factor, self.low * factor, self.high * factor)

    def __add__(self, other: "Span") -> "Span":
        """Both, with errors of one cause: the ends add up."""
        return Span(self.seconds + other.seconds, self.low + other.low, self.high + other.high)

    def larger(self, other: "Span") -> "Span":
        """The longer of both, end by end."""
        return Span(*(np.maximum(a, b) for a, b in zip(self.ends, other.ends, strict=True)))

    def at(self, index: int) -> "Span":
        """One row."""
        return Span(*(item[index] for item in self.ends))

    @property
    def ends(self) -> tuple[Floats, Floats, Floats]:
        """All three."""
        return self.seconds, self.low, self.high


def zero(shape: tuple[int, ...]) -> Span:
    """No time."""
    return Span.exact(np.zeros(shape))


@dataclass(frozen=True)
class Table:
    """Logarithms of seconds, low and high on the nodes of one or two axes (natural logarithms)."""

    axes: tuple[Floats, ...]
    logs: Floats

    @classmethod
    def of(cls, axes: tuple[Floats, ...], measure: Callable[..., Span]) -> "Table":
        """``measure`` is asked once for all nodes; times must be above zero."""
        points = [item.ravel() for item in np.meshgrid(*axes, indexing="ij")]
        shape = tuple(len(axis) for axis in axes)
        stack = np.stack([item.reshape(shape) for item in measure(*points).ends])
        for axis in range(1, stack.ndim):
            stack = np.maximum.accumulate(stack, axis=axis)
        return cls(tuple(np.log(axis) for axis in axes), np.log(stack))

    def __call__(self, *sides: Floats) -> Span:
        """The time at ``sides``, arrays of one shape."""
        logs = [np.log(side) for side in sides]
        beyond = np.ones(np.shape(sides[0]))
        for axis, value in zip(self.axes, logs, strict=True):
            beyond = beyond * np.exp(np.maximum(value - axis[-1], 0.0))
        total = np.zeros((3, *np.shape(sides[0])))
        flat = self.logs.reshape(3, -1)
        for index, weight in corners(self.axes, logs):
            total += weight * flat[:, index]
        return Span(*(np.exp(total) * beyond))
