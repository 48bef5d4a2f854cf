"""The tables of a plan, from which reports and charts are made."""

from typing import Any

import numpy as np

from ridgeline.arithmetic import laws
from ridgeline.arithmetic.budget import lifetime_compute, tokens_for
from ridgeline.core.case import Column, Table
from ridgeline.core.format import seconds
from ridgeline.core.quantity import Source, leaf
from ridgeline.plan.budget import Cluster
from ridgeline.plan.candidates import Candidate, fits_need
from ridgeline.plan.lifetime import Scenario
from ridgeline.plan.plan import Plan
from ridgeline.plan.recipe_facts import RecipeFacts

CURVE, SPAN = 49, 6  # points of the iso-compute curve, and how far it goes to each side of the optimum


def budget_table(plan: Plan) -> Table:
    """What goes in and what comes out."""
    machine, money = plan.cluster, plan.money
    known = [machine.chips, machine.time, machine.mfu, machine.peak, machine.compute, machine.price,
             money.rent, money.per_1e21, money.energy, money.electricity]  # fmt: skip
    rows = tuple((q.label or q.name, q, _where(q.kind)) for q in known if q is not None)
    columns = (Column("what", "What"), Column("value", "Value"), Column("kind", "Kind", meaning="where it comes from"))
    return Table(f"The budget: {machine.chips.value:,} {machine.device.name}", columns, rows)


def _where(kind: str) -> str:
    return {"specified": "given", "derived": "computed"}.get(kind, kind)


def law_table(plan: Plan) -> Table:
    """The compute-optimal model under each law."""
    columns = (
        Column("law", "Law"),
        Column("params", "Parameters", "param", "compute-optimal size"),
        Column("tokens", "Tokens", "token", "C/(6N)"),
        Column("ratio", "D/N", "token/param"),
        Column("loss", "Loss there", "nat", "under the law itself; not comparable between laws"),
    )
    rows = tuple(
        (best.law.name, best.params, best.tokens, best.tokens_per_param, best.loss or "gives none")
        for best in plan.optima.values()
    )
    return Table(
        "Compute-optimal size under published laws", columns, rows, highlight=0, mark="decides",
        note="Losses of different laws are on different data and tokenizers: compare sizes, not losses.",
    )  # fmt: skip


def candidate_table(plan: Plan) -> Table:
    """Every candidate on the same training budget."""
    slug = plan.judge.law.slug
    columns = [Column("size", "Model", "param"), Column("tokens", "Tokens", "token", "C/(6N)")]
    if plan.product:
        for machine in plan.product.devices.values():
            chips = f"smallest count of {machine.name} on which one turn meets the budget"
            columns.append(Column(f"chips.{machine.slug}", machine.name, "chip", chips))
        columns.append(Column("fits", "Product", meaning="whether one conversation fits the chips it may occupy"))
    columns += [
        Column("ratio", "D/N", "token/param"),
        Column("loss", "Loss", "nat", f"under {plan.judge.law.name}"),
        Column("excess", "Above optimum", "nat", f"loss above the optimum of {plan.judge.law.name}"),
        Column("worth", "Worth", "%", "share of the budget with which an optimal run has this loss"),
    ]  # fmt: skip
    rows = tuple(_candidate_row(plan, item, slug) for item in plan.everyone)
    chosen = plan.everyone.index(plan.choice)
    note = (
        "The chip columns are the fewest chips on which one conversation meets the latency budget."
        if plan.product else ""
    )  # fmt: skip
    title = "Candidates on the same training budget"
    return Table(title, tuple(columns), rows, highlight=chosen, mark="chosen", note=note)


def _candidate_row(plan: Plan, item: Candidate, slug: str) -> tuple[Any, ...]:
    row: list[Any] = [item.params, item.tokens]
    if plan.product:
        row += [item.needed[device].exact for device in plan.product.devices]
        row.append("yes" if fits_need(item, plan.product) else "no")
    return (*row, item.tokens_per_param, item.losses[slug], item.excess[slug], item.worth[slug])


def lifetime_table(plan: Plan) -> Table:
    """Training and serving over each scenario, at the same training budget."""
    columns = (
        Column("name", "Scenario"),
        Column("served", "Served", "token"),
        Column("model", "Model"),
        Column("compute", "Compute for life", "FLOP", "6N per trained and 2N per served token"),
        Column("cost", "Cost of serving", "USD"),
        Column("saving", "Saved", "USD", "against the compute-optimal model"),
    )
    rows = tuple(
        (
            scenario.name, life.served, life.candidate.label, life.compute, life.serving_cost,
            "baseline" if life is scenario.lives[0] else life.saving,
        )
        for scenario in plan.scenarios for life in scenario.lives
    )  # fmt: skip
    return Table("A life of serving, at the same training budget", columns, rows)


def scenario_table(plan: Plan) -> Table:
    """The size that is cheapest over its life at the optimum's loss, for each scenario."""
    columns = (
        Column("name", "Scenario"),
        Column("served", "Served tokens", "token"),
        Column("params", "Cheapest size", "param", "least 6ND + 2N*served among sizes that reach the loss"),
        Column("tokens", "Its training tokens", "token"),
        Column("compute", "Compute for life", "FLOP"),
        Column("optimum", "Of the optimum", "FLOP", "the compute-optimal model over the same life"),
    )
    rows = tuple(_scenario_row(item) for item in plan.scenarios)
    note = f"All reach the loss of {plan.optimum.label} on its own tokens, under {plan.judge.law.name}."
    return Table("The cheapest size at equal loss", columns, rows, note=note)


def _scenario_row(item: Scenario) -> tuple[Any, ...]:
    return (item.name, item.served, item.best_params, item.best_tokens, item.best_compute, item.optimum_compute)


def crossover_table(plan: Plan) -> Table:
    """From how many served tokens on a smaller model at equal loss is cheaper."""
    columns = (
        Column("model", "Model"),
        Column("tokens", "Tokens to equal loss", "token"),
        Column("training", "Training compute", "FLOP"),
        Column("crossover", "Cheaper from", "token", "served tokens from which its life is cheaper"),
    )
    rows = tuple((e.candidate.label, e.tokens, e.training, e.crossover) for e in plan.equal.values())
    out = [c.label for c in plan.candidates if c.key not in plan.equal and c.params.value < plan.optimum.params.value]
    note = f"No number of tokens brings {', '.join(out)} to that loss." if out else ""
    return Table(f"Smaller models at the loss of {plan.optimum.label}", columns, rows, note=note)


def recipe_table(plan: Plan) -> Table:
    """Concrete shapes for the chosen size."""
    cached = "of the prefill of one turn" if plan.product else "of one training sequence"
    columns = [
        Column("style", "Recipe"), Column("layers", "Layers", "1"), Column("d_model", "d_model", "1"),
        Column("ffn", "d_ff"), Column("heads", "Heads/KV"), Column("total", "Parameters", "param"),
        Column("active", "Active", "param", "used by one token"), Column("tokens", "Tokens", "token", "C/(6 active)"),
        Column("loss", "Loss", "nat", f"under {plan.judge.law.name}; no dense law fits a mixture of experts"),
        Column("memory", "Memory per chip", "B", "ZeRO-3 state and one sequence, selective recompute"),
        Column("cache", "KV cache", "B", cached),
    ]  # fmt: skip
    if plan.product:
        columns.append(Column("chips", "One turn", "chip", "chips, its cache included"))
    rows = tuple(_recipe_row(facts) for facts in plan.recipes)
    shape = plan.recipes[0].recipe.shape
    note = f"Vocabulary {shape.vocab:,}, head dimension {shape.head_dim}, gated MLP, untied tables."
    return Table(f"Recipes for {plan.choice.label}", tuple(columns), rows, note=note)


def _recipe_row(facts: RecipeFacts) -> tuple[Any, ...]:
    shape = facts.recipe.shape
    return (
        facts.recipe.style, shape.layers, shape.d_model, _width(shape), f"{shape.heads}/{shape.kv_heads}",
        facts.total, facts.active, facts.tokens, facts.loss, facts.device, facts.cache,
        *([facts.needed.exact] if facts.needed else []),
    )  # fmt: skip


def _width(shape: Any) -> str:
    return f"{shape.experts} x {shape.expert_ff}, top {shape.top_k}" if shape.experts else f"{shape.d_ff}"


def curve_table(plan: Plan) -> Table:
    """Loss over size at this budget, one curve a law: the formula of the memo over an array of sizes."""
    least, middle = float(plan.everyone[-1].params.value), float(plan.optimum.params.value)
    sizes = np.geomspace(min(least, middle / SPAN), middle * SPAN, CURVE)
    params = leaf("curve.params", sizes, "param", "specified", Source("curve", "sizes around the optimum"))
    tokens = tokens_for(plan.cluster.compute, params)
    rows = []
    for best in plan.optima.values():
        if best.loss is not None:
            excess = np.asarray(laws.loss(best.law, params, tokens, "curve.loss").value) - float(best.loss.value)
            rows += [(best.law.slug, float(n), float(e)) for n, e in zip(sizes, excess, strict=True)]
    columns = (
        Column("law", "Law"), Column("params", "Parameters", "param"),
        Column("excess", "Loss above the law's optimum", "nat"),
    )  # fmt: skip
    return Table("Loss above the optimum, by size, at this budget", columns, tuple(rows))


def life_table(plan: Plan) -> Table:
    """Compute over a life for each candidate, over the range of the scenarios."""
    served = [float(s.served.value) for s in plan.scenarios]
    points = np.geomspace(min(served), max(served) if len(served) > 1 else min(served) * 100, 25)
    rows = []
    for item in plan.everyone:
        life = lifetime_compute(item.params, item.tokens, leaf("curve.served", points, "token", "specified"), "curve")
        rows += [(item.label, float(s), float(c)) for s, c in zip(points, np.asarray(life.value), strict=True)]
    columns = (
        Column("model", "Model"), Column("served", "Served tokens", "token"),
        Column("compute", "Compute for life", "FLOP"),
    )  # fmt: skip
    return Table("Compute over a life of serving", columns, tuple(rows))


def chips_table(plan: Plan) -> Table:
    """Chips of one conversation, for the bar chart."""
    assert plan.product is not None
    main = plan.product.main
    rows = tuple((item.label, float(item.needed[main].exact.value)) for item in plan.everyone)
    return Table("Chips of one conversation", (Column("model", "Model"), Column("chips", "Chips", "chip")), rows)


def describe(machine: Cluster) -> str:
    """``1,000 H100-SXM-80GB for 30.0 days``."""
    return f"{machine.chips.value:,} {machine.device.name} for {seconds(float(machine.time.base))}"
