"""P219: does the plan use every chip that is paid for."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P219", "The plan uses the chips", threshold=2, unit="%",
      why="spares for failed nodes; more is paid for and never used")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Chips that the plan occupies against the chips of the cluster.

    ## Why it matters
    Groups of powers of two leave chips over on clusters that are none. They are billed for the whole run.

    ## How to confirm
    Multiply tp, pp, dp and cp; compare with the reservation.

    ## What to do, cheapest first
    1. Keep a few nodes as spares for failures, and count them as such.
    2. Choose a data-parallel size that fills the cluster and divides the batch.

    ## Sources
    The plan and the cluster of the review file.
    """
    every = given("cluster.chips", facts.cluster.chips, "chip", "the cluster").titled("Chips of the cluster")
    idle = derive("cluster.idle", "1 - used/all", "%", used=facts.chips, all=every).titled("Chips without work")
    holds = this.holds(idle)
    cost = Cost()
    if not holds and facts.run_steps is not None:
        inputs = {"step": facts.step, "steps": facts.run_steps, "all": every, "used": facts.chips}
        hours = derive("cluster.idle.chip_hours", "step*steps*(all - used)", "chip*h", **inputs)
        hours = hours.titled("Chip-hours of idle chips over the run")
        dollars = None
        if facts.price is not None:
            dollars = derive("cluster.idle.dollars", "hours*price", "USD", hours=hours, price=facts.price)
        cost = Cost(chip_hours=hours, dollars=dollars)
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        _said(facts, every, idle),
        "" if holds else "Choose a dp that fills the cluster, or give the rest back.",
        value=idle, cost=cost, cites=(facts.chips, every),
    )  # fmt: skip


def _said(facts: ReviewFacts, every: Quantity, idle: Quantity) -> str:
    if float(idle.value) <= 0:
        return f"The plan uses all {{{every.name}}}."
    return f"The plan uses {{{facts.chips.name}}} of {{{every.name}}}; {{{idle.name}|2}} stay idle."
