"""S001: does a request fit."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.capacity.facts import CapacityFacts


@rule("S001", "At least one request fits", threshold=1, unit="request", at_least=True,
      why="a deployment that holds no request of the asked length serves none")  # fmt: skip
def check(facts: CapacityFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Whole requests of the asked context that fit at once in what weights, activations, graphs and the runtime leave of a
    chip's memory, in pages.

    ## Why it matters
    A request that does not fit is never started, or is preempted for ever. Below a few tens of requests decoding reads
    all weights for few tokens, so cost per token is high.

    ## How to confirm
    `ridgeline why CASE capacity.sequences` shows the terms. The engine's start-up log prints the same ones, and the
    number of its pages: pages x tokens of a page is what it can hold.

    ## What to do, cheapest first
    1. Keep the cache in 8 bits, then the weights.
    2. Lower the chunk of a prefill step, or raise the share of memory the engine may use.
    3. Use more chips for one replica.

    ## Sources
    Kwon et al. 2023, PagedAttention (arXiv:2309.06180), section 4.
    """
    found = facts.capacity.sequences
    fits = this.holds(found)
    longest = facts.capacity.max_context
    alone = ""
    if longest is not None:
        alone = "; one alone may grow to {capacity.max_context}"
    yield this.found(
        Verdict.PASS if fits else Verdict.FAIL,
        f"{{capacity.sequences}} of {{request.context}} fit at once{alone}." if fits
        else f"No request of {{request.context}} fits in the {{chip.free}} that one chip has left{alone}.",
        "" if fits else "Keep the cache or the weights in 8 bits, or use more chips.",
        value=found,
        cites=(facts.capacity.context, facts.capacity.room.free, *((longest,) if longest is not None else ())),
    )  # fmt: skip
