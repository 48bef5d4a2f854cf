"""The default interval of candidate minus baseline, by what the scores are and whether examples come in groups."""

import numpy as np
from numpy.typing import NDArray

from ridgeline.gate.statistics.clusters import Labels, clustered_binary, clustered_mean
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.paired import paired_binary, paired_mean

Floats = NDArray[np.float64]


def is_binary(*scores: Floats) -> bool:
    """Whether every score is zero or one."""
    return all(bool(((item == 0) | (item == 1)).all()) for item in scores)


def compare(baseline: Floats, candidate: Floats, alpha: float, groups: Labels | None = None) -> Interval:
    """One interval of paired scores, higher is better: Tango for zeros and ones, else Student's t; CR2 for groups.

    Groups of one example each are no groups. Raises `AssertionError` for unequal lengths or NaN: pairing checked both.
    """
    assert baseline.shape == candidate.shape
    assert not np.isnan(baseline).any()
    assert not np.isnan(candidate).any()
    difference, binary = candidate - baseline, is_binary(baseline, candidate)
    if groups is not None and len(np.unique(groups)) < len(groups):
        return (clustered_binary if binary else clustered_mean)(difference, groups, alpha)
    if binary:
        return paired_binary(int((difference > 0).sum()), int((difference < 0).sum()), len(difference), alpha)
    return paired_mean(difference, alpha)
