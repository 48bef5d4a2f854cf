"""S307: how many versions of the system prompt or the tools are in use."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.serve.hygiene.facts import Hygiene, judge


@rule("S307", "One version of the system prompt and tools at a time", threshold=5, unit="%",
      why="one prompt token in twenty computed again for one line of code is worth a release")  # fmt: skip
def check(facts: Hygiene, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Requests whose system prompt or tools differ as a whole and are followed by the same text. The figure is what
    would be found if all had the first one's.

    ## Why it matters
    Each version fills the cache for itself. Two that alternate cost little; one for every user costs everything.

    ## How to confirm
    Count the distinct system prompts by hour: a roll-out shows as one replacing the other.

    ## What to do, cheapest first
    1. Let a conversation keep the version that it started with.
    2. Send the same tools to all, and restrict them by instruction or tool choice.
    3. Route each version to replicas of its own.

    ## Sources
    Prefix caches match exactly from the first token; the counts are this log's.
    """
    yield from judge(facts, this, ("version",), "Keep one version for a conversation, and the same tools for all.")
