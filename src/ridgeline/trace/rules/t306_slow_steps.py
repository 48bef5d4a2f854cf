"""T306: single slow steps, and the mean against the 95th percentile."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l3 import quantities
from ridgeline.trace.stall_findings import share_of


@rule("T306", "No tail of slow steps", threshold=1, unit="%",
      why="below a hundredth of the step the tail is not worth hunting")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    What steps cost that lie far (six robust standard deviations) above their neighbours and follow no period.

    ## Why it matters
    A job of many ranks is as slow as its slowest: rare events on one host become common for the job.

    ## How to confirm
    Look at the named steps in the logs of every rank: is it always the same host?

    ## What to do, cheapest first
    1. Exclude a host on which they gather.
    2. Retries of the network or storage, page faults, thermal events, other tenants at those times.
    3. Recompilation: shapes that change, for instance in the last batch.

    ## Sources
    Median absolute deviation about a running median.
    """
    chart = facts.l3
    if chart is None:
        return
    known = quantities(chart)
    lost, mean, p95, typical = known["outliers"], known["mean"], known["p95"], known["typical"]
    share = share_of(lost, mean, "Share of the step lost to single slow steps")
    bad = not this.holds(share)
    steps = ", ".join(map(str, chart.outlier_steps[:5])) + (", ..." if chart.outliers > 5 else "")
    named = f" (steps {steps})" if chart.outliers else ""
    yield this.found(
        Verdict.WARN if bad else Verdict.PASS,
        f"{chart.outliers} slow steps without a period{named} cost {{{lost.name}}} per step. The mean step is "
        f"{{{mean.name}}}, the 95th percentile {{{p95.name}}}, a step without stalls {{{typical.name}}}.",
        "Join the named steps with the logs of hosts, storage and network at that time." if bad else "",
        value=share, cost=facts.cost(lost) if bad else Cost(), cites=(lost, mean, p95, typical),
    )  # fmt: skip
