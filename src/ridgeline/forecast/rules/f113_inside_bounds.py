"""F113: is the fit an interior minimum."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts


@rule("F113", "The fit is a minimum inside its bounds")
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Whether the best of the basins that were found is a minimum, and whether a constant of it sits on a bound.

    ## Why it matters
    Bounds are where a constant stops meaning anything. A fit that ends on one says that the ladder prefers another
    form, and standard errors beside it do not exist. A search that stopped early gives constants that a second search
    contradicts.

    ## How to confirm
    Fit again without the term that is on its bound and compare the objectives: they are nearly the same.

    ## What to do, cheapest first
    1. Drop the term: use the form without it.
    2. Read the forecast from the average over laws.
    3. Add runs that the term would explain.

    ## Sources
    The bounds of each form are listed in its file; `ridgeline forecast` prints what sits on one.
    """
    if facts.fit is None:
        yield this.found(Verdict.UNKNOWN, "No law was fitted.", "Fit a law.")
        return
    found = facts.fit
    if not found.converged:
        yield this.found(
            Verdict.FAIL, f"The search for the constants of {found.form.title} did not end in a minimum.",
            "Use a form with fewer constants.",
        )  # fmt: skip
        return
    others = f", the best of {len(found.basins)} basins" if len(found.basins) > 1 else ""
    if not found.at_bound:
        yield this.found(Verdict.PASS, f"The fit of {found.form.title} is an interior minimum{others}.", "")
        return
    named = ", ".join(found.at_bound)
    yield this.found(
        Verdict.WARN, f"In the fit of {found.form.title}{others}, {named} sits on its bound.",
        "Use a form without that term, or add runs that identify it.",
    )  # fmt: skip
