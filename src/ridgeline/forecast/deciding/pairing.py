"""Two ladders on one design: runs paired by (N, D), or both cut to the compute range that they share.

Laws fitted over different ranges differ by their ranges: a form that is a little wrong is wrong differently at each
end. What is compared is therefore fitted to the same (N, D) where the ladders have them, and one resample of the
pairs serves both recipes, so that whatever a pair has in common cancels in the difference.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError, NotEnoughDataError
from ridgeline.forecast.points import Points

SAME = 0.02  # relative difference of N and of D up to which two runs are one design point
ENOUGH = 0.5  # share of the shorter ladder that must pair; below it both are cut to the shared range instead


@dataclass(frozen=True)
class Shared:
    """The two ladders as they are fitted. ``kind`` ``paired``: run i of one is run i of the other at the same (N, D).

    ``kind`` ``range``: all runs between ``low`` and ``high`` (FLOP). ``left_out`` counts the runs of the baseline and
    of the candidate that are not used, and ``said`` says so in one sentence.
    """

    kind: Literal["paired", "range"]
    baseline: Points
    candidate: Points
    low: float
    high: float
    left_out: tuple[int, int]
    said: str


def share(baseline: Points, candidate: Points, needs: int) -> Shared:
    """The shared design of two ladders; ``needs`` is the number of distinct (N, D) that a fit takes.

    Raises `InputError` where the two count N differently, `NotEnoughDataError` where too few runs are shared.
    """
    counts = {baseline.params, candidate.params} - {"unstated"}
    if len(counts) > 1:
        raise InputError.expected(
            f"N counted as in {baseline.path} ({baseline.params})", candidate.params, where=candidate.path,
            hint="state the same --params for both, or convert one",
        )  # fmt: skip
    left, right = pairs(baseline, candidate)
    distinct = len(np.unique(_key(baseline.take(left)), axis=0)) if len(left) else 0
    if distinct >= needs and len(left) >= ENOUGH * min(len(baseline), len(candidate)):
        return _shared("paired", baseline, candidate, (left, right))
    low = max(float(p["C"].min()) for p in (baseline, candidate))
    high = min(float(p["C"].max()) for p in (baseline, candidate))
    slack = 1 + SAME
    kept = tuple(np.flatnonzero((p["C"] >= low / slack) & (p["C"] <= high * slack)) for p in (baseline, candidate))
    fewest = min(len(np.unique(_key(p.take(k)), axis=0)) for p, k in zip((baseline, candidate), kept, strict=True))
    if fewest < needs:
        raise NotEnoughDataError(
            f"Expected {needs} different (N, D) of each recipe in a shared range, got {fewest} "
            f"and {distinct} pairs, at {baseline.path} and {candidate.path}",
            hint="train the candidate at sizes and token counts of the baseline's ladder",
        )
    return _shared("range", baseline, candidate, (kept[0], kept[1]))


def _shared(
    kind: Literal["paired", "range"], baseline: Points, candidate: Points,
    kept: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> Shared:  # fmt: skip
    one, two = baseline.take(kept[0]), candidate.take(kept[1])
    low = max(float(one["C"].min()), float(two["C"].min()))
    high = min(float(one["C"].max()), float(two["C"].max()))
    left_out = len(baseline) - len(one), len(candidate) - len(two)
    if kind == "paired":
        said = f"Both laws are fitted to the {len(one)} runs that the ladders share at the same (N, D)"
    else:
        said = f"The ladders share too few (N, D) to pair: both are cut to {low:.2e} to {high:.2e} FLOP".replace(
            "e+", "e"
        )
    if any(left_out):
        runs = "1 run" if left_out[0] == 1 else f"{left_out[0]} runs"
        said += f"; {runs} of the baseline and {left_out[1]} of the candidate are left out"
    return Shared(kind, one, two, low, high, left_out, f"{said}.")


def _key(points: Points) -> NDArray[np.int64]:
    """N and D of each run on a log grid of the tolerance, (n, 2)."""
    logs = np.log(np.stack([points["N"], points["D"]], axis=1)) / np.log1p(SAME)
    found: NDArray[np.int64] = np.round(logs).astype(np.int64)
    return found


def pairs(baseline: Points, candidate: Points) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of runs at the same (N, D), within the tolerance; each run is used once.

    Among several at one place the seeds that agree go together, then the order in the files decides.
    """
    there = defaultdict(list)
    for j, (n, d) in enumerate(_key(candidate).tolist()):
        there[n, d].append(j)
    logs = [np.log(np.stack([p["N"], p["D"]], axis=1)) for p in (baseline, candidate)]
    seeds = [p.label("seed") for p in (baseline, candidate)]
    left, right = [], []
    for i, (n, d) in enumerate(_key(baseline).tolist()):
        near = [j for a in (-1, 0, 1) for b in (-1, 0, 1) for j in there.get((n + a, d + b), ())]
        near = [j for j in near if np.abs(logs[0][i] - logs[1][j]).max() <= np.log1p(SAME)]
        if near:
            gaps = {j: (seeds[0][i] != seeds[1][j], np.abs(logs[0][i] - logs[1][j]).max().round(9), j) for j in near}
            best = min(near, key=gaps.__getitem__)
            left.append(i)
            right.append(best)
            place = tuple(_key(candidate.take(np.array([best])))[0].tolist())
            there[place].remove(best)
    return np.array(left, np.int64), np.array(right, np.int64)
