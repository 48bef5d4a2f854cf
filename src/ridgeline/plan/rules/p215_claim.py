"""P215: is the claim inside the expectation's interval."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P215", "The claimed MFU is inside the expectation")
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The MFU that the team counts on against the derived one: inside its 80% interval, inside the 95% one, or beyond.
    Both in the FLOP convention that the claim is stated in.

    ## Why it matters
    A schedule, a budget and later every investigation start from this number. Hunting for points that the design
    never had costs weeks; a claim below the interval hides losses.

    ## How to confirm
    `ridgeline why CASE expected.mfu` shows every term. The pilot measures the widest of them.

    ## What to do, cheapest first
    1. Plan with the expectation, and publish its interval beside it.
    2. Ask for the claim's convention: 6N and counted attention differ by points.
    3. Run the pilot.

    ## Sources
    Published runs of core/data/expected.toml; docs/how-to/review-a-run-before-launch.md.
    """
    claim, expected = facts.claimed, facts.expected
    ends = f"{{{expected.mfu.name}}} (80%: {{{expected.low.name}}} to {{{expected.high.name}}})"
    cites = (expected.mfu, expected.low, expected.high)
    if claim is None:
        yield this.found(
            Verdict.UNKNOWN,
            f"Nobody claims an MFU; the design's own is {ends}. MFU counts {facts.counted}.",
            "State the MFU that the schedule was made with, and where it is from.", value=expected.mfu, cites=cites,
        )  # fmt: skip
        return
    value = float(claim.value)
    inside = float(expected.low.value) <= value <= float(expected.high.value)
    nearly = float(expected.low95.value) <= value <= float(expected.high95.value)
    verdict = Verdict.PASS if inside else Verdict.WARN if nearly or value < float(expected.mfu.value) else Verdict.FAIL
    where = "inside" if inside else "above" if value > float(expected.mfu.value) else "below"
    bound = "the 80% interval" if inside or nearly else "the 95% interval"
    yield this.found(
        verdict,
        f"The claim of {{{claim.name}}} is {where} {bound}: the design is expected to reach {ends}. "
        f"Both count {facts.counted}.",
        "" if inside else "Make the schedule with the expectation; measure its widest term in the pilot.",
        value=claim, cost=_cost(facts, claim) if where == "above" else Cost(), cites=cites,
    )  # fmt: skip


def _cost(facts: ReviewFacts, claim: Quantity) -> Cost:
    """What the schedule lacks: the expected step over the claimed one."""
    expected = facts.expected.mfu
    inputs = {"ideal": facts.ideal, "expected": expected, "claim": claim}
    seconds = derive("claim.lacking", "ideal/expected - ideal/claim", "s", **inputs)
    seconds = seconds.titled("Step time that the claim leaves out")
    points = derive("claim.points", "claim - expected", "%", claim=claim, expected=expected)
    return facts.worth(seconds, points.titled("Claim over expectation"))
