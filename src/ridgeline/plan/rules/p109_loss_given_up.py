"""P109: what leaving the compute-optimal size costs in loss."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.plan.plan import Plan


@rule("P109", "The deviation is worth its loss", threshold=50, unit="%", at_least=True,
      why="below half of its compute's worth, a run had better be a smaller run")  # fmt: skip
def check(plan: Plan, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of the budget with which a compute-optimal run would have the loss of the chosen model, under the law
    that judges, and under the others that predict loss.

    ## Why it matters
    A deviation from the optimum is bought with loss. Said as compute, it can be compared with what it saves.

    ## How to confirm
    Train two rungs of the ladder at the chosen tokens per parameter and at the optimal one, and compare.

    ## What to do, cheapest first
    1. Compare with the saving over a life of serving (P108).
    2. Take the largest model that is still a product.
    3. Spend more compute on the smaller model, to equal loss.

    ## Sources
    The frontier of the parametric law, Hoffmann et al. 2022 (arXiv:2203.15556), section 3.3.
    """
    if not plan.deviates:
        yield this.found(Verdict.PASS, "The choice is the compute-optimal size.", "")
        return
    slug = plan.judge.law.slug
    worth, excess = plan.choice.worth[slug], plan.choice.excess[slug]
    others = " and ".join(
        f"{{{plan.choice.excess[other].name}}} under {plan.optima[other].law.slug}"
        for other in plan.choice.excess if other != slug
    )  # fmt: skip
    yield this.found(
        Verdict.WARN if this.holds(worth) else Verdict.FAIL,
        f"{plan.choice.label} gives up {{{excess.name}}} under {slug}"
        + (f" ({others})" if others else "")
        + f": an optimal run would have its loss with {{{worth.name}}} of the compute.",
        "Weigh it against what the smaller model saves." if this.holds(worth) else "Take a larger candidate.",
        value=worth, cost=_cost(plan), cites=tuple(plan.choice.excess.values()),
    )  # fmt: skip


def _cost(plan: Plan) -> Cost:
    worth = plan.choice.worth[plan.judge.law.slug]
    if plan.money.rent is None:
        return Cost()
    given_up = derive("cost.p109", "rent*(1 - worth)", "USD", rent=plan.money.rent, worth=worth)
    return Cost(dollars=given_up.titled("Compute given up by the deviation"))
