"""S310: does the server find what the prompts allow."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.serve.hygiene.facts import Hygiene

WARM_PERCENT = 2  # points above what the log explains: rounding to blocks is less
NEAR_PERCENT = 5  # points below: minimum lengths and cold starts


@rule("S310", "The server finds what the prompts allow", threshold=0.8, unit="1", at_least=True,
      why="evictions, routing and minimum lengths take some; a fifth is much for a log of one service")  # fmt: skip
def check(facts: Hygiene, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Cached tokens of the log's usage fields over the hit rate that the prompts allow as sent; and whether the server
    found more than this log can explain.

    ## Why it matters
    Far below: requests of a conversation go to different replicas, entries expire, or nothing is marked for
    caching. Above: the cache was warm before the log began, so a benchmark on it promises too much.

    ## How to confirm
    Compare a replica alone with all of them, and the first minute of the log with the last.

    ## What to do, cheapest first
    1. Set a cache key or route by conversation.
    2. Mark the prefix for caching where the provider asks for it.
    3. Clear the cache before a benchmark, or use new prompts.

    ## Sources
    vllm-project/vllm 52884: a second run over the same prompts, throughput up to 86% too high.
    """
    if facts.achieved is None:
        return
    over = float(facts.achieved.value) - float(facts.achievable.value)
    cited = (facts.achieved, facts.achievable)
    if over > WARM_PERCENT:
        yield this.found(
            Verdict.WARN, "The server found {hygiene.hit_rate.achieved}, more than the {hygiene.hit_rate.achievable} "
            "that this log explains: its cache was warm before, or other traffic shares the prefixes.",
            "Clear the cache before a benchmark, or log all that shares it.", cites=cited,
        )  # fmt: skip
        return
    if not float(facts.achievable.value) > 0:
        return
    part = derive(
        "hygiene.hit_rate.found", "achieved/achievable", "1", achieved=facts.achieved, achievable=facts.achievable
    )
    part = part.titled("Part of the achievable hits that the server found")
    near = -over <= NEAR_PERCENT
    good = this.holds(part) or near
    yield this.found(
        Verdict.PASS if good else Verdict.WARN,
        "The server found {hygiene.hit_rate.achieved} of the prompt tokens; the prompts allow "
        "{hygiene.hit_rate.achievable} as sent.",
        "" if good else "Route by conversation, and look at lifetime and minimum length of the provider's cache.",
        value=part if this.holds(part) or not near else None, cites=cited,
    )  # fmt: skip
