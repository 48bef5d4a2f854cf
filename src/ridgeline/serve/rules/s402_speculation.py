"""S402: does speculation win at the batch that is served."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.levers.facts import LeverFacts


@rule("S402", "Speculative decoding wins at this batch", threshold=1.0, at_least=True,
      why="below one a sequence decodes slower with it than without")  # fmt: skip
def check(facts: LeverFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The speed of a sequence with speculation over that without, at the batch and context of the ledger's rate.

    ## Why it matters
    Verification is nearly free while a step waits for memory. At larger batches its tokens cost compute, in a mixture
    of experts they wake further experts, and rejected ones are lost: the same flag that helps one user halves a fleet.

    ## How to confirm
    The engine's acceptance length against the break-even one; decode at that batch with and without drafting.

    ## What to do, cheapest first
    1. Draft fewer tokens, or none above the batch where it loses.
    2. Take a drafter that is accepted more often.

    ## Sources
    Leviathan et al. 2023 (arXiv:2211.17192); vllm-project/vllm, issues 16258 and 8439, pull request 24343.
    """
    used = facts.ledger.setup.speculative
    holds = this.holds(facts.speedup)
    best = facts.speculation.best(facts.batch, facts.context)
    fix = f"Draft {best} tokens at this batch." if best else "Turn it off at this batch."
    yield this.found(
        Verdict.PASS if holds or not used else Verdict.WARN,
        f"At a batch of {facts.batch:,.0f} and {facts.drafted} drafted tokens a sequence decodes at "
        f"{{{facts.speedup.name}}} times its speed: a step yields {{{facts.length.name}}}, and "
        f"{{{facts.break_even.name}}} break even.",
        fix if used and not holds else "",
        value=facts.speedup, cites=(facts.length, facts.break_even),
    )  # fmt: skip
