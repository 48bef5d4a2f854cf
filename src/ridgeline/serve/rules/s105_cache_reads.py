"""S105: reading the cache does not dominate a step."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.steps.facts import LatencyFacts


@rule("S105", "Reading the cache does not dominate a step", threshold=50, unit="%",
      why="a planning limit: beyond it the remedy below is worth its trouble")  # fmt: skip
def check(facts: LatencyFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of a step that goes to attention over the cached tokens.

    ## Why it matters
    Attention's share grows with context times batch, and no larger batch spreads it: each sequence reads its own cache.

    ## How to confirm
    Halve `--context`: TPOT falls by about half of this share.

    ## What to do, cheapest first
    1. Keep the cache in 8 bits.
    2. More chips a group, as far as key-value heads divide.
    3. For the next model: fewer key-value heads, a latent, or windows.

    ## Sources
    Measured decode-attention surfaces, docs/design/serving-surfaces.md.
    """
    share = facts.share("attention")
    good = this.holds(share)
    yield this.found(
        Verdict.PASS if good else Verdict.WARN, f"Attention takes {{{share.name}}} of a token's time.",
        "" if good else "Keep the cache in 8 bits, or split it over more chips.", value=share,
    )  # fmt: skip
