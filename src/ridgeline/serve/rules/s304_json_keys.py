"""S304: are JSON keys in the same order every time."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.serve.hygiene.facts import Hygiene, judge


@rule("S304", "JSON keys keep their order", threshold=5, unit="%",
      why="one prompt token in twenty computed again for one line of code is worth a release")  # fmt: skip
def check(facts: Hygiene, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Parts that are JSON and become equal, or equal for longer, once their keys are sorted: tool schemas, tool calls,
    tool results.

    ## Why it matters
    The document means the same and its bytes do not. Past results are sent again on every turn, so the first one
    whose keys moved ends the prefix for the rest of the conversation.

    ## How to confirm
    Serialise one tool result twice in two processes and compare the bytes.

    ## What to do, cheapest first
    1. Serialise with sorted keys.
    2. Keep the text of a result as it was first sent, and send that text again.

    ## Sources
    teunlao/swift-ai-sdk 39: 26 to 31% of 150k tokens cached before, nearly all after sorting.
    """
    yield from judge(
        facts, this, ("json_keys",), "Serialise JSON with sorted keys, or resend the bytes of the first time."
    )
