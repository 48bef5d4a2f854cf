"""S302: do prompts part at an id, a counter or a random number."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.serve.hygiene.facts import Hygiene, judge


@rule("S302", "No id or counter near the top of the prompt", threshold=5, unit="%",
      why="one prompt token in twenty computed again for one line of code is worth a release")  # fmt: skip
def check(facts: Hygiene, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Requests that share a prefix up to a UUID, a request, session or user id, a hexadecimal code, a counter or a
    random number, and agree again after it.

    ## Why it matters
    An id that is new on every request makes every prefix new. It is rarely read by the model; most come from
    logging or tracing that wrote into the prompt.

    ## How to confirm
    Take the id out of two logged prompts and compare them again.

    ## What to do, cheapest first
    1. Send the id as a field of the request (metadata, user), not in the prompt.
    2. Move it behind the shared text.
    3. Let it stay the same for a conversation.

    ## Sources
    Prompt caching guides of OpenAI and Anthropic: static content first; the counts are this log's.
    """
    yield from judge(facts, this, ("identifier", "counter"), "Send ids as metadata of the request, not in the prompt.")
