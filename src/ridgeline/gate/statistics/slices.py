"""Slices of one comparison: an interval each in one pass, which regressed, and the least frequent ones together.

Shipping needs every slice above its own margin, each at level alpha: that is an intersection-union test and needs no
correction. A list of slices *that regressed* claims several things at once and takes Holm's correction.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ridgeline.gate.statistics.clusters import Labels
from ridgeline.gate.statistics.compare import compare, is_binary
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.paired import regression_p, tango_ends

Floats = NDArray[np.float64]
DECILE = 0.1
LOWEST = "lowest-volume decile"


def by_slice(
    baseline: Floats, candidate: Floats, labels: Labels, alpha: float, groups: Labels | None = None
) -> dict[str, Interval]:
    """The default interval of every slice, by its name; a slice of one pair is no evidence."""
    names, codes = coded(labels)
    if groups is None and is_binary(baseline, candidate):
        return _binary(candidate - baseline, names, codes, alpha)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))[:-1]
    rows = np.split(order, ends)
    return {
        name: compare(baseline[at], candidate[at], alpha, None if groups is None else groups[at])
        for name, at in zip(names, rows, strict=True)
    }


def coded(labels: Labels) -> tuple[list[str], NDArray[np.intp]]:
    """The names of the slices in order, and the place among them of every row's."""
    names = sorted(dict.fromkeys(labels.tolist()), key=str)  # far faster than sorting a million texts
    place = {name: index for index, name in enumerate(names)}
    codes = np.fromiter((place[label] for label in labels.tolist()), dtype=np.intp, count=len(labels))
    return [str(name) for name in names], codes


def _binary(difference: Floats, names: Sequence[str], codes: NDArray[np.intp], alpha: float) -> dict[str, Interval]:
    n = np.bincount(codes)
    gained, lost = (np.bincount(codes, weights=part) for part in (difference > 0, difference < 0))
    low, high = tango_ends(gained, lost, n, alpha)
    found = {}
    for index, name in enumerate(names):
        why = "fewer than two pairs" if n[index] < 2 else ""
        middle = float((gained[index] - lost[index]) / n[index])
        ends = float(low[index]), float(high[index])
        found[name] = Interval(middle, *ends, int(n[index]), alpha, "Tango score", degenerate=why)
    return found


def sizes(labels: Labels) -> dict[str, int]:
    """How many examples every slice has."""
    names, codes = coded(labels)
    return dict(zip(names, map(int, np.bincount(codes, minlength=len(names))), strict=True))


def lowest_volume(examples: Mapping[str, int]) -> frozenset[str]:
    """The least frequent slices that are a tenth of all slices, rounded up; ``examples`` counts those of each."""
    order = sorted((count, name) for name, count in examples.items())
    return frozenset(name for _, name in order[: int(np.ceil(DECILE * len(order)))])


def lowest_traffic(examples: Mapping[str, int]) -> frozenset[str]:
    """The least frequent slices that together hold at most a tenth of all examples, and at least one slice."""
    order = sorted((count, name) for name, count in examples.items())
    within = np.cumsum([count for count, _ in order]) <= DECILE * sum(examples.values())
    return frozenset(name for _, name in order[: max(1, int(within.sum()))])


def regressed(baseline: Floats, candidate: Floats, labels: Labels, alpha: float) -> dict[str, float]:
    """Slices that lost, by Holm's corrected one-sided p-value, those at or below ``alpha`` only."""
    from statsmodels.stats.multitest import multipletests

    names, codes = coded(labels)
    p = _p_values(candidate - baseline, codes, len(names), binary=is_binary(baseline, candidate))
    rejected, corrected, *_ = multipletests(p, alpha=alpha, method="holm")
    found = zip(names, corrected, rejected, strict=True)
    return {name: float(value) for name, value, is_lost in found if is_lost}


def _p_values(difference: Floats, codes: NDArray[np.intp], count: int, *, binary: bool) -> Floats:
    n = np.bincount(codes, minlength=count).astype(np.float64)
    if binary:
        gained, lost = (np.bincount(codes, weights=part) for part in (difference > 0, difference < 0))
        return regression_p(gained, lost, n)
    from scipy.special import stdtr

    mean = np.bincount(codes, weights=difference) / n
    square = np.bincount(codes, weights=(difference - mean[codes]) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = mean / np.sqrt(square / (n - 1) / n)
    found: Floats = np.where(np.isfinite(score), stdtr(np.maximum(n - 1, 1), score), 1.0)
    return found


def shrunk(intervals: Sequence[Interval]) -> list[float]:
    """Estimates drawn towards their mean by what their own noise explains (DerSimonian and Laird 1986).

    Shown beside the raw ones, never decided on: shrinkage pulls the tail to the mean, and the tail is the question.
    """
    values = np.array([item.estimate for item in intervals])
    noise = np.array([max(item.error, 1e-12) ** 2 for item in intervals])
    weight = np.where(np.isfinite(noise), 1 / noise, 0.0)
    mean = float((weight * values).sum() / weight.sum()) if weight.sum() else 0.0
    excess = float((weight * (values - mean) ** 2).sum()) - (len(values) - 1)
    scale = float(weight.sum() - (weight**2).sum() / weight.sum()) if weight.sum() else 0.0
    between = max(0.0, excess / scale) if scale > 0 else 0.0
    share = between / (between + noise)
    return [float(item) for item in mean + share * (values - mean)]
