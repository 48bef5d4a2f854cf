"""F114: are the residuals without structure in compute."""

import math
from collections.abc import Iterable

import numpy as np

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts
from ridgeline.forecast.points import Array

_LEAST = 12  # runs, for the normal approximation of the number of runs of one sign
_TOP = 4  # the quarter of the ladder next to the target


@rule("F114", "Residuals show no structure", threshold=3, unit="1",
      why="standard deviations; chance reaches it in one ladder of two hundred, for two tests")  # fmt: skip
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Residuals in the order of compute: the number of runs of one sign (Wald and Wolfowitz), and the mean of the quarter
    of runs with most compute, each in standard deviations of what chance gives.

    ## Why it matters
    Residuals that keep their sign over a stretch of compute are not noise: the form bends otherwise than the ladder.
    At the top of the ladder such a bend is what extrapolation multiplies.

    ## How to confirm
    Plot residuals against C. Fit the lower half and look at the upper one.

    ## What to do, cheapest first
    1. Fit the coupled form, and average over laws.
    2. Use the calibrated interval: it grows with the error that the ladder itself shows.
    3. Look for what changed along the ladder: batch size, warm-up, data order.

    ## Sources
    Wald and Wolfowitz 1940, On a test whether two samples are from the same population.
    """
    if facts.fit is None:
        yield this.found(Verdict.UNKNOWN, "No law was fitted, so there are no residuals.", "Fit a law.")
        return
    residuals = facts.fit.residuals[_order(facts)]
    if len(residuals) < _LEAST:
        yield this.found(
            Verdict.UNKNOWN, f"{len(residuals)} residuals are too few to see structure in.", "Add runs to the ladder."
        )
        return
    signs, top = _runs(residuals), _top(residuals)
    value = facts.measured("fit.structure", max(signs, top), "1", "Structure of the residuals, standard deviations")
    if this.holds(value):
        sentence = (
            "Residuals scatter around zero along the ladder ({fit.structure|2} standard deviations of structure)."
        )
        yield this.found(Verdict.PASS, sentence, "", value=value)
        return
    quarter = residuals[-(len(residuals) // _TOP) :]
    lean = facts.measured("fit.top_residual", 100 * float(quarter.mean()), "%", "Mean residual of the top quarter")
    what = "keep their sign along the ladder" if signs >= top else "lean to one side at its top"
    yield this.found(
        Verdict.WARN, f"Residuals {what}, by {{fit.structure|2}} standard deviations; in the quarter with most compute "
        "they are {fit.top_residual} on average.", "Fit the coupled form, and read the calibrated interval.",
        value=value, cites=(lean,),
    )  # fmt: skip


def _order(facts: Facts) -> np.ndarray:
    """The runs by compute; runs of one budget by size, so that a budget's curve stays together."""
    points = facts.points
    if "C" not in points:
        return np.arange(len(points))
    return np.lexsort((points["N"], np.round(np.log10(points["C"]), 1))) if "N" in points else np.argsort(points["C"])


def _runs(residuals: Array) -> float:
    """How many standard deviations fewer runs of one sign there are than chance gives; 0 where there are more."""
    positive = residuals > np.median(residuals)
    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        return 0.0
    expected = 1 + 2 * n * m / (n + m)
    variance = (expected - 1) * (expected - 2) / (n + m - 1)
    seen = 1 + int((positive[1:] != positive[:-1]).sum())
    return max(0.0, (expected - seen) / math.sqrt(variance)) if variance > 0 else 0.0


def _top(residuals: Array) -> float:
    """The mean of the last quarter in its standard errors."""
    count = len(residuals) // _TOP
    spread = float(residuals.std(ddof=1))
    return abs(float(residuals[-count:].mean())) * math.sqrt(count) / spread if spread else 0.0
