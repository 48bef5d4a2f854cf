"""S311: are the counts of cached tokens possible."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.hygiene.facts import Hygiene


@rule("S311", "Counts of cached tokens are possible")
def check(facts: Hygiene, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Usage fields with more cached tokens than prompt tokens, below zero, or not a number.

    ## Why it matters
    A hit rate above one comes from adding fields that overlap, or from a proxy that counts twice; averages over it
    are worth nothing.

    ## How to confirm
    Print the usage block of the lines that are named.

    ## What to do, cheapest first
    1. For Anthropic's fields, prompt tokens are input + cache read + cache creation.
    2. Fix the proxy, then audit a new log.

    ## Sources
    Field definitions of the OpenAI and Anthropic APIs.
    """
    wrong = facts.audit.achieved.impossible
    if not wrong:
        if facts.audit.achieved.requests:
            yield this.found(Verdict.PASS, "Every count of cached tokens lies between 0 and the prompt.", "")
        return
    count = facts.measured("hygiene.usage.impossible", len(wrong), "request", "Requests with an impossible count")
    lines = ", ".join(map(str, wrong[:8]))
    yield this.found(
        Verdict.WARN,
        f"{{hygiene.usage.impossible}} count more cached tokens than prompt tokens, or none that can be (line "
        f"{lines}): they are left out of the achieved hit rate.",
        "Look at how the usage block of these lines was written.", value=count,
    )  # fmt: skip
