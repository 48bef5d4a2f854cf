"""S308: does the cache hold what repeats."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.serve.hygiene.facts import Hygiene


@rule("S308", "The cache holds the working set", threshold=0.9, unit="1", at_least=True,
      why="a cache that finds nine tenths of what an endless one finds is large enough")  # fmt: skip
def check(facts: Hygiene, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Only with a capacity: the hit rate of a cache of that size, where the least recently used block leaves, over
    that of a cache that forgets nothing.

    ## Why it matters
    Prefixes that come back after they were evicted are computed again, and no change of the prompt helps.

    ## How to confirm
    Read the server's evictions, or double the cache of one replica for an hour.

    ## What to do, cheapest first
    1. Route the requests of a conversation to the same replica.
    2. Keep the cache in 8 bits, or spill it to host memory.
    3. More memory for the cache.

    ## Sources
    The walk is that of a block-exact prefix cache; on the Mooncake conversation trace it gives 37.4% without limit
    and 21.5% at 10,000 blocks of 512 tokens.
    """
    if facts.limited is None or facts.limit is None or not float(facts.achievable.value) > 0:
        return
    part = derive(
        "hygiene.hit_rate.part", "limited/achievable", "1", limited=facts.limited, achievable=facts.achievable
    )
    part = part.titled("Part of the achievable hits that the capacity allows")
    good = this.holds(part)
    yield this.found(
        Verdict.PASS if good else Verdict.WARN,
        "A cache of {hygiene.capacity} finds {hygiene.hit_rate.limited} of the prompt tokens, one without limit "
        "{hygiene.hit_rate.achievable}; the distinct prefixes are {hygiene.working_set}.",
        "" if good else "Keep a conversation on one replica; then give the cache more room.",
        value=part, cites=(facts.limited, facts.achievable, facts.limit, facts.working_set),
    )  # fmt: skip
