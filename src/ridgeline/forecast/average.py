"""Which form to forecast with, and how much to believe each: by rollouts, not by the fit within the ladder.

Within a ladder a form with one more constant always fits better. What counts is the error on runs that were left out.
A form other than the first is used only where it wins at every one of the nearest cuts, by a third or more; otherwise
the forecast is that of the first, plain Chinchilla.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgeline.forecast.form import Array, Form
from ridgeline.forecast.rollout import Rollout

NEAREST = 0.8  # decades: a cut further down leaves a ladder unlike the whole one
LEAST_CUTS = 2  # one cut won is luck
LEAST_RUNS = 5  # left out by a cut: the median of fewer is that of one or two
WIN = 2 / 3  # of the first form's median error: a third smaller; errors of two forms on the same runs differ by less
_TINY = 1e-12


@dataclass(frozen=True)
class Choice:
    """The form to use, ``index`` into the forms, and ``ratio`` (M,): its error over the first's, at its worst cut.

    ``ratio`` is nan without enough cuts.
    """

    index: int
    ratio: Array
    because: str


def choose(found: Sequence[Rollout], forms: Sequence[Form], able: NDArray[np.bool_] | None = None) -> Choice:
    """The form whose error is smallest at its worst cut, where it is a third below the first's at every cut.

    Only forms that are ``able`` (M,) are chosen: the others do not show a floor on the whole ladder.
    """
    near = _near(found)
    if len(near) < LEAST_CUTS or len(forms) == 1:
        few = f"{len(near)} cut is" if len(near) == 1 else f"{len(near)} cuts are"
        why = f"{few} too few to compare forms" if len(forms) > 1 else "one form was asked for"
        return Choice(0, np.full(len(forms), np.nan), f"{forms[0].title}: {why}.")
    ratio = np.array([one.typical / max(float(one.typical[0]), _TINY) for one in near])
    worst = ratio.max(axis=0)
    open_to = np.ones(len(forms), bool) if able is None else able
    winners = np.flatnonzero((worst[1:] <= WIN) & open_to[1:]) + 1
    if not len(winners):
        best = 1 + int(np.argmin(worst[1:]))
        said = (f"{forms[0].title}: no other form is a third better at each of {len(near)} cuts "
                f"({forms[best].title} comes to {worst[best]:.2f} of its error at the worst).")  # fmt: skip
        return Choice(0, worst, said)
    index = int(winners[np.argmin(worst[winners])])
    said = (f"{forms[index].title}: its median error on the runs cut off is {worst[index]:.2f} of that of "
            f"{forms[0].title} or less at each of {len(near)} cuts.")  # fmt: skip
    return Choice(index, worst, said)


def weights(found: Sequence[Rollout], forms: Sequence[Form]) -> Array:
    """The weight of each form (M,), summing to 1: the likelihood of its rollouts with the scale integrated out.

    Normal errors of unknown scale have the likelihood rms^-k after k independent errors; nested cuts count as one
    each, the runs of a cut not at all beyond it. Without rollouts the first form has all the weight.
    """
    near = _near(found)
    if not near:
        alone: Array = np.eye(len(forms))[0]
        return alone
    score = -np.sum([np.log(np.maximum(one.typical, _TINY)) for one in near], axis=0)
    raw = np.exp(score - score.max())
    result: Array = raw / raw.sum()
    return result


def _near(found: Sequence[Rollout]) -> list[Rollout]:
    """The cuts that compare forms: near the top, with runs enough above them."""
    return [one for one in found if one.cut <= NEAREST and len(one.tested) >= LEAST_RUNS]
