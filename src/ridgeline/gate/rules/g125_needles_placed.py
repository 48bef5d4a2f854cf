"""G125: does every needle have one place."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.gate.canary.facts import CanaryFacts, plain

SHOWN = 3


@rule("G125", "Every needle stands in its context once")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Every value that an answer must hold, searched in the text before the question as a word of its own. One that stands
    there never or more than once has no position; it is listed and not judged.

    ## Why it matters
    A value that the haystack also holds is found without its needle, and one that is not there is never found. Files
    that name one position of many needles name the first one's.

    ## How to confirm
    Search the value in the prompt.

    ## What to do, cheapest first
    1. Make the set with `ridgeline gate haystack`, which draws such values again.
    2. Choose values that no text holds by chance, such as numbers of seven digits.

    ## Sources
    Hsieh et al., RULER, arXiv:2404.06654.
    """
    if not isinstance(facts, CanaryFacts) or not (facts.placed or facts.unplaced):
        return
    if not facts.unplaced:
        yield this.found(Verdict.PASS, f"All {facts.placed:,} needles stand in their contexts once.", "")
        return
    named = [f"{item.value} in {item.context[:16]} ({item.times} times)" for item in facts.unplaced[:SHOWN]]
    more = " and more" if len(facts.unplaced) > SHOWN else ""
    total = facts.placed + len(facts.unplaced)
    head = f"{len(facts.unplaced):,} of {total:,} values have no single place and are not judged"
    said = f"{head}: {', '.join(named)}{more}."
    yield this.found(Verdict.WARN, plain(said), "Make the set with `ridgeline gate haystack`, or choose other values.")
