"""S002: are key-value heads copied."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.capacity.facts import CapacityFacts


@rule("S002", "Key-value heads are not copied", threshold=1,
      why="tensor parallelism divides the cache only down to one head a chip")  # fmt: skip
def check(facts: CapacityFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    How many times the chips of one tensor-parallel group hold the cache of the layers that have key-value heads.

    ## Why it matters
    Beyond as many chips as key-value heads each chip keeps a copy: the chips are paid for, and hold no more requests
    than half or a quarter as many would.

    ## How to confirm
    The pages that the engine reports do not double when the tensor parallelism does.

    ## What to do, cheapest first
    1. Use a tensor parallelism of at most the key-value heads, and replicas or data-parallel attention beyond.
    2. Keep the cache in 8 bits.
    3. Give the next model as many key-value heads as a node has chips, or latents.

    ## Sources
    Ainslie et al. 2023, GQA (arXiv:2305.13245), section 2.2.
    """
    copies = facts.copies.get("heads")
    if copies is None:
        return
    holds = this.holds(copies)
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        "Each key and value is on one chip of a group." if holds
        else "A group of {deployment.tp} chips holds every key and value {kv.copies.heads} times.",
        "" if holds else "Give --parallel with a smaller tp and more dp_attention, or run more replicas.",
        value=copies,
    )  # fmt: skip
