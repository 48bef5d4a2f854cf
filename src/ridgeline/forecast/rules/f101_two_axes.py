"""F101: do N and D vary apart from one another."""

from collections.abc import Iterable

import numpy as np

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts

_NONE = 0.1  # decades: what is left when every run has one D up to rounding


@rule("F101", "N and D vary apart", threshold=0.5, unit="1", at_least=True,
      why="half a decade moves each term by a third at the usual exponents, far above run-to-run noise")  # fmt: skip
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The extent of the runs, in decades, along the direction of (log N, log D) in which they vary least.

    ## Why it matters
    A law has one term in N and one in D. Where every size saw the same tokens, the data exponent is not identified;
    where tokens are a fixed multiple of parameters, or N times D is one budget, only a sum of the terms is. The fit
    still converges, to constants that the next design contradicts.

    ## How to confirm
    Plot D against N on logarithmic axes: the points must fill an area. The profile likelihood of the exponent is open
    on one side where it is not identified.

    ## What to do, cheapest first
    1. Add runs at the smallest N over two decades of D: they cost least.
    2. Add sizes at the smallest D.
    3. Fix the exponent that is not identified from a published law, and say so.

    ## Sources
    Hoffmann et al. 2022 (arXiv 2203.15556), section 3; Kaplan et al. 2020 (arXiv 2001.08361) for a ladder with one D.
    """
    points = facts.points
    if not {"N", "D"} <= set(points.columns):
        yield this.found(
            Verdict.UNKNOWN, "The ladder gives no N and D: whether they vary apart is not known.",
            "Give columns of N and D.",
        )  # fmt: skip
        return
    cloud = np.stack([np.log10(points["N"]), np.log10(points["D"])])
    cloud = cloud - cloud.mean(axis=1, keepdims=True)
    ways = np.linalg.svd(cloud, full_matrices=True)[0]
    extent = float(np.ptp(ways[:, 1] @ cloud))
    value = facts.measured("ladder.spread", extent, "1", "Extent of the runs where they vary least, decades")
    sentence = "Where they vary least, the runs extend over {ladder.spread|2} decades of (N, D)"
    if this.holds(value):
        yield this.found(Verdict.PASS, f"{sentence}.", "", value=value)
        return
    yield this.found(
        Verdict.FAIL if extent < _NONE else Verdict.WARN, f"{sentence}: {_which(cloud, ways[:, 1])}.",
        "Add cheap runs: two decades of D at the smallest N.", value=value,
    )  # fmt: skip


def _which(cloud: np.ndarray, narrow: np.ndarray) -> str:
    """What the narrow direction means for the fit."""
    if not np.ptp(cloud):
        return "they are one point"
    if abs(narrow[1]) > 0.95:
        return "D is nearly the same in all of them, so the data exponent is not identified"
    if abs(narrow[0]) > 0.95:
        return "N is nearly the same in all of them, so the capacity exponent is not identified"
    if narrow[0] * narrow[1] < 0:
        return "D grows with N, so the two terms cannot be told apart"
    return "N times D hardly varies, so the irreducible loss is not identified"
