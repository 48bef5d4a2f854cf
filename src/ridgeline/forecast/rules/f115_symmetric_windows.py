"""F115: are the minima of the budgets free of the bias of their windows."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts


@rule("F115", "Minima are centred in their windows")
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Where the minimum lies in the sizes that were sampled at each budget, whether that drifts with compute, and how
    much a cubic term would move the exponent a.

    ## Why it matters
    The loss at a budget is not symmetric in log N. A parabola through a window that is off centre misses the minimum;
    by the same factor at every budget that moves only the coefficient, and by a factor that drifts it tilts the
    exponent. No interval from resampling sees it.

    ## How to confirm
    Refit with the sizes within a factor of three of each minimum, and compare a.

    ## What to do, cheapest first
    1. Leave out the sizes that are far from the minimum.
    2. Fit the parametric law to all runs: it has the asymmetry built in.
    3. Add sizes on the short side.

    ## Sources
    Hoffmann et al. 2022 (arXiv 2203.15556), section 3.2; the asymmetry follows from two terms with unlike exponents.
    """
    found = facts.isoflop
    if found is None or found.n is None:
        yield this.found(
            Verdict.UNKNOWN, "Fewer than two budgets show a minimum, so their windows cannot be judged.",
            "Train three or more sizes at each of two or more budgets.",
        )  # fmt: skip
        return
    if not found.biases:
        yield this.found(Verdict.PASS, f"The minima of {len(found.used)} budgets lie well inside their windows.", "")
        return
    said = "; ".join(found.biases)
    yield this.found(
        Verdict.WARN, f"The exponents may be biased by the windows: {said}.",
        "Leave out sizes far from the minimum, or trust the parametric fit.",
    )  # fmt: skip
