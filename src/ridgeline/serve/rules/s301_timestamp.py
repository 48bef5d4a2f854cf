"""S301: do prompts part at a time or date."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.serve.hygiene.facts import Hygiene, judge


@rule("S301", "No time near the top of the prompt", threshold=5, unit="%",
      why="one prompt token in twenty computed again for one line of code is worth a release")  # fmt: skip
def check(facts: Hygiene, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Requests that share a prefix up to a time or date and agree again after it. Times are ISO dates, clocks, worded
    dates and seconds since 1970. The share is what the log would find in the cache with those times taken out, less
    what it finds now.

    ## Why it matters
    A cache compares prefixes. Everything behind the first changed byte is computed again and billed in full: tools,
    instructions and the whole conversation, on every request.

    ## How to confirm
    Send the same conversation twice a second apart: cached_tokens stays at the tokens before the time.

    ## What to do, cheapest first
    1. Move the time into the last message of the user.
    2. Round it to the day where the model needs only the date.
    3. Write it once when the conversation starts, and keep it.

    ## Sources
    joshuadavidthomas/opencode-agent-memory 29 (24,576 tokens cached of 27K to 377K), HKUDS/nanobot 226,
    adolfousier/opencrabs 657.
    """
    yield from judge(facts, this, ("timestamp",), "Move the time into the last message, or round it to the day.")
