"""A prefix tree without its text: a table of prefix hashes in bounded memory, walked a batch of prompts at a time.

A prefix that was seen has all its shorter prefixes in the table, so the blocks found are the leading ones: their number
is the walk of a block-exact prefix cache that never evicts. With a lifetime, a block that was not used for so long
counts as gone; every use renews the whole prefix, so the blocks found are still the leading ones.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ridgeline.serve.hygiene.blocks import LEVEL_BITS, LEVELS, U64, Hashed, Ints

LEAST_SLOTS = 1 << 12
MOST_SLOTS = 1 << 23  # 64 MiB of hashes
_LOAD = 0.6  # of the slots in use before the table grows
_SHIFT = np.uint64(LEVEL_BITS)


class Tree:
    """Every prefix seen so far. ``slots`` bounds the table; when it is full, blocks are taken twice as long."""

    def __init__(self, slots: int = MOST_SLOTS, ttl_s: float = math.inf) -> None:
        self.slots, self.ttl_s = slots, ttl_s
        self.level = 0
        self.size = 0
        self._table: U64 = np.zeros(min(LEAST_SLOTS, slots), dtype=np.uint64)
        self._last: NDArray[np.float64] | None = np.zeros(len(self._table)) if math.isfinite(ttl_s) else None

    @property
    def unique(self) -> int:
        """Distinct blocks seen, in the log's own blocks."""
        return self.size << self.level

    def add(self, batch: Hashed, times_s: NDArray[np.float64]) -> Ints:
        """Walk and insert prompts in order; returns how many leading blocks of each were there, (n,).

        ``times_s`` (n,) ascends and matters only where there is a lifetime.
        """
        owners = np.repeat(np.arange(len(batch.counts)), batch.counts)
        chosen = (batch.hashes & LEVELS) >= np.uint64(self.level)
        keys, owners = batch.hashes[chosen], owners[chosen]
        order = np.argsort(keys, kind="stable")
        ordered, by = keys[order], owners[order]
        fresh = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(keys) else np.zeros(0, np.bool_)
        starts = np.flatnonzero(fresh)
        unique = ordered[starts]
        slot = self._find(unique)
        group = np.cumsum(fresh) - 1
        if self._last is None:
            found = (slot >= 0)[group] | (by[starts][group] < by)
        else:
            earlier = np.where(slot >= 0, self._last[np.maximum(slot, 0)], -math.inf)
            previous = np.where(fresh, earlier[group], np.roll(times_s[by], 1))
            found = times_s[by] - previous <= self.ttl_s
        hits = np.bincount(by[found], minlength=len(batch.counts)) << self.level
        self._insert(unique[slot < 0])
        if self._last is not None and len(keys):
            ends = np.append(starts[1:], len(keys)) - 1
            kept = self._find(unique)
            self._last[kept[kept >= 0]] = times_s[by[ends]][kept >= 0]
        return np.asarray(np.minimum(hits, batch.counts), dtype=np.int64)

    def _find(self, keys: U64) -> Ints:
        """The slot of each key, -1 where it is not in the table."""
        mask = np.uint64(len(self._table) - 1)
        slot = (keys >> _SHIFT) & mask
        found = np.full(len(keys), -1, dtype=np.int64)
        todo = np.arange(len(keys))
        while len(todo):
            there = self._table[slot[todo]]
            same = there == keys[todo]
            found[todo[same]] = slot[todo[same]]
            todo = todo[~same & (there != 0)]
            slot[todo] = (slot[todo] + np.uint64(1)) & mask
        return found

    def _insert(self, keys: U64) -> None:
        """Put distinct keys that are not there into the table."""
        while self.size + len(keys) > _LOAD * len(self._table):
            if 2 * len(self._table) <= self.slots:
                self._rebuild(2 * len(self._table))
            elif self.level < int(LEVELS):
                self.level += 1
                keys = keys[(keys & LEVELS) >= np.uint64(self.level)]
                self._rebuild(len(self._table))
            else:
                return
        self.size += len(keys)
        self._place(keys)

    def _place(self, keys: U64) -> None:
        mask = np.uint64(len(self._table) - 1)
        slot = (keys >> _SHIFT) & mask
        todo = np.arange(len(keys))
        while len(todo):
            empty = todo[self._table[slot[todo]] == 0]
            self._table[slot[empty]] = keys[empty]  # of two that meet in one slot the later stays
            todo = todo[self._table[slot[todo]] != keys[todo]]
            slot[todo] = (slot[todo] + np.uint64(1)) & mask

    def _rebuild(self, slots: int) -> None:
        kept = (self._table != 0) & ((self._table & LEVELS) >= np.uint64(self.level))
        keys = self._table[kept]
        last = None if self._last is None else self._last[kept]
        self._table = np.zeros(slots, dtype=np.uint64)
        self.size = len(keys)
        self._place(keys)
        if last is not None:
            self._last = np.full(slots, -math.inf)
            self._last[self._find(keys)] = last
