"""S204: does the prefix cache find what repeats."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.serve.simulate.facts import Simulated

WORTH_PERCENT = 5  # of the prompt tokens that repeat: below it there is nothing to find


@rule("S204", "The prefix cache finds what repeats", threshold=0.5, unit="1", at_least=True,
      why="half of what a cache without limit finds; below it eviction or routing undoes the cache")  # fmt: skip
def check(facts: Simulated, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Prompt tokens found in the cache over those that a cache which never evicts would find. Only where the trace holds
    block hashes and at least 5% of the prompt tokens repeat.

    ## Why it matters
    A prefix that is evicted, or cached on another replica, is computed again at full price.

    ## How to confirm
    Simulate with more blocks, and with `routing = "prefix"`: the hit rate tells which of the two it is.

    ## What to do, cheapest first
    1. Turn the prefix cache on.
    2. Route by prefix where there is more than one replica.
    3. More memory for the cache: 8 bits, host memory, more chips.

    ## Sources
    `ridgeline serve hygiene` finds what keeps prompts from sharing a prefix at all.
    """
    achievable = facts.achievable
    if not float(achievable.value) >= WORTH_PERCENT:
        return
    achieved = facts.rates["hit_rate"]
    part = derive("simulate.hit_rate.part", "hit/achievable", "1", hit=achieved, achievable=achievable)
    part = part.titled("Part of the repeated prompt tokens that were found")
    good = this.holds(part)
    off = "" if facts.study.engine.prefix_cache else " The prefix cache is off."
    yield this.found(
        Verdict.PASS if good else Verdict.WARN,
        "{simulate.hit_rate.achievable} of the prompt tokens repeat; {simulate.hit_rate} are found." + off,
        "" if good else "Turn the cache on, route by prefix, then give it more memory.",
        value=part, cites=(achieved, achievable),
    )  # fmt: skip
