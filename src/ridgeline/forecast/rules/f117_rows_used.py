"""F117: is the ladder used whole."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts

_NAMED = 3


@rule(
    "F117",
    "The ladder is used whole",
    threshold=10,
    unit="%",
    why="one row in ten can be an accident, more is a choice",
)
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of rows that were dropped: marked as excluded, without a usable loss, malformed, or the same run twice.

    ## Why it matters
    Which runs are left out decides the exponents as much as the fit does. Diverged runs are often the largest, so
    leaving them out bends the top of the ladder.

    ## How to confirm
    Fit with and without them where they have a loss: `keep_excluded = true` in the file of `--spec`.

    ## What to do, cheapest first
    1. Read the list under *lost*, and see whether the rows have something in common.
    2. Repeat the diverged runs at a lower learning rate.
    3. Write the reason of each exclusion into the file.

    ## Sources
    Besiroglu et al. 2024 (arXiv 2404.10102), section 3, on five runs whose exclusion changes a published fit.
    """
    lost = facts.points.lost
    total = len(lost) + len(facts.points)
    value = facts.measured("ladder.lost", 100 * len(lost) / total, "%", "Rows that were dropped")
    if not lost:
        yield this.found(Verdict.PASS, f"All {total} rows are used.", "", value=value)
        return
    named = "; ".join(lost[:_NAMED]) + (f"; and {len(lost) - _NAMED} more" if len(lost) > _NAMED else "")
    few = this.holds(value)
    yield this.found(
        Verdict.PASS if few else Verdict.WARN, f"{len(lost)} of {total} rows ({{ladder.lost}}) were dropped ({named}).",
        "" if few else "See what the dropped rows have in common.", value=value,
    )  # fmt: skip
