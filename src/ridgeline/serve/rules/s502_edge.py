"""S502: does the choice lie inside the grid."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.codesign.facts import Designed


@rule("S502", "The choice lies inside the grid")
def check(facts: Designed, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Whether width, batch or the number of experts of the best configuration is the largest or, for width, the smallest
    that was tried.

    ## Why it matters
    An optimum at the edge of a search is the search's, not the problem's: the next value outside may be better.

    ## How to confirm
    Widen that axis in ``--spec`` and run again.

    ## What to do, cheapest first
    1. Widen the axis.
    2. Keep the edge where something else sets it, such as a framework that knows no more experts, and say so.

    ## Sources
    Axes of the search: the keys of `ridgeline serve codesign --spec`.
    """
    if facts.winner is None:
        return
    edges = facts.edges
    if edges:
        text = f"The choice has {', '.join(edges)}: the end of what was tried."
        yield this.found(Verdict.WARN, text, "Widen that axis in --spec and run again.")
    else:
        yield this.found(Verdict.PASS, "Width, batch and experts of the choice lie inside the grid.", "")
