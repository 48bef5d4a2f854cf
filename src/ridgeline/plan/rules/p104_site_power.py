"""P104: does the site have the power."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive, given
from ridgeline.plan.plan import Plan


@rule("P104", "The site has the power", threshold=90, unit="%", why="headroom for hosts, network and cooling peaks")
def check(plan: Plan, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The average power of the run (chips at rated power, times PUE) against the site's limit.

    ## Why it matters
    A cluster that is throttled by its feed loses MFU every step, and nobody sees it in the model code.

    ## How to confirm
    Ask the site for the limit of the feed and the measured PUE; compare with a burn-in of all chips.

    ## What to do, cheapest first
    1. Ask for the limit: it is one message.
    2. Cap the chip power, and measure what the step time becomes.
    3. Use fewer chips for longer.

    ## Sources
    Olmo 3 reports 0.62 to 0.65 kW per H100-hour, 89 to 93% of the rated 700 W, over whole runs.
    """
    if plan.money.energy is None:
        yield this.found(
            Verdict.UNKNOWN, f"No source states the power of {plan.cluster.device.name}, so energy is not known.",
            "Give a device TOML with power.tdp.",
        )  # fmt: skip
        return
    draw = derive("site.power", "energy/time", "MW", energy=plan.money.energy, time=plan.cluster.time)
    draw = draw.titled("Average power at the meter")
    limit = plan.study.budget.site_power_mw
    energy = "The run draws {energy.training} ({cost.electricity} of electricity), {site.power} on average"
    cites = tuple(q for q in (draw, plan.money.energy, plan.money.electricity) if q is not None)
    if limit is None:
        yield this.found(
            Verdict.UNKNOWN, f"{energy}; the site's limit was not given.", "Ask the site for the limit of the feed.",
            cites=cites,
        )  # fmt: skip
        return
    capacity = given("site.limit", limit, "MW", "budget.site_power_mw").titled("Power limit of the site")
    share = derive("site.share", "draw/limit", "%", draw=draw, limit=capacity)
    fits = this.holds(share)
    yield this.found(
        Verdict.PASS if fits else Verdict.FAIL, f"{energy}: {{site.share}} of the site's {{site.limit}}.",
        "" if fits else "Cap the chip power, or use fewer chips for longer.",
        value=share, cites=(*cites, capacity),
    )  # fmt: skip
