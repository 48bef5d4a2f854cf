"""Sets of time as sorted, disjoint [start, end) intervals in integer nanoseconds; all operations are exact.

A set is a pair of int64 arrays. Events become a set by `union`: overlapping work is counted once.
"""

from typing import Any, NamedTuple

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]


class Spans(NamedTuple):
    """Sorted, disjoint, non-empty intervals."""

    start: Ints
    end: Ints

    @property
    def total(self) -> int:
        """Length of the set, ns."""
        return int((self.end - self.start).sum())

    @property
    def extent(self) -> tuple[int, int]:
        """First start and last end; (0, 0) for an empty set."""
        return (int(self.start[0]), int(self.end[-1])) if len(self.start) else (0, 0)


EMPTY = Spans(np.empty(0, np.int64), np.empty(0, np.int64))


def union(start: Ints, dur: Ints) -> Spans:
    """The time covered by events. Events of no or negative length cover nothing."""
    keep = dur > 0
    if not keep.any():
        return EMPTY
    order = np.argsort(start[keep], kind="stable")
    begin = start[keep][order]
    reach = np.maximum.accumulate(begin + dur[keep][order])
    first = np.r_[True, begin[1:] > reach[:-1]]  # touching intervals join
    return Spans(begin[first], reach[np.r_[first[1:], True]])


def intersect(a: Spans, b: Spans) -> Spans:
    """Time in both sets."""
    return _sweep(a, b, lambda in_a, in_b: in_a & in_b)


def subtract(a: Spans, b: Spans) -> Spans:
    """Time in ``a`` and not in ``b``."""
    return _sweep(a, b, lambda in_a, in_b: in_a & ~in_b)


def either(a: Spans, b: Spans) -> Spans:
    """Time in at least one of the sets."""
    return union(np.r_[a.start, b.start], np.r_[a.end - a.start, b.end - b.start])


def clip(a: Spans, low: int, high: int) -> Spans:
    """The part of the set inside [low, high)."""
    if high <= low:
        return EMPTY
    return intersect(a, Spans(np.array([low], np.int64), np.array([high], np.int64)))


def gaps(a: Spans, low: int, high: int) -> Spans:
    """The part of [low, high) that the set does not cover."""
    if high <= low:
        return EMPTY
    return subtract(Spans(np.array([low], np.int64), np.array([high], np.int64)), a)


def covered(a: Spans, start: Ints, end: Ints) -> Ints:
    """For each [start, end): how many ns of it the set covers. O((n + m) log m)."""
    return _upto(a, end) - _upto(a, start)


def _upto(a: Spans, at: Ints) -> Ints:
    """Length of the set before each time."""
    if not len(a.start):
        return np.zeros(len(at), np.int64)
    before = np.r_[0, np.cumsum(a.end - a.start)]
    index = np.searchsorted(a.start, at, side="right")
    inside = np.where(index > 0, np.minimum(at, a.end[np.maximum(index - 1, 0)]) - a.start[np.maximum(index - 1, 0)], 0)
    return before[np.maximum(index - 1, 0)] + inside  # type: ignore[no-any-return]


def _sweep(a: Spans, b: Spans, wanted: Any) -> Spans:
    """One pass over the edges of both sets."""
    times = np.concatenate([a.start, a.end, b.start, b.end])
    if not len(times):
        return EMPTY
    step_a = np.r_[
        np.ones(len(a.start), np.int64), -np.ones(len(a.end), np.int64), np.zeros(2 * len(b.start), np.int64)
    ]
    step_b = np.r_[
        np.zeros(2 * len(a.start), np.int64), np.ones(len(b.start), np.int64), -np.ones(len(b.end), np.int64)
    ]
    order = np.argsort(times, kind="stable")
    edge = times[order]
    inside = wanted(np.cumsum(step_a[order]) > 0, np.cumsum(step_b[order]) > 0)[:-1] & (np.diff(edge) > 0)
    return union(edge[:-1][inside], np.diff(edge)[inside])
