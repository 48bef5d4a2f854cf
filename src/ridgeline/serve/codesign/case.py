"""A co-design as a `Case`: the choice or the nearest miss, the front, what each freedom buys, other laws."""

from collections.abc import Sequence

from ridgeline.core import charts, plugins
from ridgeline.core.case import Case, Chart, InputFile, Section
from ridgeline.core.finding import RuleConfig, run_rules
from ridgeline.core.format import show
from ridgeline.serve.codesign import tables
from ridgeline.serve.codesign.evaluate import NAMES, Configuration
from ridgeline.serve.codesign.facts import Designed
from ridgeline.serve.codesign.measured import shares
from ridgeline.serve.codesign.need import Need

FRONT, BOUGHT, LAWS, LIMITS, MAP = (f"codesign.{name}" for name in ("front", "bought", "laws", "limits", "map"))


def codesign_case(
    facts: Designed, *, command: str = "", inputs: Sequence[InputFile] = (), config: RuleConfig | None = None
) -> Case:
    """Hand over a co-design.

    Quantities of the choice: ``params.total``, ``params.active``, ``budget.tokens``, ``codesign.loss``, ``.excess`` and
    ``.worth``, ``latency.tpot``, ``latency.ttft``, ``turn.total`` where a turn was asked for, and
    ``serve.dollars_per_million_tokens``. Without a choice there are none of these.
    """
    need = facts.need
    title = f"What {show(need.compute)} trains that {show(need.chips)} of {need.device.name} serve: {_load(need)}"
    case = Case("serve codesign", title, command=command, inputs=list(inputs))
    case.add(need.compute, need.chips, need.prompt, need.output, *need.limits.values())
    case.add(facts.optimum.params, facts.optimum.tokens)
    if facts.winner is not None:
        _winner(case, facts, facts.winner)
    case.add_findings(run_rules(plugins.rules_of("serve", config), facts, config, family="S5"))
    case.sections = [_limits(case, facts), *_answers(case, facts)]
    case.decision, case.because = _decision(facts), _because(facts)
    return case


def _load(need: Need) -> str:
    """``8,192 tokens in and 128 out, at a batch of 1, a turn within 1.00 s``."""
    sizes = [f"{batch:,}" for batch in need.batches]
    most = f"batches of {', '.join(sizes[:-1])} or {sizes[-1]}" if sizes[1:] else f"a batch of {sizes[0]}"
    limits = " and ".join(f"{NAMES[name]} within {show(limit)}" for name, limit in need.limits.items())
    return f"{need.prompt.value:,} tokens in and {need.output.value:,} out, at {most}, {limits}"


def _winner(case: Case, facts: Designed, one: Configuration) -> None:
    """The choice with the stable names. The roofline's figures keep theirs apart."""
    case.add(*(one.figure(name) for name in ("total", "active", "tokens", "effective", "tpot", "prefill")))
    case.add(facts.loss, facts.excess, facts.gained, facts.worth)
    seen = facts.walk.measured
    if seen is not None:
        case.add(*seen.latency.all, *([seen.turn] if seen.turn else []))
    elif facts.need.price is not None:
        case.add(one.figure("price").named("serve.dollars_per_million_tokens"))


def _decision(facts: Designed) -> str:
    if facts.winner is None:
        one, used = facts.nearest_one, facts.nearest
        worst = max(used, key=lambda name: used[name])
        return (
            f"None does: of {facts.space.size:,} configurations none keeps every limit on {{need.chips}}. "
            f"Nearest is {one.label}, where {NAMES[worst]} takes {100 * used[worst]:.0f}% of what is allowed."
        )
    one = facts.winner
    mixed = " ({params.active} a token)" if one.group.frame.mixture else ""
    return (
        f"Train {one.shape}: {{params.total}}{mixed} on {{budget.tokens}}, served in {one.types}. "
        f"{_time_words(facts)}; the loss is {facts.against} the compute-optimal dense model's."
    )


def _time_words(facts: Designed) -> str:
    names = facts.need.limits
    if facts.walk.measured is None:
        return "By the roofline every limit is kept"
    parts = []
    if "turn" in names:
        parts.append("a turn takes {turn.total} of {need.turn}")
    parts += [f"{title} is {{latency.{n}}} of {{need.{n}}}" for n, title in (("ttft", "TTFT"), ("tpot", "TPOT"))
              if n in names]  # fmt: skip
    if "price" in names:
        parts.append("output tokens cost {serve.dollars_per_million_tokens} of {need.price}")
    text = ", ".join(parts)
    return text[0].upper() + text[1:]


def _because(facts: Designed) -> str:
    if facts.winner is None:
        used = shares(facts.nearest, NAMES)
        return f"Used up there: {used}. A longer limit, more chips, or a smaller grid would change it."
    plain = facts.bought[0].walk.winner
    if plain is None:
        return "A dense model in 16 bits with grouped-query attention does not meet the limits at any size."
    won = float(plain.group.loss[plain.index]) - float(facts.loss.value)
    size = show(plain.figure("active"))
    if won <= 0:
        return f"The plain design does as well: {size}, dense, 16 bits. A looser limit would change it."
    return (
        f"Dense in 16 bits the same limits allow {size} and {won:.3f} nat more loss: mixture and narrow types buy that "
        "back, on the word of one law and of no gate. A looser limit, or a gate that fails, would change it."
    )


def _limits(case: Case, facts: Designed) -> Section:
    case.add_table(LIMITS, tables.limits_table(facts))
    case.add_table(MAP, tables.map_table(facts))
    name, title, unit = facts.clock
    limit = facts.need.limits.get("ttft" if name == "prefill" else name)
    marks = () if limit is None else ((float(limit.to(unit)), "limit"),)
    spec = charts.line(case.tables[MAP], "loss", "time", "kind", look=charts.Look(log_y=True, mark_y=marks))
    case.charts[MAP] = Chart(
        f"{title} against loss: what lies above the limit cannot be had" if marks else f"{title} against loss",
        "The least time by the roofline for each loss, a curve for each kind of model, and the limit.", spec, MAP,
    )  # fmt: skip
    how = (
        f"{facts.space.size:,} configurations went through the formulas of one model; {facts.space.feasible:,} keep "
        f"every limit by the roofline, which no engine beats, and {facts.walk.asked:,} of those were then put together "
        "from measured operations until one kept them in earnest."
    )
    blind = f"The step model was not asked: {facts.blind} The roofline stands alone, and real times are longer."
    return Section("The limits", (how, *((blind,) if facts.blind else ())), (LIMITS, MAP))


def _answers(case: Case, facts: Designed) -> list[Section]:
    if facts.winner is None:
        return []
    case.add_table(FRONT, tables.front_table(facts))
    case.add_table(BOUGHT, tables.bought_table(facts))
    case.add_table(LAWS, tables.laws_table(facts))
    x = "price" if facts.need.price is not None else "tpot"
    spec = charts.points(case.tables[FRONT], x, "loss", "model", look=charts.Look(log_x=True))
    case.charts[FRONT] = Chart(
        "Less loss costs more: no configuration here is beaten in loss, TPOT and price at once",
        "Loss against the price of output tokens for the members of the front.", spec, FRONT,
    )  # fmt: skip
    front = (
        "All train on the same compute, so a smaller model sees more tokens. Losses within {codesign.tie} of the least "
        "count as the same; among them 16 bits, more key-value heads and a balanced shape win: no law sees these."
    )
    case.add(tables.tie())
    bought = (
        "Each row allows one thing more than a dense model with grouped-query attention in 16 bits. What narrow types "
        "and latent attention cost in loss is in no law here: their rows are bounds until a gate has measured it."
    )
    laws = (
        "The absolute losses of laws do not compare; the designs that they choose do. A mixture is ranked as the dense "
        f"model that {facts.need.joint.name} gives the same loss, with experts over top-k as its number of experts."
    )
    return [
        Section("The front", (front,), (FRONT,)),
        Section("What each freedom buys back", (bought,), (BOUGHT,)),
        Section("Other laws", (laws,), (LAWS,)),
    ]
