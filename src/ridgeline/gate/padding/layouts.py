"""Ways to lay sequences into a step: padded to the max length, to the longest of a batch, bucketed, packed, unpadded.

A layout is the token slots that are computed and the spans that attention computes over: with padding a span is the
padded row, in a packed row whose mask only hides other sequences the whole row, and with kernels that stop at borders
the sequence itself.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
PADDED, LONGEST, BUCKETED = "padded to the max length", "padded to the longest of a batch", "bucketed by length"
MASKED, PACKED, VARLEN = "packed, other sequences masked", "packed, borders respected", "no padding (varlen)"


@dataclass(frozen=True)
class Layout:
    """``spans`` are the lengths that attention computes over; ``rows`` how many of them a step holds."""

    name: str
    spans: Counts
    slots: int
    rows: int


@dataclass(frozen=True)
class Batches:
    """True tokens, sequences and the longest sequence of every batch, in order."""

    tokens: Counts
    sequences: Counts
    longest: Counts

    @property
    def utilisation(self) -> NDArray[np.float64]:
        """Of each batch, padded to its longest sequence; of one without a token, 1: nothing is computed."""
        slots = self.sequences * self.longest
        return np.where(slots > 0, self.tokens / np.maximum(slots, 1), 1.0)


def batches(lengths: Counts, size: int) -> Batches:
    """Batches of ``size`` sequences in order; the last one may be smaller."""
    starts = np.arange(0, len(lengths), size)
    tokens, longest = np.add.reduceat(lengths, starts), np.maximum.reduceat(lengths, starts)
    return Batches(tokens, np.diff([*starts, len(lengths)]), longest)


def best_fit_decreasing(lengths: Counts, size: int) -> Counts:
    """Tokens of each row when sequences are packed, the longest first, each into the fullest row that has room.

    It needs 11/9 of the fewest rows at most, as first fit decreasing does (Johnson et al. 1974, SIAM J. Comput. 3), and
    finds a row by bisection. Empty sequences need none.
    """
    room: list[int] = []  # of open rows, ascending
    for length in sorted((int(item) for item in lengths if item > 0), reverse=True):
        at = bisect_left(room, length)
        left = (room.pop(at) if at < len(room) else size) - length
        insort(room, left)
    return size - np.array(room, dtype=np.int64)


def layouts(lengths: Counts, longest: int, size: int | None) -> tuple[Layout, ...]:
    """Every layout of ``lengths`` (each at most ``longest``); without a batch ``size`` all are one batch.

    Bucketing sorts by length first, and is left out where there is one batch.
    """
    n, size = len(lengths), size or len(lengths)
    rows = best_fit_decreasing(lengths, longest)
    gaps, true = longest - rows, lengths[lengths > 0]
    found = [_rows(PADDED, np.full(n, longest)), _rows(LONGEST, _widths(lengths, size))]
    if size < n:
        found.append(_rows(BUCKETED, _widths(np.sort(lengths), size)))
    packed = np.concatenate([true, gaps[gaps > 0]])
    return (
        *found,
        _rows(MASKED, np.full(len(rows), longest)),
        Layout(PACKED, packed, int(packed.sum()), len(rows)),
        _rows(VARLEN, true),
    )


def _widths(lengths: Counts, size: int) -> Counts:
    found = batches(lengths, size)
    widths: Counts = np.repeat(found.longest, found.sequences)
    return widths[widths > 0]


def _rows(name: str, spans: Counts) -> Layout:
    return Layout(name, spans.astype(np.int64), int(spans.sum()), len(spans))
