"""Where the loss of one compute budget is lowest: a parabola in log N, or the minimum of an Akima curve.

A budget whose runs do not show a minimum is refused with the reason: no number is better than a made-up one.
Sources: the parabola is approach 2 of Hoffmann et al. 2022 (arXiv 2203.15556), section 3.2; Akima interpolation in
log N is what Porian et al. 2024 (arXiv 2406.19146) use.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ridgeline.forecast.points import Array

Method = Literal["parabola", "akima"]
_GRID = 4001  # of an Akima curve; a cell is far below the distance of two sizes
_AKIMA_SIZES, _CUBIC_SIZES = 4, 5


@dataclass(frozen=True)
class Minimum:
    """The minimum along one axis. ``x`` is natural log of N or D; NaN where ``refused`` says why.

    ``curvature`` is d2L/dx2 (nats), ``offset`` where the minimum lies in the window, from -1 (smallest) to 1,
    ``shift`` how far a cubic moves it (in x; NaN with fewer than five sizes), ``residuals`` are relative to ``loss``.
    """

    x: float
    loss: float
    low: float
    high: float
    refused: str = ""
    curvature: float = math.nan
    offset: float = math.nan
    shift: float = math.nan
    coefficients: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    residuals: tuple[float, ...] = ()


def minimum(x: Array, loss: Array, method: Method = "parabola", axis: str = "N") -> Minimum:
    """The minimum of losses (n,) over ``x`` (n,), the natural log of N or D."""
    low, high = float(x.min()), float(x.max())
    sizes = len(np.unique(np.round(x, 9)))
    least = _AKIMA_SIZES if method == "akima" else 3
    if sizes < least:
        why = f"{sizes} different {axis}, where {'an Akima curve' if method == 'akima' else 'a parabola'} needs {least}"
        return Minimum(math.nan, math.nan, low, high, why)
    return _akima(x, loss, axis) if method == "akima" else _parabola(x, loss, axis)


def _parabola(x: Array, loss: Array, axis: str) -> Minimum:
    low, high = float(x.min()), float(x.max())
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    u = (x - centre) / half  # in [-1, 1]: the three columns are well conditioned
    design = np.stack([np.ones_like(u), u, u * u], axis=1)
    c0, c1, c2 = (float(c) for c in np.linalg.lstsq(design, loss, rcond=None)[0])
    flat = 1e-10 * float(np.abs(loss).max())
    if c2 <= flat:
        shape = "opens downward" if c2 < -flat else "has no curvature"
        return Minimum(math.nan, math.nan, low, high, f"the parabola in log {axis} {shape}", 2 * c2 / half**2)
    at = -c1 / (2 * c2)
    if not -1 <= at <= 1:
        return Minimum(math.nan, math.nan, low, high, _outside(math.exp(centre + half * at), low, high, axis),
                       2 * c2 / half**2, at)  # fmt: skip
    bottom = c0 - c1 * c1 / (4 * c2)
    residuals = tuple(((loss - design @ np.array([c0, c1, c2])) / bottom).tolist())
    return Minimum(centre + half * at, bottom, low, high, "", 2 * c2 / half**2, at, half * _cubic(u, loss, at),
                   (c0, c1, c2), residuals)  # fmt: skip


def _outside(value: float, low: float, high: float, axis: str) -> str:
    side = "below the smallest" if value < math.exp(low) else "above the largest"
    edge = math.exp(low) if value < math.exp(low) else math.exp(high)
    return f"the minimum is {side} {axis} of {edge:.3g}"


def _cubic(u: Array, loss: Array, at: float) -> float:
    """How far the minimum moves with a cubic term, in half widths; NaN where that has none inside the window."""
    if len(np.unique(np.round(u, 9))) < _CUBIC_SIZES:
        return math.nan
    _, c1, c2, c3 = (float(c) for c in np.polynomial.polynomial.polyfit(u, loss, 3))
    inner = c2 * c2 - 3 * c1 * c3
    if inner <= 0 or c2 + math.sqrt(inner) <= 0:
        return math.nan
    root = -c1 / (c2 + math.sqrt(inner))  # of the two where the slope is zero, the minimum; stable as c3 vanishes
    return root - at if abs(root) <= 1 else math.nan


def _akima(x: Array, loss: Array, axis: str) -> Minimum:
    from scipy.interpolate import Akima1DInterpolator

    places, which = np.unique(np.round(x, 9), return_inverse=True)
    means = np.bincount(which, loss) / np.bincount(which)
    curve = Akima1DInterpolator(places, means)
    grid = np.linspace(places[0], places[-1], _GRID)
    values = curve(grid)
    best = int(np.argmin(values))
    low, high = float(places[0]), float(places[-1])
    if best in (0, _GRID - 1):
        side = "smallest" if best == 0 else "largest"
        return Minimum(math.nan, math.nan, low, high, f"the minimum is at the {side} {axis}")
    at = float(grid[best])
    return Minimum(at, float(values[best]), low, high, "", float(curve(at, 2)), (2 * at - low - high) / (high - low))


def resampled(found: Minimum, x: Array, noise: Array) -> Array:
    """The places of the minimum of parabolas through the fitted losses plus ``noise`` (count, n), relative to the loss.

    NaN where a resample has no minimum inside the window.
    """
    centre, half = 0.5 * (found.low + found.high), 0.5 * (found.high - found.low)
    u = (x - centre) / half
    design = np.stack([np.ones_like(u), u, u * u], axis=1)
    moved = np.array(found.coefficients) + found.loss * (noise @ np.linalg.pinv(design).T)
    with np.errstate(all="ignore"):
        at = -moved[:, 1] / (2 * moved[:, 2])
        inside = (moved[:, 2] > 0) & (np.abs(at) <= 1)
    return np.where(inside, centre + half * at, np.nan)
