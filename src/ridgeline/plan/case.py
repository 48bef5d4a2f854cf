"""A plan as a `Case`: the decision, the findings, the tables, the charts, and the prose around them."""

from ridgeline.core import charts, plugins
from ridgeline.core.case import Case, Chart, Section
from ridgeline.core.catalog import constant
from ridgeline.core.finding import RuleConfig, run_rules
from ridgeline.plan import tables
from ridgeline.plan.candidates import fits_need
from ridgeline.plan.plan import Plan, make_plan
from ridgeline.plan.study import Study


def plan_case(study: Study, *, command: str = "", config: RuleConfig | None = None) -> Case:
    """Work out a study and hand over the case. ``config`` selects, ignores and re-thresholds the P rules."""
    return case_of(make_plan(study), command=command, config=config)


def case_of(plan: Plan, *, command: str = "", config: RuleConfig | None = None) -> Case:
    """A plan that has been worked out, as a case."""
    study = plan.study
    case = Case("plan", study.name or tables.describe(plan.cluster), command=command)
    _quantities(case, plan)
    case.add_findings(run_rules(plugins.rules_of("plan", config), plan, config, family="P1"))
    case.sections = [_question(plan), *_sections(case, plan)]
    case.decision, case.because = _decision(plan), _because(plan)
    return case


def _quantities(case: Case, plan: Plan) -> None:
    machine, money = plan.cluster, plan.money
    case.add(machine.compute, machine.mfu, plan.unique_tokens)
    case.add(*(q for q in (money.rent, money.per_1e21, money.energy, money.electricity) if q is not None))
    for item in plan.everyone:
        case.add(*item.all)
    for best in plan.optima.values():
        case.add(best.params, best.tokens, best.tokens_per_param, *([best.loss] if best.loss else []))
    for facts in plan.recipes:
        case.add(*facts.all)
    case.add(*(q for q in (plan.servable, plan.state_share) if q is not None))
    shapes = ("aspect", "ff_ratio", "head_dim", "kv_heads", "tensor_parallel")
    case.add(*(constant(f"recipes.{name}") for name in shapes))  # what the recipes were drawn from
    if plan.study.vocab is None:
        case.add(constant("planning.vocab"))


def _decision(plan: Plan) -> str:
    """The verdict in one sentence."""
    chosen, best = plan.choice, plan.optimum
    head = f"Train {chosen.label} on {{{chosen.tokens.name}}}"
    deciding = next(iter(plan.optima.values())).law.name
    if plan.product is None and plan.deviates:
        return f"{head}: the study's choice, where {best.label} is compute-optimal under {deciding}."
    if plan.product is None:
        return f"{head}: compute-optimal under {deciding}."
    main = plan.product.main
    fits = fits_need(chosen, plan.product)
    turn = (
        f"one conversation takes {{{chosen.needed[main].exact.name}}} of {plan.product.devices[main].name} "
        "within {need.budget}"
    )
    limit = "" if fits else ", where {need.chips_per_conversation} may be used"
    if not plan.deviates:
        return f"{head}: it is compute-optimal, {'and' if fits else 'but'} {turn}{limit}."
    link = ", where" if fits else f"{limit};"
    return f"{head}: {turn}{link} the compute-optimal {best.label} takes {{{best.needed[main].exact.name}}}."


def _because(plan: Plan) -> str:
    """What the decision costs and saves, and what would change it."""
    excess = ", ".join(f"{{{q.name}}} under {slug}" for slug, q in plan.choice.excess.items())
    gives_up = f"It gives up loss ({excess}){_saves(plan)}. " if plan.deviates else ""
    if plan.product is None:
        asked = "No latency was asked for" if plan.scenarios else "Nothing was asked of serving"
        more = "" if plan.scenarios else " or a traffic forecast"
        return f"{gives_up}{asked}: a latency need{more} would change it."
    if not fits_need(plan.choice, plan.product):
        return f"{gives_up}A looser latency budget, or at most {{servable.params}}, would make it a product."
    if not plan.deviates:
        return "A tighter latency budget, or far more served tokens than trained ones, would change it."
    own = plan.optimum.needed[plan.product.main].exact.name
    return f"{gives_up}Allowing {{{own}}} a conversation would change it, and so would a product that needs that loss."


def _saves(plan: Plan) -> str:
    if not plan.scenarios:
        return ""
    life, served = plan.middle.of(plan.choice.key), plan.middle.served.name
    return f" and {life.word} {{{life.difference.name}}} of serving over {{{served}}}" if life.difference else ""


def _question(plan: Plan) -> Section:
    text = plan.study.question or "What should this cluster train, does it fit, what does it cost, can it be served?"
    return Section("The question", (text,))


def _sections(case: Case, plan: Plan) -> list[Section]:
    made = [_budget(case, plan), _size(case, plan), _candidates(case, plan)]
    if plan.scenarios:
        made.append(_life(case, plan))
    return [*made, _recipes(case, plan)]


def _budget(case: Case, plan: Plan) -> Section:
    case.add_table("plan.budget", tables.budget_table(plan))
    price = " and costs {cost.rent} of chip-hours" if plan.money.rent else ""
    power = ", and {energy.training} at the meter" if plan.money.energy else ""
    text = (
        f"{tables.describe(plan.cluster)} at an MFU of {{{plan.cluster.mfu.name}|2}} is {{compute}}{price}{power}. "
        "MFU here is 6ND over the dense peak, without attention scores, over all hours that are paid for."
    )
    return Section("The budget", (text,), ("plan.budget",))


def _size(case: Case, plan: Plan) -> Section:
    case.add_table("plan.laws", tables.law_table(plan))
    case.add_table("plan.curve", tables.curve_table(plan))
    curve = case.tables["plan.curve"]
    marks = [(float(item.params.value), item.label) for item in plan.everyone]
    spec = charts.line(curve, "params", "excess", "law", look=charts.Look(log_x=True, mark_x=marks))
    slug = plan.judge.law.slug
    excess = case.text(f"{{{plan.choice.excess[slug].name}}}")
    title = f"{plan.choice.label} lies {excess} above the optimum of {slug}"
    alt = "Loss above each law's optimum against parameters at the same training compute, with the candidates marked."
    case.charts["plan.curve"] = Chart(title, alt, spec, "plan.curve")
    deciding = next(iter(plan.optima.values())).law.name
    text = (
        f"{deciding} puts the optimum at {{optimum.params}} on {{optimum.tokens}}. The laws below were fitted to other "
        "data, so their sizes are opinions; around each optimum the loss is flat, which is what makes room for a "
        "model that can be served."
    )
    return Section("How large: the published laws side by side", (text,), ("plan.laws", "plan.curve"))


def _candidates(case: Case, plan: Plan) -> Section:
    case.add_table("plan.candidates", tables.candidate_table(plan))
    if plan.product is None:
        text = "The same compute spent on smaller models, each with the tokens it buys."
        return Section("Candidates on this budget", (text,), ("plan.candidates",))
    case.add_table("plan.chips", tables.chips_table(plan))
    limit = float(plan.product.chips_limit.value)
    bars = charts.bars(case.tables["plan.chips"], "model", "chips")
    best = plan.optimum.needed[plan.product.main].exact
    title = case.text(f"One conversation with the compute-optimal model takes {{{best.name}}}; {limit:g} may be used")
    case.charts["plan.chips"] = Chart(title, "Chips that one conversation takes, by model size.", bars, "plan.chips")
    text = (
        "A turn is {need.prefill} of prefill, {need.decode} decoded and {need.overhead} of overhead, to be done in "
        "{need.budget}. Prefill is 2N FLOPs a token at peak and decode one sweep of the weights a token at full "
        "bandwidth: the roofline, so real counts are higher. {servable.params} is the largest model that "
        "{need.chips_per_conversation} can serve."
    )
    return Section("One conversation: which size is a product", (text,), ("plan.candidates", "plan.chips"))


def _life(case: Case, plan: Plan) -> Section:
    case.add_table("plan.lifetime", tables.lifetime_table(plan))
    case.add_table("plan.scenarios", tables.scenario_table(plan))
    case.add_table("plan.life", tables.life_table(plan))
    show = ["plan.life", "plan.scenarios"]
    if plan.equal:
        case.add_table("plan.crossover", tables.crossover_table(plan))
        show.append("plan.crossover")
    look = charts.Look(log_x=True, log_y=True)
    spec = charts.line(case.tables["plan.life"], "served", "compute", "model", look=look)
    title = "Training is paid once; past the trained tokens, serving decides"
    case.charts["plan.life"] = Chart(title, "Lifetime compute against served tokens, by model.", spec, "plan.life")
    return Section("A life of serving", _life_text(plan), (*show, "plan.lifetime"))


def _life_text(plan: Plan) -> tuple[str, ...]:
    same_budget = (
        "Training costs 6N FLOPs a token once, serving 2N for every token served. On the same training budget the "
        "smaller model is cheaper for life and has the higher loss."
    )
    if plan.priced is not None:
        same_budget += (
            " A million served tokens cost {served.price} on {served.size} a token, by the evidence below; other sizes "
            "in proportion."
        )
    crossing = plan.equal.get(plan.choice.key)
    if crossing is None:
        return (same_budget,)
    equal = (
        f"At equal loss the comparison is clean: {plan.choice.label} needs {{{crossing.tokens.name}}} to reach the "
        f"loss of {plan.optimum.label}, and is the cheaper of the two from {{{crossing.crossover.name}}} served on."
    )
    return (same_budget, equal)


def _recipes(case: Case, plan: Plan) -> Section:
    if not plan.recipes:
        return Section(f"Recipes for {plan.choice.label}", tuple(plan.no_shape.splitlines()))
    case.add_table("plan.recipes", tables.recipe_table(plan))
    text = (
        "Shapes close to the chosen size whose sharded dimensions are multiples of the matmul tile: balanced in depth "
        "and width, deeper, and wider."
    )
    mixture = next((f for f in plan.recipes if f.recipe.shape.experts), None)
    if mixture is None:
        return Section(f"Recipes for {plan.choice.label}", (text,), ("plan.recipes",))
    moe = (
        f"The mixture of experts spends the same FLOPs a token and must hold {{{mixture.total.name}}}: "
        f"{{{mixture.weights.name}}} of weights. Its loss is not known: the laws compared here are for dense models."
    )
    return Section(f"Recipes for {plan.choice.label}, dense and mixture", (text, moe), ("plan.recipes",))
