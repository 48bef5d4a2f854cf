"""F108: is the run-to-run noise measured."""

import math
from collections.abc import Iterable

import numpy as np

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts
from ridgeline.forecast.points import Points

_FREEDOM = 3  # replicates beyond the first, for a noise that is known within a factor of two
_SAME = ("N", "D", "U", "lr", "batch")
_MISFIT = 3.0  # times the noise


@rule("F108", "The noise is measured")
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Runs with the same N, D, recipe and hyper-parameters: the spread of their losses (the pooled standard deviation of
    the logarithm, in percent), and how it compares with the residuals of the fit.

    ## Why it matters
    Without replicates the residuals serve as noise, and these hold the misfit of the law too. Where the noise is
    known, a misfit shows: residuals three times as large as the noise are the law's, and no interval that treats
    them as chance will cover.

    ## How to confirm
    Train the smallest size three times with other seeds (data order too).

    ## What to do, cheapest first
    1. Repeat the cheapest run twice.
    2. Repeat one run in the middle: noise changes with size.
    3. Read several evaluations at the end of each run and use their spread.

    ## Sources
    Pooled within-cell variance, as in the lack-of-fit test of Draper and Smith, Applied Regression Analysis, chapter 1.
    """
    noise, freedom = _noise(facts.points)
    if freedom < 1:
        yield this.found(
            Verdict.UNKNOWN, "No run is repeated: the noise is assumed to be what the residuals show.",
            "Repeat the cheapest run with two other seeds.",
        )  # fmt: skip
        return
    value = facts.measured("ladder.noise", 100 * noise, "%", "Run-to-run noise of the loss", f"{freedom} replicates")
    fix = "Repeat one more of the cheap runs." if freedom < _FREEDOM else ""
    sentence = f"{freedom} replicates put the run-to-run noise at {{ladder.noise}} of the loss"
    scatter = facts.fit.scatter if facts.fit is not None else math.nan
    if noise > 0 and math.isfinite(scatter) and scatter > _MISFIT * noise:
        misfit = facts.measured("fit.scatter", 100 * scatter, "%", "Residuals of the fit")
        yield this.found(
            Verdict.WARN, f"{sentence}, and the residuals are {{fit.scatter}}: the law does not fit to the noise.",
            "Use a law with one more term, or an interval that was calibrated on the ladder.", value=value,
            cites=(misfit,),
        )  # fmt: skip
        return
    yield this.found(Verdict.PASS if freedom >= _FREEDOM else Verdict.WARN, f"{sentence}.", fix, value=value)


def _noise(points: Points) -> tuple[float, int]:
    """The pooled standard deviation of ln L among replicates, and its degrees of freedom."""
    columns = [points[name] for name in _SAME if name in points]
    labels = points.label("recipe", "schedule")
    cells: dict[tuple[object, ...], list[float]] = {}
    for i, loss in enumerate(points["loss"]):
        cells.setdefault((str(labels[i]), *(float(c[i]) for c in columns)), []).append(math.log(loss))
    repeated = [np.array(losses) for losses in cells.values() if len(losses) > 1]
    freedom = sum(len(losses) - 1 for losses in repeated)
    if not freedom:
        return math.nan, 0
    return math.sqrt(sum(float(((x - x.mean()) ** 2).sum()) for x in repeated) / freedom), freedom
