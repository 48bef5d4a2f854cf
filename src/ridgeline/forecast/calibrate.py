"""The hold-out on a user's own ladder: cut it, forecast the runs above the cut, count what the interval held.

The forecast below a cut knows nothing of what lies above it: its form is chosen, its interval calibrated and its
constants fitted there anew. So the coverage is one that this interval would have had on this ladder, not a nominal one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import RidgelineError
from ridgeline.forecast.forecast import Options, study
from ridgeline.forecast.points import Points
from ridgeline.forecast.rollout import compute

CUTS = (0.5, 1.0, 1.5, 2.0)  # decades below the largest run


@dataclass(frozen=True)
class Held:
    """One cut: ``cut`` decades below the largest run, ``kept`` runs below it, ``tested`` above.

    ``covered`` of the tested runs lie inside their intervals, whose mean full width is ``width`` (relative to the
    loss). ``median`` is the median absolute relative error, ``best`` the signed one at the lowest loss of the tested
    runs: positive where the forecast was too high. ``refused`` says why there is no forecast; then the rest is nan.
    """

    cut: float
    kept: int
    tested: int
    covered: int
    width: float
    median: float
    best: float
    form: str = ""
    refused: str = ""


def calibrate(points: Points, options: Options, cuts: Sequence[float] = CUTS) -> tuple[Held, ...]:
    """The hold-outs of a ladder, nearest the top first, without cuts that leave the runs of an earlier one."""
    decades = compute(points)
    found, seen = list[Held](), set[int]()
    for cut in cuts:
        kept = decades <= decades.max() - cut + 1e-9
        if int(kept.sum()) in seen or kept.all():
            continue
        seen.add(int(kept.sum()))
        found.append(_held(points, options, cut, kept))
    return tuple(found)


def _held(points: Points, options: Options, cut: float, kept: NDArray[np.bool_]) -> Held:
    below, above = points.take(kept), points.take(~kept)
    nothing = (0, np.nan, np.nan, np.nan)
    if not kept.any():
        return Held(cut, 0, len(above), *nothing, refused="no run lies below the cut")
    try:
        made = study(below, options)
        columns = {name: above[name] for name in made.fit.form.inputs}
        low, high = made.interval(columns, compute(above) - made.top)
    except RidgelineError as error:
        return Held(cut, len(below), len(above), *nothing, refused=error.message)
    predicted, observed = made.predict(columns), above["loss"]
    inside = (low <= observed) & (observed <= high)
    off = predicted / observed - 1
    return Held(
        cut=cut, kept=len(below), tested=len(above), covered=int(inside.sum()),
        width=float(np.mean((high - low) / predicted)), median=float(np.median(np.abs(off))),
        best=float(off[int(np.argmin(observed))]), form=made.fit.form.title,
    )  # fmt: skip


def pooled(found: Sequence[Held]) -> tuple[int, int]:
    """Runs inside their intervals and runs tested, over all cuts that gave a forecast."""
    usable = [one for one in found if not one.refused]
    return sum(one.covered for one in usable), sum(one.tested for one in usable)
