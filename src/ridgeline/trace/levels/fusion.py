"""Chains of memory-bound kernels that a compiler would fuse, and what fusing would save.

A chain is a run of neighbouring kernels on one stream, with little time between, that each do one elementwise step,
cast, normalization or reduction over arrays of one size. Fused, an intermediate array is neither written nor read
again. The saving is an upper bound: an intermediate that backward needs is still written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgeline.trace.events import Events, Ints

FUSIBLE = ("elementwise", "copy", "normalization", "softmax", "reduction")


@dataclass(frozen=True, eq=False)
class Kernels:
    """Kernels to look at, in order of stream and start; one entry each.

    ``rows`` of the table; ``label``: index into ``names`` of the operation; ``bytes`` it moves and ``elements`` of its
    largest array (NONE: not known, or not fusible); ``item``: bytes of an element.
    """

    rows: Ints
    label: Ints
    bytes: Ints
    elements: Ints
    item: Ints
    names: Sequence[str]


@dataclass(frozen=True)
class Chain:
    """Equal chains together: operations in order, elements of their arrays, how often.

    ``device_ns`` and ``bytes`` of all of them; fusing saves ``saved_bytes`` and, at the bandwidth that the faster
    kernel of each pair reaches now, ``saved_ns``.
    """

    operations: tuple[str, ...]
    elements: int
    count: int
    device_ns: int
    bytes: int
    saved_bytes: int
    saved_ns: int


def chains(events: Events, kernels: Kernels, *, gap_ns: int = 10_000) -> list[Chain]:
    """Chains of at least two kernels, the most costly first. ``gap_ns``: the longest wait inside a chain."""
    if len(kernels.rows) < 2:
        return []
    rows = kernels.rows
    same = (events.stream[rows[1:]] == events.stream[rows[:-1]]) & (events.device[rows[1:]] == events.device[rows[:-1]])
    near = events.ts[rows[1:]] - events.end[rows[:-1]] <= gap_ns
    joins = same & near & (kernels.elements[1:] > 0) & (kernels.elements[1:] == kernels.elements[:-1])
    start = np.flatnonzero(np.r_[True, ~joins])
    length = np.diff(np.r_[start, len(rows)])
    keep = length > 1
    if not keep.any():
        return []
    totals = _sums(events, kernels, joins, start)
    key = _signature(kernels, start, length)
    found = []
    _, first, group = np.unique(key[keep], return_index=True, return_inverse=True)
    starts, lengths = start[keep], length[keep]
    sums = [np.bincount(group, weights=total[keep]) for total in totals]
    counts = np.bincount(group)
    for i, at in enumerate(first):
        inside = slice(int(starts[at]), int(starts[at] + lengths[at]))
        names = tuple(kernels.names[label] for label in kernels.label[inside])
        sizes = [int(total[i]) for total in sums]
        found.append(Chain(names, int(kernels.elements[inside.start]), int(counts[i]), *sizes))
    return sorted(found, key=lambda chain: -chain.saved_ns)


def _sums(events: Events, kernels: Kernels, joins: Any, start: Ints) -> list[Ints]:
    """Device time, bytes, saved bytes and saved time of each run: a link saves one write and one read of its array."""
    moved, dur = np.maximum(kernels.bytes, 0), events.dur[kernels.rows]
    link = np.r_[joins, False] * 2 * np.maximum(kernels.elements, 0) * kernels.item
    rate = moved / np.maximum(dur, 1)
    fastest = np.maximum(np.maximum(rate, np.r_[rate[1:], 0.0]), 1e-12)
    columns = (dur, moved, link, np.round(link / fastest))
    return [np.add.reduceat(column.astype(np.int64), start) for column in columns]


def _signature(kernels: Kernels, start: Ints, length: Ints) -> Any:
    """One number per run for its operations and size: a polynomial hash, so that equal runs meet without a loop."""
    place = (np.arange(len(kernels.rows)) - np.repeat(start, length)).astype(np.uint64)
    code = kernels.label.astype(np.uint64) + np.uint64(1)
    mixed = (code * np.uint64(0x01000193)) ^ (place * np.uint64(0x30000059))
    mixed = mixed * (mixed >> np.uint64(13) | np.uint64(1))
    total = np.add.reduceat(mixed, start)
    return total ^ (kernels.elements[start].astype(np.uint64) << np.uint64(20)) ^ length.astype(np.uint64)
