"""P216: can the hardware do what is claimed."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P216", "The claimed MFU is below the matmul ceiling", threshold=90, unit="%",
      why="of the ceiling: no published run spends less than a tenth of its step beside large matmuls")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The claim against what large matmuls alone reach on this device, as measured, without attention, communication,
    memory-bound kernels or the optimizer. A claim above 100% is refused when it is read.

    ## Why it matters
    A claim above the ceiling is a wrong peak (sparse, or of another data type), FLOPs that are not done, or a number
    of another chip. No tuning reaches it.

    ## How to confirm
    Time one square matmul of 8,192 on one chip and divide by the dense peak of the data sheet.

    ## What to do, cheapest first
    1. Check peak and data type in the claim's denominator: a sparse peak doubles it.
    2. Check the FLOP convention.

    ## Sources
    Measured matmul tables, docs/design/surfaces.md.
    """
    claim = facts.claimed
    if claim is None:
        return
    share = derive("claim.of_ceiling", "claim/ceiling", "%", claim=claim, ceiling=facts.ceiling)
    share = share.titled("Claim over the matmul ceiling")
    over = float(share.value) > 100
    verdict = Verdict.FAIL if over else Verdict.PASS if this.holds(share) else Verdict.WARN
    how = "measured" if facts.ceiling.kind == "measured" else "assumed from other devices"
    where = "above" if over else f"{{{share.name}|2}} of"
    yield this.found(
        verdict,
        f"The claim of {{{claim.name}}} is {where} what large matmuls alone reach, {{{facts.ceiling.name}}} ({how}).",
        "" if verdict is Verdict.PASS else "Look at the claim's peak, data type and FLOP convention.",
        value=share, cites=(claim, facts.ceiling),
    )  # fmt: skip
