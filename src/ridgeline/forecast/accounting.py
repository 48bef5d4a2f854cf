"""Does C follow from N and D: the ratio of the stated compute to 6ND, or to the exact FLOPs of the shapes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgeline.forecast.points import Array, Points


@dataclass(frozen=True)
class Accounting:
    """``ratio`` (n,) is C over what ``against`` names; ``slope`` its power of C: 0 where the ratio is constant."""

    against: str
    ratio: Array
    slope: float

    @property
    def low(self) -> float:
        """The lowest ratio."""
        return float(self.ratio.min())

    @property
    def high(self) -> float:
        """The highest ratio."""
        return float(self.ratio.max())

    @property
    def median(self) -> float:
        """The median ratio."""
        return float(np.median(self.ratio))

    @property
    def spread(self) -> float:
        """Highest over lowest ratio, less one: 0 where C is a fixed multiple."""
        return self.high / self.low - 1


def against_6nd(points: Points, count: str = "N") -> Accounting | None:
    """C over 6 N D; ``count`` names another column of N. None where a column is absent."""
    if not all(name in points.columns for name in (count, "D", "C")):
        return None
    return _accounting("6ND", points, 6 * points[count] * points["D"])


def against_exact(points: Points) -> Accounting | None:
    """C over the exact FLOPs; None where the ladder gives no shapes."""
    if not {"C", "C_exact"} <= set(points.columns):
        return None
    return _accounting("the exact FLOPs", points, points["C_exact"])


def _accounting(against: str, points: Points, expected: Array) -> Accounting:
    ratio = points["C"] / expected
    x = np.log(points["C"])
    x = x - x.mean()
    scale = float(x @ x)
    return Accounting(against, ratio, float(x @ np.log(ratio)) / scale if scale > 0 else 0.0)


@dataclass(frozen=True)
class Place:
    """Where a budget has its minimum: its runs, and ln N there."""

    runs: NDArray[np.int64]
    x: float


def cause(total: float, points: Points, places: Sequence[Place], tolerance: float) -> str:
    """The likely reason why the exponents a + b add up to ``total`` and not to one; empty where they do.

    At the minimum of a budget N* D* = C/(6 rho), rho = C/(6ND): so a + b = 1 - d ln rho / d ln C along the minima.
    """
    if abs(total - 1) <= tolerance:
        return ""
    plain = _along(points, "N", places)
    if plain is None:
        return "C, N and D are not all given, so the accounting cannot be checked"
    compute, ratio, slope = plain
    if abs(total - (1 - slope)) > 0.5 * abs(total - 1):
        return "not the accounting, as C/(6ND) does not explain it: the curves in log N and in log D disagree"
    for name in ("N_total", "N_non_embedding", "N_active"):
        other = _along(points, name, places)
        if other is not None and abs(other[2]) < 0.25 * abs(slope):
            return f"C counts {name.removeprefix('N_').replace('_', '-')} parameters, and N others"
    first, last = float(ratio[0]), float(ratio[-1])
    if first < last <= 1.1:
        why = "embeddings counted in N and not in C"
    elif first > max(1, last):
        why = "embeddings, the output layer or attention counted in C and not in N"
    else:
        why = "C counts something that N does not"
    ends = f"from {first:.2f} at {compute[0]:.2g} to {last:.2f} at {compute[-1]:.2g} FLOP"
    return f"C is not 6ND: at the minima C/(6ND) goes {ends} ({why})"


def _along(points: Points, count: str, places: Sequence[Place]) -> tuple[Array, Array, float] | None:
    """C of each budget in ascending order, C/(6ND) at its minimum, and the slope of one on the other in logarithms."""
    found = against_6nd(points, count)
    if found is None:
        return None
    rows = []
    for place in places:
        x = np.log(points["N"][place.runs])
        order = np.argsort(x)
        at = np.interp(place.x, x[order], np.log(found.ratio[place.runs])[order])
        rows.append((float(np.log(points["C"][place.runs]).mean()), float(at)))
    compute, ratio = np.array(sorted(rows)).T
    centred = compute - compute.mean()
    return np.exp(compute), np.exp(ratio), float(centred @ ratio / (centred @ centred))
