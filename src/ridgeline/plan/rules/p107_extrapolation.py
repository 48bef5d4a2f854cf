"""P107: how far beyond its runs is the law stretched."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.plan.plan import Plan


@rule("P107", "The law covers this budget", threshold=1, unit="1",
      why="on public ladders, nominal 95% intervals covered about a quarter of losses a decade out")  # fmt: skip
def check(plan: Plan, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Decades of compute between the largest run behind the loss law and this budget.

    ## Why it matters
    A law is a summary of its runs. One decade beyond them the stated intervals are already too narrow, and a small
    error in an exponent becomes a wrong size.

    ## How to confirm
    Look up the fitted range on the law's card (`ridgeline why CASE` names its source).

    ## What to do, cheapest first
    1. Treat differences below a few hundredths of a nat as unknown.
    2. Add a larger rung to your own ladder: the reach shrinks by its distance.
    3. Stage the launch: stop at 10% of the tokens and compare with the forecast.

    ## Sources
    Fitted ranges in `core/data/laws`; the coverage was measured by refitting public ladders without their largest runs.
    """
    chosen = plan.judge.law
    compute = chosen.fitted.get("compute")
    if compute is None:
        yield this.found(
            Verdict.UNKNOWN, f"No range of compute is known for the runs behind {chosen.name}: nor is the reach, then.",
            "Use a law with a published range, or your own ladder.",
        )  # fmt: skip
        return
    reach = derive(
        "law.decades_beyond", "max(0, log10(count(budget)/count(largest)))", "1",
        budget=plan.cluster.compute, largest=compute[1],
    ).titled("Decades beyond the law's largest run")  # fmt: skip
    inside = this.holds(reach)
    largest = f"the largest run behind {chosen.name} ({{{compute[1].name}}})"
    above = f"The budget is {{law.decades_beyond|2}} decades above {largest}"
    if inside:
        sentence = f"{above}." if float(reach.value) > 0 else f"The budget is not above {largest}."
        yield this.found(Verdict.PASS, sentence, "", value=reach, cites=(compute[1],))
        return
    yield this.found(
        Verdict.WARN, f"{above}: read loss differences as order of magnitude.",
        "Add a rung of your own half a decade below the flagship.", value=reach, cites=(compute[1],),
    )  # fmt: skip
