"""A prefix cache by itself: how much of the prompts a cache of so many blocks would have held.

Requests are looked up one after another in the order given, nothing runs: this is the bound that a schedule can
approach. A prompt finds its longest prefix of whole blocks; then all its blocks are used, and the least recently used
ones leave while there are too many. A started last block counts with the tokens that it has.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.traffic.workload import Workload

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Hits:
    """``blocks`` and ``tokens`` found per request, (n,); ``input_tokens`` is what was asked for."""

    blocks: Ints
    tokens: Ints
    input_tokens: Ints

    @property
    def rate(self) -> float:
        """Tokens found of all prompt tokens."""
        return float(self.tokens.sum() / self.input_tokens.sum())


def hit_rate(workload: Workload, capacity_blocks: int | None = None) -> float:
    """Token-weighted hit rate of a cache of ``capacity_blocks`` hashed blocks; None has no limit."""
    return hits(workload, capacity_blocks).rate


def hits(workload: Workload, capacity_blocks: int | None = None) -> Hits:
    """What each request finds. Raises `InputError` without block hashes or for a capacity below one block."""
    if not workload.has_hashes:
        raise InputError.expected("block hashes of the prompts", "none", where=workload.name)
    if capacity_blocks is not None and capacity_blocks < 1:
        raise InputError.expected("at least one block", capacity_blocks, where="capacity")
    from ridgeline.serve.simulate.kernel.lru import walk

    _, dense = np.unique(workload.hashes, return_inverse=True)
    ids = int(dense.max()) + 1
    capacity = ids if capacity_blocks is None else min(capacity_blocks, ids)
    found = np.zeros(len(workload), dtype=np.int64)
    walk(dense.astype(np.int64), workload.hash_offsets.copy(), _ring(ids), capacity, found)
    tokens = np.minimum(found * workload.hash_tokens, workload.input_tokens)
    return Hits(found, tokens, workload.input_tokens)


def _ring(ids: int) -> NDArray[np.int64]:
    """Links of a list by last use, (2, ids + 1): before and after; -1 is not in the cache."""
    links = np.full((2, ids + 1), -1, dtype=np.int64)
    links[:, ids] = ids
    return links


def block_hashes(workload: Workload, block_size: int) -> tuple[Ints32, Ints]:
    """The hashes, numbered from 0, of the full blocks of ``block_size`` tokens of every prompt, and their offsets.

    Where the trace hashes larger blocks than the engine's, each is split; where smaller, a block has its last one's.
    Raises `InputError` where neither size divides the other.
    """
    size = workload.hash_tokens
    if size % block_size and block_size % size:
        raise InputError.expected(f"a block size that divides {size}, or a multiple", block_size, where="block_size")
    _, dense = np.unique(workload.hashes, return_inverse=True)
    split = max(1, size // block_size)
    joined = max(1, block_size // size)
    known = np.diff(workload.hash_offsets) * split // joined
    counts = np.minimum(workload.input_tokens // block_size, known)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    source = np.repeat(workload.hash_offsets[:-1], counts) + ((within + 1) * joined - 1) // split
    return (dense[source] * split + within % split).astype(np.int32), offsets
