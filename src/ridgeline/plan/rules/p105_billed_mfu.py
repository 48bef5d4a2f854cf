"""P105: is the MFU one that runs reach over the hours they pay for."""

from collections.abc import Iterable

from ridgeline.core.catalog import constant
from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.plan.plan import Plan


@rule("P105", "MFU holds over billed hours", threshold=0.39, unit="1",
      why="the highest of seven public runs: 6ND over the peak of the chip-hours on their cards")  # fmt: skip
def check(plan: Plan, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The plan's MFU against what public runs reached over their *billed* chip-hours (6ND over dense peak, restarts,
    evaluation and failed starts included): 0.14 to 0.39.

    ## Why it matters
    A step can run at 40% and the month at 30%. The budget buys the tokens of the month.

    ## How to confirm
    Divide 6ND of your last run by the peak of the chip-hours on its bill.

    ## What to do, cheapest first
    1. Plan with the MFU of your own last bill.
    2. Budget goodput apart from MFU, with an interval.
    3. Cut restart time and checkpoint loss before the launch.

    ## Sources
    Model cards of seven runs, `core/data/published_runs.toml`; the range is `core/data/goodput.toml`.
    """
    low = constant("goodput.billed_mfu.low").titled("Lowest over billed hours")
    high = constant("goodput.billed_mfu.high").titled("Highest over billed hours")
    least = derive(
        "compute.low", "compute*low/mfu", "FLOP", compute=plan.cluster.compute, low=low, mfu=plan.cluster.mfu
    )
    least = least.titled("Compute at the lowest MFU over billed hours")
    range_ = f"public runs reached {{{low.name}}} to {{{high.name}}} over the hours they paid for"
    over = not this.holds(plan.cluster.mfu)
    yield this.found(
        Verdict.WARN if over else Verdict.PASS,
        f"The plan counts on an MFU of {{{plan.cluster.mfu.name}|2}}; {range_}. "
        "At the low end the budget is {compute.low}.",
        "Plan with the MFU of your own last bill.",
        value=plan.cluster.mfu, cost=_cost(plan, this) if over else Cost(), cites=(low, high, least),
    )  # fmt: skip


def _cost(plan: Plan, this: Rule) -> Cost:
    """The part of the bill that buys nothing at the threshold's MFU."""
    if plan.money.rent is None or this.threshold is None:
        return Cost()
    text = "rent*(1 - reached/mfu)"
    inputs = {"rent": plan.money.rent, "reached": this.threshold, "mfu": plan.cluster.mfu}
    return Cost(dollars=derive("cost.p105", text, "USD", **inputs).titled("Rent above the best public run"))
