"""F107: does one law hold for every recipe and schedule in the ladder."""

import math
from collections.abc import Iterable

import numpy as np

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts
from ridgeline.forecast.points import Array

_LARGE = 1.0  # percent of the loss


@rule("F107", "One law holds for every group", threshold=3.5, unit="1",
      why="standard errors; with a dozen groups chance alone exceeds this in one ladder of two hundred")  # fmt: skip
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The mean residual of each recipe and schedule, in its standard errors, and in percent of the loss.

    ## Why it matters
    Two recipes in one fit share constants that neither has. If the better recipe was used at larger budgets, the
    exponent takes the credit, and the forecast goes on improving at a rate that no recipe has.

    ## How to confirm
    Fit each group alone and compare the forecasts; plot residuals by group.

    ## What to do, cheapest first
    1. Forecast from the recipe of the flagship only: `--where recipe=NAME`.
    2. Compare the recipes: `ridgeline forecast compare`.
    3. Add runs of the flagship's recipe at two budgets.

    ## Sources
    One-way analysis of variance on log residuals; the scale is the pooled spread within groups.
    """
    names = [name for name in ("recipe", "schedule") if name in facts.points.labels]
    labels = facts.points.label(*names)
    groups = np.unique(labels)
    if not names:
        yield this.found(
            Verdict.UNKNOWN, "No column names a recipe or a schedule: whether the runs are of one kind is not known.",
            "Give a column recipe, and a column schedule.",
        )  # fmt: skip
        return
    if len(groups) < 2:
        yield this.found(Verdict.PASS, "All runs are of one recipe and schedule.", "")
        return
    if facts.fit is None:
        yield this.found(
            Verdict.UNKNOWN, f"The ladder has {len(groups)} groups, and no fit says whether one law holds for all.",
            "Fit a law, or one group at a time.",
        )  # fmt: skip
        return
    residuals = facts.fit.residuals
    worst, offset, errors = _worst(residuals, labels, groups)
    if not math.isfinite(errors):
        yield this.found(
            Verdict.UNKNOWN, f"The {len(groups)} groups have too few runs to compare their residuals.",
            "Add runs to each group.",
        )  # fmt: skip
        return
    value = facts.measured("fit.group_errors", errors, "1", "Largest mean residual of a group, standard errors")
    shift = facts.measured("fit.group_offset", 100 * offset, "%", f"Mean residual of {worst}")
    if this.holds(value):
        sentence = (
            f"No group of {len(groups)} is off the common law by more than {{fit.group_errors|2}} standard errors."
        )
        yield this.found(Verdict.PASS, sentence, "", value=value, cites=(shift,))
        return
    yield this.found(
        Verdict.FAIL if abs(100 * offset) >= _LARGE else Verdict.WARN,
        f"Group {worst} lies {{fit.group_offset}} off the common law, {{fit.group_errors|2}} standard errors.",
        "Forecast from the flagship's recipe and schedule alone.", value=value, cites=(shift,),
    )  # fmt: skip


def _worst(residuals: Array, labels: np.ndarray, groups: np.ndarray) -> tuple[str, float, float]:
    """The group that is furthest off: its name, its mean residual, and that in standard errors."""
    members = [residuals[labels == group] for group in groups]
    freedom = sum(len(rows) - 1 for rows in members)
    spread = math.sqrt(sum(float(((rows - rows.mean()) ** 2).sum()) for rows in members) / freedom) if freedom else 0.0
    if not spread:
        return "", math.nan, math.nan
    errors = [abs(float(rows.mean())) * math.sqrt(len(rows)) / spread for rows in members]
    worst = int(np.argmax(errors))
    return str(groups[worst]), float(members[worst].mean()), errors[worst]
