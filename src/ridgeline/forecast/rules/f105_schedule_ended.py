"""F105: was every loss read when its learning-rate schedule had ended."""

import re
from collections.abc import Iterable

import numpy as np

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts

_CONSTANT = re.compile(r"const|wsd|warmup.?stable|schedule.?free", re.IGNORECASE)


@rule("F105", "Losses are read when the schedule has ended", threshold=98, unit="%", at_least=True,
      why="the last two percent of a decay no longer move the loss")  # fmt: skip
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    D against the tokens for which the learning-rate schedule was set (columns `horizon`, or `step` and `total_steps`).
    Without them: whether the ladder holds several D of one run, of which all but the last are read under way. Runs
    whose schedule label says that the rate is constant are left out.

    ## Why it matters
    A loss read half way down a cosine is higher than that of a run that was planned to end there. The penalty differs
    by run, so it does not vanish in E: it tilts the exponent, which is how the optimum of 2020 came to differ from
    that of 2022.

    ## How to confirm
    Rerun the smallest size with a schedule that ends at the D of the ladder, and compare the losses.

    ## What to do, cheapest first
    1. Keep only the last checkpoint of each run.
    2. Anneal from the checkpoints (a short decay each) and read the loss after it.
    3. Fit the loss curve with a law that knows the schedule.

    ## Sources
    Hoffmann et al. 2022 (arXiv 2203.15556), appendix B; Porian et al. 2024 (arXiv 2406.19146), section 3.3.
    """
    points = facts.points
    decays = np.array([not _CONSTANT.search(str(text)) for text in points.label("schedule")], bool)
    if "horizon" in points and np.isfinite(points["horizon"]).any():
        reached = points["D"] / points["horizon"]
        early = decays & (reached < float(this.threshold.value) / 100) if this.threshold else decays
        lowest = float(np.nanmin(np.where(decays, reached, np.nan))) if decays.any() else 1.0
        value = facts.measured("ladder.schedule", 100 * lowest, "%", "Least of a schedule that was run")
        if this.holds(value):
            yield this.found(Verdict.PASS, "Every run ended its schedule ({ladder.schedule} or more).", "", value=value)
            return
        where = points.place(int(np.flatnonzero(early)[0]))
        yield this.found(
            Verdict.FAIL,
            f"{int(early.sum())} of {len(points)} losses were read before their schedule had ended, at "
            f"{{ladder.schedule}} of it at the earliest (first in {where}).",
            "Keep the last checkpoint of each run, or anneal before reading the loss.", value=value,
        )  # fmt: skip
        return
    under_way = sum(len(rows) - 1 for rows in facts.series if decays[rows].all())
    if under_way:
        yield this.found(
            Verdict.WARN,
            f"{under_way} of {len(points)} losses were read in runs that went on, and no column says that their "
            "schedule had ended.",
            "Give a column horizon (tokens), or keep the last checkpoint of each run.",
        )  # fmt: skip
        return
    if "schedule" in points.labels and not decays.any():
        yield this.found(Verdict.PASS, "The learning rate was constant in every run: no schedule was cut short.", "")
        return
    yield this.found(
        Verdict.UNKNOWN, "Nothing says for how many tokens the schedules were set.",
        "Give a column horizon (tokens), or step and total_steps.",
    )  # fmt: skip
