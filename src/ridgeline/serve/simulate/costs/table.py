"""How long one step of an engine takes: frozen arrays that the loop interpolates.

A step of the loop is described by a `Shape`: how many tokens pass through the dense layers, how many sequences sample
a token, the prompt work of the step and the contexts of its decodes. `StepTable` turns that into seconds:

    seconds = dense(tokens) + experts(tokens) + head(samples) + attention + host

Attention is read from a four-dimensional grid, because a step that mixes a prompt chunk with decodes takes neither the
sum nor the maximum of the two alone. Several prompt chunks in one step are read as the one chunk of equal work:
with ``work = sum of c * (past + c / 2)`` over the chunks and ``C = sum of c``, the chunk is ``C`` with a past of
``work / C - C / 2``, or, where that would be negative (several short prompts), ``sqrt(2 * work)`` with no past.
Decodes of unequal context are read at their mean context, plus ``alpha`` times the way from there to the time at
their longest context: ``alpha`` is a second grid, over (chunk, decodes, mean context, longest / mean).

Every grid is read by linear interpolation, held at its first node and continued in a straight line past its last one.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ridgeline.core.errors import InputError

Floats = NDArray[np.float64]


class Shape(NamedTuple):
    """One step as the table sees it. Contexts and works are in tokens; ``decode_max`` is 0 without decodes.

    ``tokens`` counts every token of the step, ``samples`` the sequences that sample, ``sequences`` all that take part,
    ``prompt_work`` is the sum of ``c * (past + c / 2)`` over the prompt chunks.
    """

    tokens: int
    sequences: int
    samples: int
    prompt_tokens: int
    prompt_work: float
    decodes: int
    decode_sum: int
    decode_max: int


@dataclass(frozen=True, eq=False)
class Curve:
    """Seconds at rising nodes. Raises `InputError` for unequal lengths, falling nodes or negative seconds."""

    at: Floats
    seconds: Floats

    def __post_init__(self) -> None:
        for name in ("at", "seconds"):
            object.__setattr__(self, name, _frozen(getattr(self, name), name))
        _not_negative(self.seconds, "a curve of the step table")
        if self.at.ndim != 1 or self.at.shape != self.seconds.shape or not len(self.at):
            raise InputError.expected("as many nodes as seconds", self.seconds.shape, where="a curve of the step table")
        _rising(self.at, "a curve of the step table")

    def __call__(self, value: float) -> float:
        """Seconds at ``value``."""
        return _interpolate((self.at,), self.seconds, (float(value),))


@dataclass(frozen=True, eq=False)
class Grid:
    """Values on four rising axes; ``values`` has the shape of their lengths. Raises `InputError` as `Curve` does."""

    axes: tuple[Floats, Floats, Floats, Floats]
    values: Floats

    def __post_init__(self) -> None:
        axes = tuple(_frozen(axis, "an axis") for axis in self.axes)
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "values", _frozen(self.values, "a grid"))
        if len(axes) != 4 or self.values.shape != tuple(len(axis) for axis in axes) or not self.values.size:
            got = f"{self.values.shape} for axes of {[len(axis) for axis in axes]}"
            raise InputError.expected("four axes and one value at each crossing", got, where="a grid of the step table")
        for axis in axes:
            _rising(axis, "a grid of the step table")

    def __call__(self, a: float, b: float, c: float, d: float) -> float:
        """The value at a point."""
        return _interpolate(self.axes, self.values, (float(a), float(b), float(c), float(d)))


def zero_curve() -> Curve:
    """No seconds whatever the size."""
    return Curve(np.zeros(1), np.zeros(1))


def zero_grid() -> Grid:
    """Nothing anywhere."""
    return Grid((np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1)), np.zeros((1, 1, 1, 1)))


@dataclass(frozen=True, eq=False)
class StepTable:
    """Seconds of a step on one replica.

    ``dense`` and ``experts`` by tokens of the step, ``head`` by sequences that sample (0 without any),
    ``attention`` on (prompt chunk, past of the chunk, decodes, mean context of the decodes),
    ``skew`` (alpha, no unit) on (prompt chunk, decodes, mean context, longest / mean context),
    ``host_step_s`` once a step, ``host_sequence_s`` for each sequence of it.
    Raises `InputError` for negative or non-finite seconds.
    """

    dense: Curve
    head: Curve
    attention: Grid
    skew: Grid = field(default_factory=zero_grid)
    experts: Curve = field(default_factory=zero_curve)
    host_step_s: float = 0.0
    host_sequence_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("host_step_s", "host_sequence_s"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError.expected("seconds of at least 0", getattr(self, name), where=name)
        _not_negative(self.attention.values, "the attention of the step table")

    def terms(self, shape: Shape) -> dict[str, float]:
        """Seconds of each term of a step, in the order in which `seconds` adds them."""
        return {
            "dense": self.dense(shape.tokens),
            "experts": self.experts(shape.tokens),
            "head": self.head(shape.samples) if shape.samples else 0.0,
            "attention": self._attention_s(shape),
            "host": self.host_step_s + self.host_sequence_s * shape.sequences,
        }

    def seconds(self, shape: Shape) -> float:
        """Seconds of a step."""
        total = 0.0
        for value in self.terms(shape).values():
            total += value
        return total

    def _attention_s(self, shape: Shape) -> float:
        chunk, past = equal_chunk(shape.prompt_tokens, shape.prompt_work)
        if not shape.decodes:
            return self.attention(chunk, past, 0.0, 0.0) if shape.prompt_tokens else 0.0
        mean = shape.decode_sum / shape.decodes
        level = self.attention(chunk, past, shape.decodes, mean)
        if shape.decode_max <= mean:
            return level
        alpha = self.skew(chunk, shape.decodes, mean, shape.decode_max / mean)
        if alpha == 0.0:
            return level
        return level + alpha * (self.attention(chunk, past, shape.decodes, shape.decode_max) - level)


def equal_chunk(prompt_tokens: int, prompt_work: float) -> tuple[float, float]:
    """The one prompt chunk, and its past, that has the attention work of the step's chunks."""
    if prompt_tokens == 0:
        return 0.0, 0.0
    past = prompt_work / prompt_tokens - prompt_tokens / 2.0
    if past >= 0.0:
        return float(prompt_tokens), past
    return math.sqrt(2.0 * prompt_work), 0.0


def place(axis: Floats, value: float) -> tuple[int, float]:
    """The node below ``value`` and how far on to the next one it lies (above 1 past the last node)."""
    if len(axis) == 1 or value <= axis[0]:
        return 0, 0.0
    low = min(int(np.searchsorted(axis, value, side="right")) - 1, len(axis) - 2)
    return low, float((value - axis[low]) / (axis[low + 1] - axis[low]))


def _interpolate(axes: tuple[Floats, ...], values: Floats, point: tuple[float, ...]) -> float:
    """Linear interpolation, the last axis innermost."""
    low, part = place(axes[0], point[0])
    if len(axes) == 1:
        return float(values[low]) if part == 0.0 else float(values[low] + part * (values[low + 1] - values[low]))
    below = _interpolate(axes[1:], values[low], point[1:])
    if part == 0.0:
        return below
    above = _interpolate(axes[1:], values[low + 1], point[1:])
    return below + part * (above - below)


def _frozen(values: ArrayLike, name: str) -> Floats:
    array = np.array(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise InputError.expected("finite values", "others", where=f"{name} of the step table")
    array.setflags(write=False)
    return array


def _not_negative(values: Floats, where: str) -> None:
    if (values < 0).any():
        raise InputError.expected("seconds of at least 0", float(values.min()), where=where)


def _rising(axis: Floats, where: str) -> None:
    if axis.ndim != 1 or (np.diff(axis) <= 0).any():
        raise InputError.expected("nodes that rise", axis.tolist(), where=where)
