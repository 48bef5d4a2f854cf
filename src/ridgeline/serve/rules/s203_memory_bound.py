"""S203: does memory keep requests waiting while there is time to serve them."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.simulate.binding import MEMORY
from ridgeline.serve.simulate.facts import Simulated


@rule("S203", "The cache's memory does not hold requests back", threshold=20, unit="%",
      why="with a fifth of the step time so, more blocks would fill that fifth")  # fmt: skip
def check(facts: Simulated, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of the step time in which requests wait although the step has tokens and sequences to spare: what is
    missing is key-value blocks.

    ## Why it matters
    Chips that could work faster wait for memory. The remedy is bytes, not FLOPs.

    ## How to confirm
    Simulate again with twice the blocks (`kv_blocks` under [engine]): the queue shortens.

    ## What to do, cheapest first
    1. Keep the cache in 8 bits.
    2. Quantise the weights: what they free becomes blocks.
    3. More chips a replica; for the next model, fewer key-value heads or a latent.

    ## Sources
    `ridgeline serve capacity` derives the blocks.
    """
    if not facts.binding:
        return
    share = facts.share(MEMORY)
    good = this.holds(share)
    yield this.found(
        Verdict.PASS if good else Verdict.WARN,
        f"In {{{share.name}}} of the step time requests wait for key-value blocks alone; {{simulate.kv.mean}} of the "
        "blocks are in use on average.",
        "" if good else "Keep the cache in 8 bits, or free memory by quantised weights.",
        value=share, cites=(facts.rates["kv_mean"],),
    )  # fmt: skip
