"""A latency as a `Case`: the decision, findings, the waterfall of a step, and the operations on the roofline."""

from collections.abc import Sequence

from ridgeline.arithmetic.roofline import Rates, ridge_point
from ridgeline.core import charts, plugins
from ridgeline.core.case import Case, Chart, Column, InputFile, Section, Table
from ridgeline.core.finding import RuleConfig, run_rules
from ridgeline.core.format import seconds
from ridgeline.serve.steps.facts import LatencyFacts
from ridgeline.serve.steps.load import step_model
from ridgeline.serve.steps.quantities import known_bandwidth, known_peak, served

STEP, ROOF, CHECK = "latency.waterfall", "latency.roofline", "latency.check"
_RATE = "TFLOP/s/chip"
LABELS = {
    "dense": "Dense matmuls and element-wise kernels", "attention": "Attention and states",
    "experts": "Routed experts", "head": "Head and sampler", "tensor_parallel": "All-reduces",
    "expert_exchange": "Exchange with the experts", "interference": "Prompts of other requests",
    "step": "Engine, a step", "sequence": "Engine, a sequence", "layer": "Launches, a layer",
}  # fmt: skip


def latency_case(
    facts: LatencyFacts, *, command: str = "", inputs: Sequence[InputFile] = (), config: RuleConfig | None = None
) -> Case:
    """Hand over a latency. Quantities: ``latency.tpot``, ``latency.ttft`` and their 80% ends, ``latency.floor``,
    ``serve.tokens_per_s``, ``serve.mbu``, ``serve.mfu``, dollars and joules per million tokens."""
    laid = facts.deployment
    row, at_once = facts.load.row, f"{facts.load.sequences:,.0f} requests at once"
    lengths = f"{row.prompt:,.0f} tokens of prompt and {row.answer:,.0f} of answer"
    title = f"{laid.spec.name} on {laid.chips} x {laid.device.name}, {at_once}, {lengths}"
    case = Case("serve latency", title, command=command, inputs=list(inputs))
    case.add(*served(laid.spec, row.prompt, row.answer))
    case.add(facts.tpot, facts.ttft, facts.tokens_per_s, facts.mbu, facts.mfu, facts.floor)
    case.add(*(end for pair in facts.ends.values() for end in pair))
    case.add(*(item for item in (facts.dollars, facts.joules, facts.power) if item is not None))
    case.add_findings(run_rules(plugins.rules_of("serve", config), facts, config, family="S1"))
    case.sections = [_waterfall(case, facts), _roofline(case, facts), *_check(case, facts)]
    case.decision = (
        "TPOT is {latency.tpot} ({latency.tpot.low80} to {latency.tpot.high80}) and TTFT {latency.ttft} "
        "({latency.ttft.low80} to {latency.ttft.high80}): {serve.tokens_per_s} written, MBU {serve.mbu}, "
        "MFU {serve.mfu}."
    )
    costs = [f"{{{item.name}}}" for item in (facts.dollars, facts.joules) if item is not None]
    case.because = (
        "Intervals hold 80% of published rows whose whole group was held out. No software beats {latency.floor} "
        f"on these chips.{' Written tokens cost ' + ' and '.join(costs) + ', prompts included.' if costs else ''}"
    )
    if facts.calibration is not None:
        case.because += f" {facts.calibration.rows} measured rows set the level."
    return case


def _waterfall(case: Case, facts: LatencyFacts) -> Section:
    rows, reached = [], 0.0
    for name, term in sorted(facts.terms.items(), key=lambda item: -float(item[1].value)):
        size = float(term.value) * 1e3
        kind = "host" if name in ("step", "sequence", "layer") else "compute"
        rows.append((LABELS[name], reached, reached + size, kind, seconds(float(term.value)), term))
        reached += size
    columns = (
        Column("what", "What"), Column("low", "From", "ms"), Column("high", "To", "ms"), Column("kind", "Activity"),
        Column("text", "Takes"), Column("seconds", "Time", "s"),
    )  # fmt: skip
    case.add_table(STEP, Table("Where the time of a token goes", columns, tuple(rows)))
    spec = charts.waterfall(case.tables[STEP], "what", "low", "high", "kind", "text")
    title = case.text(f"Most of {{latency.tpot}}: {rows[0][0][0].lower()}{rows[0][0][1:]}")
    case.charts[STEP] = Chart(title, "Waterfall of one decode step by what the time is for.", spec, STEP)
    text = (
        "Kernel times are looked up in measured surfaces, each kind times a constant fitted to published rows; the "
        "shares are those of the fitted terms, scaled to the expected time."
    )
    return Section("Where a token's time goes", (text,), (STEP,))


def _roofline(case: Case, facts: LatencyFacts) -> Section:
    model = step_model(facts.deployment)
    rates = Rates(known_peak(model), known_bandwidth(model))
    ridge = ridge_point(rates)
    case.add(ridge)
    scale = float(rates.peak.base) / float(rates.peak.to(_RATE))
    peak, bandwidth = float(rates.peak.to(_RATE)), float(rates.bandwidth.base) / scale
    batch, prompt = max(facts.load.sequences, 1.0), facts.load.row.prompt
    found = {
        "decode of one sequence": model.decode(1, facts.load.row.context),
        f"decode of {batch:,.0f}": model.decode(batch, facts.load.row.context),
        "prefill of a prompt": model.prefill(prompt),
    }
    rows: list[tuple[float, float, str, str]] = []
    for what, times in found.items():
        work = float(times.flops[0]) / float(times.bytes[0])
        reached = float(times.flops[0]) / float(times.seconds[0]) / facts.deployment.chips / scale
        rows.append((work, reached, what, "run"))
    top, low = max([*(row[0] for row in rows), float(ridge.base)]) * 20, min(row[0] for row in rows) / 2
    line = [low, float(ridge.base), top]
    rows += [(x, y, what, "fit") for x, y, what, _ in rows]  # a line of one point, which gets its name
    rows += [(x, min(peak, x * bandwidth), "roof", "fit") for x in line]
    columns = (
        Column("intensity", "Intensity", "FLOP/B"), Column("rate", "Rate", _RATE), Column("what", "What"),
        Column("role", "Role"),
    )  # fmt: skip
    case.add_table(ROOF, Table("Operations under the roof of a chip", columns, tuple(rows)))
    look = charts.Look(log_x=True, log_y=True)
    spec = charts.curves(case.tables[ROOF], "intensity", "rate", "what", "role", look=look)
    case.charts[ROOF] = Chart("Decoding sits on the slope, prefill under the flat roof", "Roofline of one chip with "
                              "decode and prefill placed by their FLOP per byte.", spec, ROOF)  # fmt: skip
    text = "The roof bends at {roofline.ridge}: left of it memory binds, right of it arithmetic."
    return Section("Under the roof", (text,), (ROOF,))


def _check(case: Case, facts: LatencyFacts) -> list[Section]:
    if not facts.checks:
        return []
    rows = tuple(
        (name.upper(), len(check.calibrated), *(100 * float(sorted(side)[len(side) // 2]) for side in
                                                (check.before, check.calibrated)))
        for name, check in facts.checks.items()
    )  # fmt: skip
    columns = (Column("what", "What"), Column("rows", "Rows"), Column("before", "Median error before", "%"),
               Column("after", "With the other rows", "%"))  # fmt: skip
    case.add_table(CHECK, Table("Each measured row, from the others", columns, rows))
    text = "Every measured row was predicted with the level that the other rows set, and without any."
    return [Section("Your rows", (text,), (CHECK,))]
