"""S201: does the queue stay as long as it is."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.simulate.facts import Simulated


@rule("S201", "The queue does not grow without bound", threshold=2, unit="%",
      why="a load of 102% gains 2%; stable simulated runs stay below 0.5%")  # fmt: skip
def check(facts: Simulated, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    How much later each request starts than the one before it: the slope of the queueing time over the arrival time,
    through the medians of ten groups of requests. An open loop only.

    ## Why it matters
    Above the capacity every percentile is a function of how long the run was. Such figures say nothing of the engine.

    ## How to confirm
    Simulate the same traffic twice as long (`repeat = 2`): the percentiles of an overloaded run double.

    ## What to do, cheapest first
    1. Limit admission at the highest rate that meets the SLO, which `--slo` finds.
    2. Add replicas, or chips to each.
    3. Shorten prompts or cache their prefixes; use 8-bit weights or caches.

    ## Sources
    Queueing theory: above a utilisation of 1 the mean wait has no limit.
    """
    if facts.result.workload.closed:
        return
    served, grows = facts.rates["requests_per_s"], not this.holds(facts.growth)
    yield this.found(
        Verdict.FAIL if grows else Verdict.PASS,
        "Queueing grows by {simulate.growth} of the time that passes while {simulate.requests_per_s} are served"
        + (": more arrives than can be served." if grows else "."),
        "Limit admission at the rate that --slo finds, or add replicas." if grows else "",
        value=facts.growth, cites=(served,),
    )  # fmt: skip
