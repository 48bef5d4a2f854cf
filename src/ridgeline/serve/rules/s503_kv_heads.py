"""S503: do key-value heads bind."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.codesign.evaluate import NAMES
from ridgeline.serve.codesign.facts import Designed


@rule("S503", "The serving budget leaves room for more key-value heads")
def check(facts: Designed, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The choice again with the next larger number of key-value heads of the grid, under the same limits.

    ## Why it matters
    No scaling law sees key-value heads, and a cache that is too small for the model costs quality that it cannot
    price. Where they bind, the budget, not the modellers, has set them: months before anyone serves the model.

    ## How to confirm
    Train both at a small scale and compare losses at long context.

    ## What to do, cheapest first
    1. An 8-bit cache with the larger number, once a gate has passed it.
    2. Latent attention: more heads from a cache of constant size.
    3. Fewer sequences at once, or a shorter context.

    ## Sources
    Ainslie et al. 2023 (arXiv:2305.13245); Shazeer 2019 (arXiv:1911.02150).
    """
    one = facts.winner
    if one is None or one.group.frame.attention != "gqa":
        return
    heads, more = one.sides["kv_heads"], facts.more_heads
    if more is None:
        where = "the step model was not asked" if facts.blind else "no larger number was tried"
        yield this.found(Verdict.PASS, f"{heads} key-value heads keep every limit; {where}.", "")
    elif more.meets:
        text = f"{heads} key-value heads are not forced: {more.configuration.sides['kv_heads']} would fit as well."
        yield this.found(Verdict.PASS, text, "")
    else:
        used = more.stress[more.binding]
        text = (
            f"Key-value heads bind: with {more.configuration.sides['kv_heads']} instead of {heads}, "
            f"{NAMES[more.binding]} takes {100 * used:.0f}% of what is allowed."
        )
        yield this.found(Verdict.WARN, text, "Check the quality of so few heads at long context before the run.")
