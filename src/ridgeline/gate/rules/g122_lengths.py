"""G122: the canary is as long as what is served."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.gate.canary.facts import CanaryFacts, said
from ridgeline.gate.canary.serving import Kind


@rule("G122", "The canary is as long as what is served")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The longest canary context against the longest prompt that is served, and settings that cut prompts off. A canary
    that is longer than what is served fails, one of less than half warns. A server that cuts silently fails.

    ## Why it matters
    Precision errors add up over the context: what holds at 8,000 tokens says little about 100,000. A prompt that was
    cut has lost its needles before the model saw it.

    ## How to confirm
    Compare the tokens that the server counted with the length of the context, in the results of the probe.

    ## What to do, cheapest first
    1. Make the set anew for the served lengths: `ridgeline gate haystack --length`.
    2. Let the server refuse what is too long.

    ## Sources
    Hsieh et al., RULER, arXiv:2404.06654.
    """
    return said(facts, this, Kind.LENGTH) if isinstance(facts, CanaryFacts) else []
