"""S306: is white space the same every time."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.serve.hygiene.facts import Hygiene, judge


@rule("S306", "White space stays the same", threshold=5, unit="%",
      why="one prompt token in twenty computed again for one line of code is worth a release")  # fmt: skip
def check(facts: Hygiene, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Parts that are equal once runs of blanks, tabs and line ends count as one blank.

    ## Why it matters
    A trailing blank or another line end changes the bytes and with them every prefix behind it.

    ## How to confirm
    Compare two logged prompts byte for byte at the place that the report shows.

    ## What to do, cheapest first
    1. Strip and join templates in one place.
    2. Send the text of earlier turns as it was first sent.

    ## Sources
    A cache is keyed by tokens, and tokenizers keep white space; the counts are this log's.
    """
    yield from judge(facts, this, ("whitespace",), "Build the prompt in one place, and send earlier turns unchanged.")
