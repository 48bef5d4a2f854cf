"""S102: the first token comes in time."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import given
from ridgeline.serve.steps.facts import LatencyFacts


@rule("S102", "The first token comes in time")
def check(facts: LatencyFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The asked time to the first token against the expected one and its interval.

    ## Why it matters
    A first token waits for its own prompt and for those of others; decode speed does not shorten it.

    ## How to confirm
    Replay the arrivals: `ridgeline serve simulate` gives its percentiles.

    ## What to do, cheapest first
    1. Keep shared prefixes in the cache.
    2. Prefill on chips of their own.
    3. Fewer requests at once.

    ## Sources
    Intervals from published rows, docs of `ridgeline serve latency`.
    """
    asked = facts.settings.slo_ttft_ms
    if asked is None:
        return
    need = given("latency.first_need", asked * 1e-3, "s", "slo_ttft_ms").titled("Asked time to the first token")
    high = facts.ends["ttft"][1]
    late, near = (float(need.base) < float(item.base) for item in (facts.ttft, high))
    verdict = Verdict.FAIL if late else Verdict.WARN if near else Verdict.PASS
    yield this.found(
        verdict, "The first token is expected in {latency.ttft} (80%: up to {latency.ttft.high80}); asked are "
        "{latency.first_need}.",
        "Cache prefixes, or prefill apart from decode." if near else "", cites=(need, facts.ttft, high),
    )  # fmt: skip
