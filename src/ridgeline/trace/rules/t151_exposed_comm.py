"""T151: communication that nothing hides."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.core.quantity import Quantity
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels import l0
from ridgeline.trace.losses import Told, lost, no_trace, seconds


@rule("T151", "Communication hides under compute", threshold=10, unit="%",
      why="well-tuned large runs keep exposed communication below a tenth of the step")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    All exposed communication in a steady step, and how much of it is waiting for a late rank. T152 to T158 say why;
    their seconds are parts of these.

    ## Why it matters
    It is usually the largest loss of a distributed run, and three different things: waiting, transfer, or order.

    ## How to confirm
    Compare wire time (the shortest over the ranks) with kernel time: what is longer waits.

    ## What to do, cheapest first
    1. Follow the findings on late ranks, scheduling and bandwidth, in this order.

    ## Sources
    The kernels of the trace. Overlap by exact union of intervals.
    """
    if not facts.l0:
        yield no_trace(this)
        return
    exposed = l0.per_step(facts.l0, "exposed_comm", "lost.exposed_comm")
    cites: list[Quantity] = []
    tail = ""
    if facts.l1 is not None and facts.l1.matched:
        wait_s = sum(row.wait_per_step_s for row in facts.l1.rows)
        cites.append(
            seconds("lost.comm_wait", wait_s, "Exposed wait for the last rank per step", "matched collectives")
        )
        tail = "{lost.comm_wait} of it is waiting for the last rank"
    told = Told("Communication is exposed for", "Fix late ranks first, then scheduling, then bandwidth.", tail)
    yield lost(facts, this, exposed, told, tuple(cites))
