"""S305: does text that changes stand before text that does not."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.serve.hygiene.facts import Hygiene, judge


@rule("S305", "Static text stands before text that changes", threshold=5, unit="%",
      why="one prompt token in twenty computed again for one line of code is worth a release")  # fmt: skip
def check(facts: Hygiene, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Requests that part at a name, another short text or a whole paragraph and share the text behind it. For a short
    value the figure takes it out; for paragraphs it moves those that most requests share to the front.

    ## Why it matters
    Instructions, examples and documents that all requests share are computed again for each, because something of
    one user stands before them.

    ## How to confirm
    Look at the suggested order of the prompt's parts in the report, and send two requests in that order.

    ## What to do, cheapest first
    1. Move the user's name and data into the last message.
    2. Put retrieved documents behind the instructions.
    3. Order documents in a fixed way.

    ## Sources
    Prompt caching guides of OpenAI and Anthropic: static content first, variable content last.
    """
    yield from judge(facts, this, ("order", "content"), "Put what all requests share first, what belongs to one last.")
