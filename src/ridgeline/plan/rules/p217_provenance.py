"""P217: where is the claim from."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.plan.prelaunch.claim import MEANING
from ridgeline.plan.prelaunch.review_facts import ReviewFacts

_FIX = {
    "folklore": "Name a run of these dimensions on this chip (--against), or run the pilot.",
    "roofline": "Take the expectation instead: a roofline leaves out what a step spends between matmuls.",
    "comparable": "Give the run as comparable.json with --against, so that its dimensions can be compared.",
    "unknown": "Ask who said it: folklore, roofline, comparable or pilot.",
}


@rule("P217", "The claim has a provenance")
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Whether the claimed MFU rests on a pilot, on a comparable run that was given, on a roofline, or on what people say.

    ## Why it matters
    "Expected 50%" without a run behind it cannot be wrong in a way that teaches anything. With a run, its dimensions
    can be compared and the number corrected before it becomes a target.

    ## How to confirm
    Ask for the model's dimensions, the chip, the plan and the FLOP convention of the run that showed the number.

    ## What to do, cheapest first
    1. Find the comparable run and give it with --against.
    2. Run the pilot of this review.

    ## Sources
    The worked numbers of the MFU incident: 50% of a run with other heads and another vocabulary was 47% here.
    """
    claim = facts.proposal.file.claim
    if claim is None:
        return
    given = facts.comparison is not None
    sound = claim.provenance == "pilot" or (claim.provenance == "comparable" and given)
    source = f" ({claim.source})" if claim.source else ""
    verdict = Verdict.PASS if sound else Verdict.UNKNOWN if claim.provenance == "unknown" else Verdict.WARN
    assert facts.claimed is not None
    yield this.found(
        verdict,
        f"The claim of {{{facts.claimed.name}}} is {claim.provenance}{source}: {MEANING[claim.provenance]}.",
        "" if sound else _FIX[claim.provenance], cites=(facts.claimed,),
    )  # fmt: skip
