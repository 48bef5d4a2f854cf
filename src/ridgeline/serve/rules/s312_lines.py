"""S312: was the whole log read."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.hygiene.facts import Hygiene


@rule("S312", "The whole log was read", threshold=1, unit="%",
      why="a line in a hundred does not move a rate by more than its own digits")  # fmt: skip
def check(facts: Hygiene, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Lines that hold no readable request: JSON that is cut off, an unknown schema, an empty prompt, a line too long.

    ## Why it matters
    A request that is missing also misses as the earlier one that others would have shared with.

    ## How to confirm
    Look at the lines that the report lists.

    ## What to do, cheapest first
    1. Log one JSON document a line.
    2. Write a reader: one file in serve/hygiene/readers.

    ## Sources
    The schemas are those of the readers in serve/hygiene/readers.
    """
    unread, read = facts.audit.ledger.unread, facts.audit.sent.requests
    if not unread:
        return
    share = facts.measured("hygiene.unread", 100 * unread / (unread + read), "%", "Lines that could not be read")
    good = this.holds(share)
    at = ", ".join(str(line) for line, _ in facts.audit.ledger.listed[:6])
    yield this.found(
        Verdict.PASS if good else Verdict.WARN,
        f"{unread:,} lines hold no readable request, {{hygiene.unread}} of the log (line {at}).",
        "" if good else "Look at these lines; the last section of the report says why each was left out.", value=share,
    )  # fmt: skip
