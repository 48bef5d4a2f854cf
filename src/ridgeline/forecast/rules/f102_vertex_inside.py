"""F102: does every compute budget show its minimum."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts

_NAMED = 3  # budgets that a sentence can hold


@rule("F102", "Every budget shows its minimum", threshold=20, unit="%",
      why="one budget in five may be lost before the exponents rest on too few")  # fmt: skip
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of the compute budgets with three or more sizes whose minimum was refused: a parabola that opens
    downward or is flat, or a minimum outside the sampled sizes.

    ## Why it matters
    A minimum outside the window is an extrapolation of a parabola, which the loss is not. Left in, it bends the
    exponents; left out, the exponents rest on fewer budgets.

    ## How to confirm
    Look at the curves of the refused budgets: the lowest loss sits at an edge, or the noise is as large as the dip.

    ## What to do, cheapest first
    1. Add one size beyond the edge at which the minimum lies.
    2. Average replicates where the curve is flat.
    3. Leave the budget out, and say so.

    ## Sources
    Hoffmann et al. 2022 (arXiv 2203.15556), section 3.2.
    """
    sweeps = facts.isoflop.sweeps if facts.isoflop else ()
    swept = sum(len(budget.runs) for budget in sweeps)
    if 2 * swept < len(facts.points) or not sweeps:
        yield this.found(
            Verdict.UNKNOWN,
            f"{swept} of {len(facts.points)} runs belong to a budget with three or more sizes: this is no IsoFLOP "
            "ladder, and a minimum is not to be expected.",
            "Train three or more sizes at each budget, or fit the parametric law.",
        )  # fmt: skip
        return
    refused = [budget for budget in sweeps if budget.refused]
    share = facts.measured("isoflop.refused", 100 * len(refused) / len(sweeps), "%", "Budgets without a minimum")
    if not refused:
        yield this.found(Verdict.PASS, f"All {len(sweeps)} budgets show their minimum.", "", value=share)
        return
    named = "; ".join(f"{budget.name}: {budget.refused}" for budget in refused[:_NAMED])
    more = f"; and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
    sentence = f"{len(refused)} of {len(sweeps)} budgets ({{isoflop.refused}}) show no minimum ({named}{more})."
    yield this.found(
        Verdict.WARN if this.holds(share) else Verdict.FAIL, sentence,
        "Add a size beyond the edge where the minimum lies, or leave those budgets out.", value=share,
    )  # fmt: skip
