"""P108: what serving the chosen size costs over its life, against the compute-optimal one."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.plan.lifetime import Scenario
from ridgeline.plan.plan import Plan


@rule("P108", "The size suits the served tokens")
def check(plan: Plan, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The cost of serving the chosen size against the compute-optimal one, in the middle traffic scenario.

    ## Why it matters
    Training is paid once, 2N FLOPs per served token are paid for life. Past a few tokens served per token trained,
    serving decides the size.

    ## How to confirm
    `ridgeline why CASE life.s1.optimum.serving_cost` shows the served tokens, the serving MFU and the price.

    ## What to do, cheapest first
    1. Get a traffic forecast as a range, with an owner.
    2. Take the smaller candidate where scenarios disagree: being wrong costs a few hundredths of a nat.
    3. Train the smaller one longer, to equal loss, beyond its crossover.

    ## Sources
    Sardana et al. 2023, Beyond Chinchilla-Optimal (arXiv:2401.00448).
    """
    if not plan.scenarios:
        yield this.found(
            Verdict.UNKNOWN, "No traffic scenario was given, so the size was chosen for training alone.",
            "Add [[traffic]] scenarios to the study, or --served to the command.",
        )  # fmt: skip
        return
    yield _chosen(plan, plan.middle, this) if plan.deviates else _compute_optimal(plan, plan.middle, this)


def _chosen(plan: Plan, middle: Scenario, this: Rule) -> Finding:
    life = middle.of(plan.choice.key)
    money = f", and {life.word} {{{life.difference.name}}} of serving" if life.difference is not None else ""
    cites = tuple(q for q in (life.compute, middle.optimum_compute, life.difference) if q is not None)
    dearer = float(life.compute.value) > float(middle.optimum_compute.value)
    return this.found(
        Verdict.WARN if dearer else Verdict.PASS,
        f"Over {{{middle.served.name}}} served, {plan.choice.label} takes {{{life.compute.name}}} for life against "
        f"{{{middle.optimum_compute.name}}} for the compute-optimal {plan.optimum.label}{money}.",
        "Take a smaller candidate." if dearer else "Put a range and an owner on the traffic forecast.",
        value=life.compute, cost=Cost(dollars=life.extra) if dearer else Cost(), cites=cites,
    )  # fmt: skip


def _compute_optimal(plan: Plan, middle: Scenario, this: Rule) -> Finding:
    cheaper = [life for life in middle.lives if float(life.compute.value) < float(middle.optimum_compute.value)]
    if not cheaper:
        return this.found(Verdict.PASS, "No smaller candidate was compared.", "Name candidates in the study.")
    life = max(cheaper, key=lambda item: float(item.candidate.params.value))
    saving = f" and would save {{{life.saving.name}}} of serving" if life.saving is not None else ""
    return this.found(
        Verdict.WARN,
        f"Over {{{middle.served.name}}} served, {life.candidate.label} takes {{{life.compute.name}}} for life against "
        f"{{{middle.optimum_compute.name}}} for {plan.optimum.label}{saving}.",
        f"Compare the loss of {life.candidate.label} with what the product needs.",
        value=life.compute, cost=Cost(dollars=life.saving), cites=(middle.served, middle.optimum_compute),
    )  # fmt: skip
