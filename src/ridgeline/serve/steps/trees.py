"""Sums of small decision trees, evaluated on arrays: what a fit has learnt beyond the terms of a step.

Every tree is a full binary one of the same depth, stored by level: node i has the children 2i+1 and 2i+2, and goes
right where its feature is above its threshold. A feature of -1 goes left. Friedman 2001, "Greedy function
approximation: a gradient boosting machine", is where such sums come from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Trees:
    """A base and a leaf a tree: ``features`` and ``thresholds`` (trees, nodes), ``leaves`` (trees, nodes + 1)."""

    base: float
    features: Ints
    thresholds: Floats
    leaves: Floats

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Trees":
        """From its JSON form: thresholds are indices into ``edges``, one list a feature; leaves are in ``unit``."""
        features = np.asarray(data["features"], dtype=np.int64)
        edges: Sequence[Sequence[float]] = data["edges"]
        places = np.asarray(data["thresholds"], dtype=np.int64)
        thresholds = np.full(features.shape, np.inf)
        for index in zip(*np.nonzero(features >= 0), strict=True):
            thresholds[index] = edges[features[index]][places[index]]
        leaves = np.asarray(data["leaves"], dtype=np.float64) * float(data["unit"])
        return cls(float(data["base"]), features, thresholds, leaves)

    def __call__(self, rows: Floats) -> Floats:
        """The sum for every row of (rows, features)."""
        count, nodes = self.features.shape
        place = np.zeros((len(rows), count), dtype=np.int64)
        trees, lines = np.arange(count), np.arange(len(rows))[:, None]
        while place.size and place.max() < nodes:
            feature = self.features[trees, place]
            right = (feature >= 0) & (rows[lines, np.maximum(feature, 0)] > self.thresholds[trees, place])
            place = 2 * place + 1 + right
        found: Floats = self.base + self.leaves[trees, place - nodes].sum(axis=1)
        return found
