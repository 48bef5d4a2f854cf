"""G121: nothing drops keys and values from the cache."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.gate.canary.facts import CanaryFacts, said
from ridgeline.gate.canary.serving import Kind


@rule("G121", "Nothing drops keys and values from the cache")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Settings that name a method of cache eviction or compression: attention sinks with a recent window, heavy hitters,
    SnapKV and its kin, a cache of the last tokens. Such a method fails; one that selects tokens for each query warns.
    Eviction of whole prefixes that other requests share is no loss: they are computed again.

    ## Why it matters
    What is dropped cannot be attended to. A method that keeps the score of an average task may lose single facts of a
    long prompt, and all of them at once when forgetting begins.

    ## How to confirm
    Ask the canary with the method and without, at lengths beyond its budget, and read hits by depth.

    ## What to do, cheapest first
    1. Switch the method off for prompts that are retrieved from.
    2. Raise its budget above the longest prompt.
    3. Judge the method itself as the candidate of this gate.

    ## Sources
    Xiao et al., StreamingLLM, arXiv:2309.17453; Zhang et al., H2O, arXiv:2306.14048; Li et al., SnapKV,
    arXiv:2404.14469.
    """
    return said(facts, this, Kind.EVICTION) if isinstance(facts, CanaryFacts) else []
