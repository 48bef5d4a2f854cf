"""T307: does the run become slower."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l3 import LEAST_ROWS, quantities
from ridgeline.trace.stall_findings import share_of


@rule("T307", "The step time does not grow", threshold=2, unit="%",
      why="the smallest lasting change that a test over block medians finds reliably")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    That the step time, without stalls and outliers, has no lasting rise: Mann-Kendall over block medians, and where the
    change is sudden, the step at which it came.

    ## Why it matters
    A slow rise (fragmentation, a leak, growing host lists, heating) and a jump (a throttled chip, a slow spare host)
    have different cures, and neither shows in one profile.

    ## How to confirm
    Restart from the same step: a rise that starts again at the low level is the process, a jump that stays is the
    machine. A schedule of sequence length or batch size explains a planned rise.

    ## What to do, cheapest first
    1. Compare with the schedule of the run: longer sequences cost more.
    2. Join with clocks and temperatures (T402 to T404).
    3. Restart; look for growing memory, log files and metric buffers.

    ## Sources
    Mann 1945, Nonparametric tests against trend; Kendall 1975, Rank correlation methods.
    """
    chart = facts.l3
    if chart is None or not int(chart.kept.sum()) >= LEAST_ROWS:
        return
    known = quantities(chart)
    trend = chart.trend
    if trend is None or trend.per_step_s <= 0:
        faster = "" if trend is None else f" It fell from {trend.before_s:.4g} s to {trend.after_s:.4g} s."
        yield this.found(Verdict.PASS, f"The step time does not grow.{faster}", "")
        return
    lost = known["trend"]
    share = share_of(lost, known["mean"], "Mean step above the level at the start")
    when = "by and by" if trend.step is None else f"at step {trend.step}"
    yield this.found(
        Verdict.PASS if this.holds(share) else Verdict.WARN,
        f"The step grew {when} from {trend.before_s:.4g} to {trend.after_s:.4g} s: {{{lost.name}}} a step on average.",
        "Find what changed then: sequence length, batch, memory fragmentation, clocks, a host.",
        value=share, cost=facts.cost(lost), cites=(lost, known["mean"]),
    )  # fmt: skip
