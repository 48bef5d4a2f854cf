"""A cache that holds only so much: the prefix hashes of a log through the simulator's least-recently-used list."""

import numpy as np
from numpy.typing import NDArray

from ridgeline.serve.hygiene.blocks import LEVELS, Hashed, Ints
from ridgeline.serve.simulate.engine.cache import hits
from ridgeline.serve.simulate.traffic.workload import Workload

MOST_BLOCKS = 1 << 24  # 128 MiB of hashes held for the walk


class Held:
    """Prefix hashes of every request in order, in bounded memory: when full, blocks are taken twice as long."""

    def __init__(self, most: int = MOST_BLOCKS) -> None:
        self.most = most
        self.level = 0
        self._hashes: list[NDArray[np.uint64]] = []
        self._counts: list[Ints] = []
        self._per_block: list[NDArray[np.float64]] = []
        self._tokens: list[NDArray[np.float64]] = []
        self._size = 0

    def add(self, batch: Hashed, per_block: NDArray[np.float64], tokens: NDArray[np.float64]) -> None:
        """The requests of a batch with the tokens of a block and of the prompt."""
        kept = self._kept(batch.hashes)
        owners = np.repeat(np.arange(len(batch.counts)), batch.counts)[kept]
        self._hashes.append(batch.hashes[kept])
        self._counts.append(np.bincount(owners, minlength=len(batch.counts)).astype(np.int64))
        self._per_block.append(per_block)
        self._tokens.append(tokens)
        self._size += int(kept.sum())
        while self._size > self.most:
            self._coarsen()

    def _kept(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        return np.asarray((hashes & LEVELS) >= np.uint64(self.level))

    def _coarsen(self) -> None:
        self.level += 1
        flat, counts = np.concatenate(self._hashes), np.concatenate(self._counts)
        kept = self._kept(flat)
        owners = np.repeat(np.arange(len(counts)), counts)[kept]
        self._hashes = [flat[kept]]
        self._counts = [np.bincount(owners, minlength=len(counts)).astype(np.int64)]
        self._size = int(kept.sum())

    def hit_tokens(self, capacity_tokens: float, block_tokens: float) -> float:
        """Prompt tokens that a cache of that size would have found."""
        counts = np.concatenate(self._counts)
        if not self._size:
            return 0.0
        blocks = max(1, int(capacity_tokens / (block_tokens * 2**self.level)))
        lengths = np.maximum(counts, 1)
        load = Workload(
            arrival_s=np.arange(len(counts), dtype=np.float64),
            input_tokens=lengths,
            output_tokens=np.ones(len(counts), dtype=np.int64),
            hashes=np.concatenate(self._hashes).view(np.int64),
            hash_offsets=np.concatenate([[0], np.cumsum(counts)]),
            hash_tokens=1,
        )
        found = hits(load, blocks).blocks << self.level
        return float(np.minimum(found * np.concatenate(self._per_block), np.concatenate(self._tokens)).sum())
