"""Prompts as hashes of their prefixes, one for each whole block: what a block-exact prefix cache compares.

A block's hash is the mixed sum of its 64-bit words, each multiplied by its own odd number; a prefix's hash is the mixed
sum of its blocks' hashes, each salted with its place. Sums vectorise over a batch of prompts. Two prefixes of
different content share a hash with probability 2^-59. The lowest five bits hold how often two divides the block's
number, so that a tree of blocks twice as long keeps every second hash and nothing has to be read again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
Ints = NDArray[np.int64]

LEVEL_BITS = 5
LEVELS = np.uint64((1 << LEVEL_BITS) - 1)
_GOLD = np.uint64(int("9E3779B97F4A7C15", 16))  # 2^64 over the golden ratio: the usual odd step
_MIX = (np.uint64(int("BF58476D1CE4E5B9", 16)), np.uint64(int("94D049BB133111EB", 16)))  # finalizer of SplitMix64


@dataclass(frozen=True, eq=False)
class Hashed:
    """Prefix hashes of a batch: flat, ``counts[i]`` of them for prompt ``i``."""

    hashes: U64
    counts: Ints


def mix(values: U64) -> U64:
    """The SplitMix64 finalizer (Steele, Lea and Flood 2014), elementwise."""
    values = (values ^ (values >> np.uint64(30))) * _MIX[0]
    values = (values ^ (values >> np.uint64(27))) * _MIX[1]
    return np.asarray(values ^ (values >> np.uint64(31)))


def hash_prefixes(texts: Sequence[bytes], salts: Sequence[int], block_bytes: int) -> Hashed:
    """Hashes of every whole block's prefix; ``salts`` keep apart what shares no cache. ``block_bytes``: in eights."""
    assert block_bytes % 8 == 0, block_bytes
    counts = np.array([len(text) // block_bytes for text in texts], dtype=np.int64)
    whole = b"".join([text[: count * block_bytes] for text, count in zip(texts, counts.tolist(), strict=True)])
    words: NDArray[Any] = np.frombuffer(whole, dtype="<u8").reshape(-1, block_bytes // 8)
    odd = mix(np.arange(1, words.shape[1] + 1, dtype=np.uint64) * _GOLD) | np.uint64(1)
    total = np.zeros(len(words), dtype=np.uint64)
    for column in range(words.shape[1]):
        word = words[:, column]
        product = (word ^ (word >> np.uint64(29))) * odd[column]
        total += product ^ (product >> np.uint64(32))
    return _chained(mix(total), counts, salts)


def given_prefixes(ids: Sequence[Ints], salts: Sequence[int]) -> Hashed:
    """Hashes of prefixes that a log names itself."""
    counts = np.array([len(item) for item in ids], dtype=np.int64)
    flat = np.concatenate(ids).astype(np.uint64) if len(ids) else np.zeros(0, np.uint64)
    salt = np.repeat(np.array(salts, dtype=np.uint64), counts)
    return Hashed(_levelled(mix(mix(flat + _GOLD) + salt), counts), counts)


def _chained(blocks: U64, counts: Ints, salts: Sequence[int]) -> Hashed:
    salted = mix(blocks + places(counts).astype(np.uint64) * _GOLD)
    running = np.cumsum(salted, dtype=np.uint64)
    starts = np.cumsum(counts) - counts
    before = np.concatenate([np.zeros(1, np.uint64), running])[starts]
    salt = np.array(salts, dtype=np.uint64) - before
    return Hashed(_levelled(mix(running + np.repeat(salt, counts)), counts), counts)


def places(counts: Ints) -> Ints:
    """The number of each block in its prompt, from 1."""
    return np.arange(1, int(counts.sum()) + 1) - np.repeat(np.cumsum(counts) - counts, counts)


def _levelled(hashes: U64, counts: Ints) -> U64:
    place = places(counts)
    twos = np.bitwise_count((place & -place) - 1).astype(np.uint64)
    return np.asarray((hashes & ~LEVELS) | np.minimum(twos, LEVELS))
