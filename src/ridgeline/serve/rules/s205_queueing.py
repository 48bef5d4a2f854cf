"""S205: is the time to first token work, or waiting."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.simulate.facts import Simulated


@rule("S205", "The first token is not mostly waiting", threshold=50, unit="%",
      why="beyond half, a faster prefill shortens the first token less than a shorter queue does")  # fmt: skip
def check(facts: Simulated, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Mean queueing time, from arrival to the first step, over the mean time to first token.

    ## Why it matters
    It says which lever moves TTFT: admission and replicas, or the speed of the prefill.

    ## How to confirm
    The engine's metrics keep queue time and prefill time apart.

    ## What to do, cheapest first
    1. Chunked prefill, if the scheduler drains whole prompts first.
    2. Limit admission; shed or defer the classes that can wait.
    3. Add replicas; separate prefill and decode workers.

    ## Sources
    Little's law: requests in the queue are their rate times their wait.
    """
    share = facts.measured("simulate.queueing_share", 100 * facts.queueing_share, "%", "Queueing in the first token")
    mean = facts.latencies.get("ttft.mean")
    if mean is None:
        return
    good = this.holds(share)
    yield this.found(
        Verdict.PASS if good else Verdict.WARN,
        "{simulate.queueing_share} of the mean time to first token, {simulate.ttft.mean}, is queueing.",
        "" if good else "Limit admission or add replicas before making the prefill faster.",
        value=share, cites=(mean,),
    )  # fmt: skip
