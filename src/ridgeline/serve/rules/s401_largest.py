"""S401: the largest lever that is not in use."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.levers.facts import LeverFacts
from ridgeline.serve.levers.lever import UNKNOWN


@rule("S401", "No large lever is left unused", threshold=10, unit="%",
      why="a tenth of the cost is worth a week of an engineer on any fleet of hundreds of chips")  # fmt: skip
def check(facts: LeverFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    What the largest open lever saves alone, as a share of the cost of output tokens at the largest rate.

    ## Why it matters
    Levers overlap: the first one taken is worth what it buys alone, the next ones less. Start with the largest.

    ## How to confirm
    Turn it on for one replica and compare tokens a second at the same TPOT, and the quality where it changes tokens.

    ## What to do, cheapest first
    1. Levers that change no token: a flag of the engine, or the order of the prompt.
    2. Smaller types and routing, behind a quality gate.

    ## Sources
    The ledger of this case; serve/levers/catalogue.py names the papers.
    """
    open_rows = [row for row in facts.ledger.ranked if row.status == "open"]
    if not open_rows:
        yield this.found(Verdict.PASS, "No lever that is open here would save anything.", "")
        return
    row = open_rows[0]
    share, saved = facts.share(row), facts.alone(row)
    assert share is not None, "an open lever has both sides"
    assert saved is not None, "an open lever has both sides"
    holds = this.holds(share)
    risk = " Its effect on quality is unknown: gate it." if row.lever.quality == UNKNOWN else ""
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"{row.lever.title} would save {{{share.name}}} of the cost alone, {{{saved.name}}}.{risk}",
        "" if holds else f"Try {row.lever.title[0].lower()}{row.lever.title[1:]} on one replica.",
        value=share, cites=(saved,),
    )  # fmt: skip
