"""S003: are latents copied."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.capacity.facts import CapacityFacts


@rule("S003", "Latents are not copied", threshold=1,
      why="a latent has no heads that tensor parallelism could divide")  # fmt: skip
def check(facts: CapacityFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    How many times the chips of one tensor-parallel group hold the latents of multi-head latent attention, or the
    entries of a compressed past.

    ## Why it matters
    Every chip of the group keeps the whole latent. A budget that divides it by the tensor parallelism admits as many
    times too many requests.

    ## How to confirm
    The pages that the engine reports, with tensor parallelism and with data-parallel attention on the same chips.

    ## What to do, cheapest first
    1. Run attention data parallel: each chip keeps the latents of its own requests.
    2. Keep the latents in 8 bits.
    3. Use fewer chips for a replica.

    ## Sources
    DeepSeek-V2 (arXiv:2405.04434), section 2.1; DeepSeek-V3 (arXiv:2412.19437), section 3.4.
    """
    copies = facts.copies.get("latents")
    if copies is None:
        return
    holds = this.holds(copies)
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        "Each latent is on one chip." if holds
        else "A group of {deployment.tp} chips holds every latent {kv.copies.latents} times.",
        "" if holds else "Give --parallel tp=1,dp_attention=N, with ep=N where there are experts.",
        value=copies,
    )  # fmt: skip
