"""G123: every attention setting is understood."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.gate.canary.facts import CanaryFacts, said
from ridgeline.gate.canary.serving import Kind


@rule("G123", "Every attention setting is understood")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Other settings about attention and its cache: the cache's format, how windows are held in memory, and names that are
    not known to this audit. Those are unknown, and named.

    ## Why it matters
    Servers gain options faster than any list of them. An option that is not on the list is not harmless for it.

    ## How to confirm
    Read the server's page on the option.

    ## What to do, cheapest first
    1. Ask the canary with the option and without.
    2. Leave the option at its default on retrieval paths.

    ## Sources
    The documentation of the server.
    """
    return said(facts, this, Kind.OTHER) if isinstance(facts, CanaryFacts) else []
