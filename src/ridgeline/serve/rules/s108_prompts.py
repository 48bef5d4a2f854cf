"""S108: prompts of other requests leave decoding its time."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.steps.facts import LatencyFacts


@rule("S108", "Prompts of other requests leave decoding its time", threshold=50, unit="%",
      why="a planning limit: beyond it the remedy below is worth its trouble")  # fmt: skip
def check(facts: LatencyFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of a token's time that goes to the prompts of requests that replace finished ones, in a closed loop.

    ## Why it matters
    Long prompts with short answers make every decoding request wait for somebody's prefill. More memory bandwidth or
    a smaller cache do not help then.

    ## How to confirm
    `--output-tokens` with a longer answer: TPOT falls.

    ## What to do, cheapest first
    1. Keep shared prefixes in the cache: `ridgeline serve hygiene` says how much there is to win.
    2. Prefill in chunks, so that the wait is spread.
    3. Prefill on chips of their own.

    ## Sources
    Agrawal et al. 2024, Sarathi-Serve (arXiv:2403.02310); Zhong et al. 2024, DistServe (arXiv:2401.09670).
    """
    share = facts.share("interference")
    good = this.holds(share)
    yield this.found(
        Verdict.PASS if good else Verdict.WARN, f"Prompts of other requests take {{{share.name}}} of a token's time.",
        "" if good else "Cache prefixes, or prefill apart from decode.", value=share,
    )  # fmt: skip
