"""T201: do the large matmuls reach a fair share of the peak."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l2_losses import below_reach, compute_bound_matmuls, named


@rule("T201", "Large matmuls come near the peak", threshold=60, unit="%", at_least=True,
      why="tuned libraries reach 70 to 80% of a dense peak on large aligned matmuls")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    FLOPs of all matmuls whose roofline is the matrix unit, from their recorded shapes, over what the dense peak of
    their data type would do in their time. The cost is the time of those below the threshold beyond it.

    ## Why it matters
    Matmuls are where the expected MFU comes from. Below about 60% the cause is nearly always the shape, the data
    type or a kernel that is not the library's best, and all three can be changed.

    ## How to confirm
    Time the worst shape alone with the library's benchmark, at locked clocks. If it is fast there, look at clocks
    and at what runs beside it.

    ## What to do, cheapest first
    1. Look at T202 (tiles and waves), T204 (odd dimensions) and T207 (fp32) first: they say why.
    2. Let the library search: cuBLASLt heuristics, TunableOp, max-autotune.
    3. Pad or reshape the dimension that the table shows; larger micro-batches make longer waves.

    ## Sources
    2mnk FLOPs; dense peaks of the accelerator catalog, which also holds the best matmul rates measured.
    """
    ops = facts.l2
    rows = [] if ops is None else compute_bound_matmuls(ops)
    if ops is None or not rows:
        return
    time = ops.per_step("l2.matmul", sum(row.device_ns for row in rows), "Large matmuls per step")
    ideal = ops.per_step("l2.matmul_ideal", sum(row.bound_ns or 0.0 for row in rows), "The same at the peak")
    reached = derive("l2.matmul_reach", "ideal/time", "%", ideal=ideal, time=time).titled("Share of peak reached")
    assert this.threshold is not None
    found = below_reach(rows, float(this.threshold.base))
    seconds = ops.per_step("lost.matmul_efficiency", found.ns, "Matmul time beyond the threshold")
    holds = this.holds(reached)
    worst = "" if holds or not found.rows else f"; {named(found.worst)} loses most"
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"Large matmuls reach {{{reached.name}}} of the peak in {{{time.name}}} per step{worst}.",
        "" if holds else "See T202, T204 and T207 for the reason, then let the library tune the worst shapes.",
        value=reached, cost=Cost() if holds else facts.cost(seconds), cites=(time, seconds),
    )  # fmt: skip
