"""A capacity as a `Case`: the decision, the findings, the cache by kind of layer, the memory of a chip, the tiers."""

import math
from collections.abc import Sequence

from ridgeline.arithmetic.kv import KINDS, Row
from ridgeline.core import charts, plugins
from ridgeline.core.case import Case, Chart, Column, InputFile, Section, Table
from ridgeline.core.finding import RuleConfig, Verdict, run_rules
from ridgeline.core.quantity import Quantity, derive, leaf
from ridgeline.serve.capacity.admission import max_sequences
from ridgeline.serve.capacity.capacity import Overfull
from ridgeline.serve.capacity.facts import CapacityFacts
from ridgeline.serve.deployment import Deployment

LAYERS, MEMORY, GAINS, TIERS = "capacity.layers", "capacity.memory", "capacity.gains", "capacity.tiers"
EQUATION, CURVE = "capacity.equation", "capacity.curve"


def capacity_case(
    facts: CapacityFacts,
    *,
    command: str = "",
    inputs: Sequence[InputFile] = (),
    config: RuleConfig | None = None,
) -> Case:
    """Hand over a capacity. Quantities: ``kv.bytes_per_token``, ``kv.bytes_per_request``, ``capacity.sequences``,
    ``capacity.max_context``, ``capacity.sequences_per_gb``, ``tiers.*`` and what they rest on."""
    found = facts.capacity
    case = Case("serve capacity", f"{found.deployment.spec.name} on {described(found.deployment)}", command=command)
    case.inputs = list(inputs)
    case.add(facts.bytes_per_token, facts.bytes_per_request, found.sequences, found.context, found.page, facts.waste,
             facts.worst, facts.fragmentation, facts.per_gb, facts.tokens_per_gb, *facts.copies.values())  # fmt: skip
    case.add(*(q for q in (found.max_context, facts.windowed) if q is not None))
    case.add_findings(run_rules(plugins.rules_of("serve", config), facts, config, family="S0"))
    case.sections = [_memory(case, facts), _cache(case, facts), *_tiers(case, facts), _gains(case, facts),
                     *_curve(case, facts)]  # fmt: skip
    case.decision = "{capacity.sequences} of {request.context} fit at once"
    longest = ", and one alone may grow to {capacity.max_context}" if found.max_context is not None else ""
    case.decision += f"{longest}: a request keeps {{kv.bytes_per_request}} of cache, at {{kv.bytes_per_token}}."
    case.because = (
        "One chip has {chip.free} left for the cache after {chip.weights} of weights; one more gigabyte on every chip "
        "holds {capacity.sequences_per_gb} more."
    )
    return case


def overfull_case(found: Overfull, *, command: str = "", inputs: Sequence[InputFile] = ()) -> Case:
    """Hand over that the weights leave no room: ``kv.*`` of a request all the same, and how many chips would do."""
    title = f"{found.deployment.spec.name} on {described(found.deployment)}"
    case = Case("serve capacity", title, command=command, inputs=list(inputs))
    per_token = found.whole.per_token.named("kv.bytes_per_token")
    short = derive("chip.short", "-1*free", "B", free=found.room.free).titled("Memory that is missing on one chip")
    case.add(per_token, found.whole.per_sequence.named("kv.bytes_per_request"), found.sequences, short)
    terms = sorted(found.room.terms, key=lambda term: -float(term.base))
    sentence = (
        f"No request of {{request.context}} fits: a chip may use {{chip.usable}}, of which "
        f"{str(terms[0].label).lower()} alone take {{{terms[0].name}}}; {{chip.short}} is missing."
    )
    fix = f"Take {found.nearest}, or fewer bits for the weights."
    cites = (found.context, found.room.usable, short, *terms)
    rule = plugins.find_rule("S001")
    case.add_findings([rule.found(Verdict.FAIL, sentence, fix, value=found.sequences, cites=cites)])
    case.decision = (
        "Nothing fits: {chip.short} is missing on one chip before any cache. A request of {request.context} "
    )
    case.decision += "keeps {kv.bytes_per_request} of cache, at {kv.bytes_per_token}."
    case.because = f"Nearest that fits: {found.nearest}."
    columns = (Column("part", "Part"), Column("size", "Size", "GB"))
    rows = tuple((str(term.label), term) for term in (*terms, short))
    case.add_table(MEMORY, Table("What one chip would have to hold", columns, rows))
    case.sections = [Section("What one chip would have to hold", (), (MEMORY,))]
    return case


def described(deployment: Deployment) -> str:
    """``8 x H100 (tp=4, pp=2)``, with the types that are not bf16."""
    sizes = {"tp": deployment.tp, "pp": deployment.pp, "dp_attention": deployment.dp_attention, "ep": deployment.ep}
    words = [f"{name}={value}" for name, value in sizes.items() if value > 1]
    words += [f"{name} {dtype}" for name, dtype in (("weights", deployment.weights), ("cache", deployment.kv))
              if dtype != "bf16"]  # fmt: skip
    return f"{deployment.chips} x {deployment.device.name}" + (f" ({', '.join(words)})" if words else "")


def _memory(case: Case, facts: CapacityFacts) -> Section:
    found = facts.capacity
    reserve = leaf("chip.reserve", float(found.room.memory.base) - float(found.room.usable.base), "B", "specified",
                   note="memory that the engine may not use")  # fmt: skip
    words = ("Weights", "Activations", "Captured graphs", "Outside the framework", "Cache", "Not used")
    terms = (*found.room.terms, found.room.free, reserve)
    rows = tuple(
        ("one chip", word, quantity, _kind(quantity))
        for word, quantity in zip(words, terms, strict=True)
        if quantity is not found.room.graphs or quantity.value
    )
    columns = (Column("chip", "Chip"), Column("part", "Part"), Column("size", "Size", "GB"),
               Column("from", "From", meaning="worked out from the model, or stated"))  # fmt: skip
    case.add_table(
        MEMORY, Table("Where one chip's memory goes", columns, rows, highlight=len(rows) - 2, mark="room for the cache")
    )
    spec = charts.bars(case.tables[MEMORY], "chip", "size", "part")
    title = case.text("{chip.free} of {chip.memory} are left for the cache")
    case.charts[MEMORY] = Chart(title, "One chip's memory by what takes it, stacked.", spec, MEMORY)
    at = f" Stage {found.stage + 1} of {found.deployment.pp} has the least room." if found.deployment.pp > 1 else ""
    graphs = f" {found.room.graphs.note}." if not found.room.graphs.value and found.room.graphs.note else ""
    taken = "" if graphs else "captured graphs "
    text = (
        f"The engine may use {{chip.usable}} of {{chip.memory}}. Weights, the activations of one prefill step, {taken}"
        f"and what no tensor accounts for come first; the cache gets {{chip.free}}.{graphs}{at}"
    )
    return Section("What one chip has left", (text,), (MEMORY,))


def _kind(quantity: Quantity) -> str:
    return "worked out" if quantity.kind == "derived" else quantity.kind


def _cache(case: Case, facts: CapacityFacts) -> Section:
    found = facts.capacity
    columns = (
        Column("layers", "Layers", meaning="kind of layer, and how many"),
        Column("per_token", "Per token", "B/token", "what one token adds before a window is full"),
        Column("request", "Per request", "MB", "at the asked context, over all chips, each byte once"),
        Column("chip", "On one chip", "MB", "the same on one chip, in pages"),
    )
    on_chip = {(row.label, row.what): row.whole for row in found.paged.rows}
    names = layer_names(found.deployment, found.whole.rows)
    rows = tuple(
        (name, row.per_token or 0, row.whole, on_chip.get((row.label, row.what), 0))
        for name, row in zip(names, found.whole.rows, strict=True)
    )
    case.add_table(LAYERS, Table("The cache of one request by kind of layer", columns, rows))
    spec = charts.bars(case.tables[LAYERS], "layers", "request")
    title = case.text("A request of {request.context} keeps {kv.bytes_per_request}")
    case.charts[LAYERS] = Chart(title, "Bytes of cache of one request by kind of layer.", spec, LAYERS)
    text = (
        "A token adds {kv.bytes_per_token} and a request of {request.context} keeps {kv.bytes_per_request}. In pages "
        f"of {{{found.page.name}}} a request of unknown length wastes {{kv.waste.expected}} on a chip, "
        "{kv.waste.worst} at worst."
    )
    case.add_table(EQUATION, _equation(facts))
    return Section("What a request keeps", (text,), (LAYERS,))


def _curve(case: Case, facts: CapacityFacts) -> list[Section]:
    """Requests at once against their length, by the same equation."""
    found = facts.capacity
    longest = float(found.max_context.value) if found.max_context is not None else float(found.context.value)
    top = max(math.ceil(math.log2(max(longest, 1024))), 10)
    groups, rows = found.deployment.dp_attention, []
    for tokens in (2**power for power in range(8, top + 1)):
        fit = groups * max_sequences(found.free_bytes, tokens, found.kinds, found.page_tokens)
        if fit and tokens <= max(longest, float(found.context.value)):
            rows.append((tokens, fit))
    if len(rows) < 2:
        return []
    columns = (Column("tokens", "Tokens of a request", "token", "prompt and answer"),
               Column("sequences", "At once", "request"))  # fmt: skip
    case.add_table(CURVE, Table("Requests at once by length", columns, tuple(rows)))
    look = charts.Look(log_x=True, log_y=True)
    spec = charts.line(case.tables[CURVE], "tokens", "sequences", look=look)
    case.charts[CURVE] = Chart("How many fit falls with their length", "Requests at once against tokens.", spec, CURVE)
    text = "Longer requests leave room for fewer; where windows and states bound part of the cache, not in proportion."
    return [Section("Shorter and longer requests", (text,), (CURVE,))]


def _equation(facts: CapacityFacts) -> Table:
    """The arguments of the equation, for a scheduler that reads the case."""
    columns = (
        Column("kind", "Kind"),
        Column("bytes_per_token", "Bytes per token", "B/token", "of all layers of the kind on one chip"),
        Column("window", "Window", "token", "0: every token is kept"),
        Column("fixed_bytes", "Fixed bytes", "B", "whatever the length"),
    )
    found = facts.capacity
    names = layer_names(found.deployment, found.paged.rows)
    rows = tuple((name, *kind) for name, kind in zip(names, found.kinds, strict=True))
    return Table("The admission equation on one chip: what a scheduler needs", columns, rows)


def layer_names(deployment: Deployment, rows: Sequence[Row]) -> list[str]:
    """``18 windowed layers of 128 tokens`` for each row; where two rows have the same, the later are counted.

    On one chip a row may be of fewer layers: the number is the model's.
    """
    found: list[str] = []
    for row in rows:
        label = row.label.partition(".")[0]
        uses = deployment.spec.uses(int(label.removeprefix("layer"))) if label.startswith("layer") else 1
        what = KINDS[row.what] if uses == 1 else KINDS[row.what].replace("layer", "layers")
        name = f"{uses} {what}" + (f" of {row.window:,} tokens" if row.window else "")
        name += "" if label.startswith("layer") else " (prediction)"
        same = sum(other.partition(", kind ")[0] == name for other in found)
        found.append(f"{name}, kind {same + 1}" if same else name)
    return found


def _tiers(case: Case, facts: CapacityFacts) -> list[Section]:
    if not facts.tiers:
        return []
    columns = (
        Column("tier", "Tier"),
        Column("tokens", "Tokens", "token", "prompt and answer"),
        Column("request", "Per request", "MB", "cache on one chip"),
        Column("sequences", "At once", "request", "beside the other tiers"),
        Column("how", "How"),
    )
    rows = tuple(
        (tier.spec.name, tier.tokens, tier.per_request, tier.sequences, _how(tier.spec.share)) for tier in facts.tiers
    )
    case.add_table(TIERS, Table("How many requests of each tier fit together", columns, rows))
    text = "Guaranteed requests are taken off first; the rest of the room is filled in the ratio of the shares."
    return [Section("The tiers of the product", (text,), (TIERS,))]


def _how(share: float | None) -> str:
    return "guaranteed" if share is None else f"{share:.0%} of the rest"


def _gains(case: Case, facts: CapacityFacts) -> Section:
    columns = (
        Column("change", "Change"),
        Column("sequences", "At once", "request", "requests of the asked context"),
        Column("more", "More", "request", "than as deployed"),
    )
    rows = (("as deployed", facts.capacity.sequences, 0),
            *((gain.what, gain.sequences, gain.more) for gain in facts.gains))  # fmt: skip
    case.add_table(GAINS, Table("What each change buys", columns, rows))
    text = (
        "One more gigabyte on every chip holds {capacity.sequences_per_gb}, or {capacity.tokens_per_gb} of context. "
        "Fewer bits are priced here in room alone; what they cost in speed or quality is another question."
    )
    return Section("What a gigabyte buys", (text,), (GAINS,))
