"""P221: is the comparable run comparable."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive
from ridgeline.plan.prelaunch.comparable import Comparison
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P221", "The comparable run is comparable", threshold=1, unit="%",
      why="MFU points of correction: below one point the run may be quoted as it is")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Dimension by dimension, what the run given with --against shares with this design; and what its MFU promises here:
    corrected for what the tiles pad, and moved by the ratio of both in the step model.

    ## Why it matters
    A run of the same size on the same chips can have other heads and another vocabulary. The points that its shape did
    not lose are not there to be found later.

    ## How to confirm
    `ridgeline why CASE comparable.corrected` shows each dimension's share and padding.

    ## What to do, cheapest first
    1. Expect the corrected number.
    2. Change the dimensions that cost most, where the model is still open.

    ## Sources
    Worked numbers of the MFU incident: 2.7 and 0.3 points, 47% instead of 50%.
    """
    found = facts.comparison
    if found is None:
        return
    moved = derive(
        "comparable.moved", "abs(measured - promised)", "%", measured=found.measured, promised=found.expectation
    )
    moved = moved.titled("Correction of the comparable's MFU")
    holds = this.holds(moved) and all(row.alike for row in found.rows if row.what in ("chip", "data type"))
    names = ", ".join(row.what for row in found.differing) or "nothing"
    upper = "" if found.proportional is None else f", at most {{{found.proportional.name}}}"
    dear = [row for row in found.rows if row.points is not None and not row.alike]
    parts = " and ".join(f"{{{row.points.name}|2}} for {row.what.split()[0]}" for row in dear if row.points is not None)
    taken = f" ({parts})" if parts else ""
    ends = (found.measured, found.expectation, found.proportional, found.modelled)
    cost = _cost(facts, found, moved) if float(found.measured.value) > float(found.expectation.value) else Cost()
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"The run reached {{{found.measured.name}}} and promises {{{found.expectation.name}}} here{upper}{taken}; "
        f"by the step model {{{found.modelled.name}}}. It differs in {names}.",
        "" if holds else "Expect the corrected number, and say so beside the claim.",
        value=moved, cost=Cost() if holds else cost,
        cites=tuple(q for q in (*ends, *(row.points for row in dear)) if q is not None),
    )  # fmt: skip


def _cost(facts: ReviewFacts, found: Comparison, moved: Quantity) -> Cost:
    """What a schedule lacks that was made with the run's own number."""
    inputs = {"ideal": facts.ideal, "promised": found.expectation, "measured": found.measured}
    seconds = derive("comparable.lacking", "ideal/promised - ideal/measured", "s", **inputs)
    return facts.worth(seconds.titled("Step time that the run's own number leaves out"), moved)
