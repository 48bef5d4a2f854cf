"""P106: do the published laws agree on the size."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive
from ridgeline.plan.plan import Plan


@rule("P106", "Scaling laws agree on the size", threshold=2, unit="1",
      why="from 1e23 FLOP on, a factor of two in N moves the predicted loss by about 0.01 nat or less")  # fmt: skip
def check(plan: Plan, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The largest over the smallest compute-optimal size among the laws compared.

    ## Why it matters
    Published constants come from other data, tokenizers and optimizers than yours. Where they disagree, the size is
    not known from the literature, and a ladder of your own decides.

    ## How to confirm
    The table of laws shows each optimum; `ridgeline why CASE optimum.params` shows the constants and their source.

    ## What to do, cheapest first
    1. Prefer the smaller of two sizes with equal loss: it is cheaper to serve for life.
    2. Run a ladder of five small budgets on your own data (about 2% of the compute).
    3. Refit and plan again.

    ## Sources
    Hoffmann et al. 2022 (arXiv:2203.15556); Besiroglu et al. 2024 (arXiv:2404.10102).
    """
    sizes = [best.params for best in plan.optima.values()]
    if len(sizes) < 2:
        yield this.found(Verdict.UNKNOWN, "Only one law was compared.", "Name more laws in the study.")
        return
    symbols = {f"n{number}": size for number, size in enumerate(sizes)}
    listed = ", ".join(symbols)
    spread = derive("law.spread", f"max({listed})/min({listed})", "1", **symbols).titled(
        "Largest over smallest optimum"
    )
    smallest, largest = min(sizes, key=_size), max(sizes, key=_size)
    agree = this.holds(spread)
    yield this.found(
        Verdict.PASS if agree else Verdict.WARN,
        f"{len(sizes)} published laws put the optimum between {{{smallest.name}}} and {{{largest.name}}}.",
        "Run a ladder on your own data before the size is fixed.",
        value=spread, cost=Cost() if agree else _regret(plan), cites=(smallest, largest),
    )  # fmt: skip


def _size(quantity: Quantity) -> float:
    return float(quantity.value)


def _regret(plan: Plan) -> Cost:
    """What the deciding law's size would waste if the least favourable of the others were right."""
    worst = min(plan.optimum.worth.values(), key=_size)
    if plan.money.rent is None:
        return Cost()
    regret = derive("cost.p106", "rent*(1 - worth)", "USD", rent=plan.money.rent, worth=worst)
    return Cost(dollars=regret.titled("Wasted if the least favourable law is right"))
