"""``ridgeline plan verify`` as a `Case`: what was compiled, line by line, and what that proves."""

from collections.abc import Sequence
from typing import Any

from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core import plugins
from ridgeline.core.case import Case, Column, InputFile, Section, Table
from ridgeline.core.finding import RuleConfig, run_rules
from ridgeline.plan.job import Plan
from ridgeline.plan.verify.compare import Comparison, Line, compare, total
from ridgeline.plan.verify.compiled import DISABLED, compile_twins
from ridgeline.plan.verify.twin import Twin, twin

FAMILY = "P3"
COLLECTIVES, FLOPS, MEMORY, NAMED = "verify.collectives", "verify.flops", "verify.memory", "verify.named"


def verify(spec: ModelSpec, plan: Plan, *, micro_batches: int = 1) -> Comparison:
    """Compile the twin of a model under a plan and compare. Raises as `twin.twin` and `compile_twins` do."""
    (program,) = compile_twins([twin(spec, plan, micro_batches=micro_batches)])
    return compare(program)


def verify_case(
    facts: Comparison, *, command: str = "", inputs: Sequence[InputFile] = (), config: RuleConfig | None = None
) -> Case:
    """The comparison with its findings (rules P3xx) and its tables."""
    made = facts.program.twin
    case = Case("plan verify", f"Compiled truth: {spelled(made.plan)}", command=command, inputs=list(inputs))
    case.add_findings(run_rules(plugins.rules_of("plan", config), facts, config, family=FAMILY))
    case.add_table(COLLECTIVES, _collectives(facts))
    case.add_table(FLOPS, _flops(facts))
    case.add_table(MEMORY, _memory(facts))
    show = [COLLECTIVES, FLOPS, MEMORY]
    if any(line.named for line in (*facts.collectives, *facts.flops)):
        case.add_table(NAMED, _named(facts))
        show.append(NAMED)
    failed = sum(finding.verdict == "fail" for finding in case.findings)
    agrees = "is the plan's" if not failed else "is not the plan's"
    case.decision = (
        f"The compiled step {agrees}: {len(facts.collectives)} terms of communication, {len(facts.flops)} of FLOPs."
    )
    case.because = _because(facts)
    case.sections = [Section("The twin", _described(made)), Section("Term by term", (_limits(),), tuple(show))]
    return case


def spelled(plan: Plan) -> str:
    """A plan in the form of ``--plan``, what is at its default left out."""
    free = Plan.of().columns
    found = {name: value for name, value in plan.columns.items() if value != free[name]}
    if plan.shard == plan.dp * plan.cp:
        found.pop("shard", None)
    if plan.ep == 1:
        found.pop("etp", None)
    return ",".join(f"{name}={value}" for name, value in found.items()) or "one device"


def _because(facts: Comparison) -> str:
    planned, named, found = total(facts.flops)
    return (
        f"On each device {found:,.0f} FLOPs in dots, where the plan has {planned:,.0f} and {named:+,.0f} are named. "
        "A change of the compiler or of the plan's formulas would change it."
    )


def _described(made: Twin) -> tuple[str, ...]:
    shape = made.shape
    experts = f", {shape.experts} experts of {shape.expert_ff} and top-{shape.top_k}" if shape.experts else ""
    left = f" Left out: {', '.join(made.left_out)}." if made.left_out else ""
    text = (
        f"{shape.name}: {shape.layers} layers of width {shape.d_model}, {shape.heads} heads, {shape.kv_heads} "
        f"key-value heads{experts}, vocabulary {shape.vocab}; {made.sequences} sequences of {made.seq} tokens, "
        f"micro-batches {made.micro_batches}, in fp32 on {made.plan.chips} virtual devices.{left}"
    )
    return (text,)


def _limits() -> str:
    return (
        "It proves that a program with this sharding has these collectives over these ranks, these matmuls and these "
        "arguments. It does not prove that another framework writes the same program, nor any time. Collectives are "
        f"counted as written: the compiler's passes {', '.join(DISABLED)} are off."
    )


def _rows(lines: Sequence[Line]) -> tuple[tuple[Any, ...], ...]:
    return tuple(
        (
            *(part.replace("_", "-" if part == line.key.kind else " ") for part in vars(line.key).values()),
            *(round(n) for n in (line.planned.count, line.expected.count - line.planned.count, line.compiled.count)),
            line.planned.bytes,
            line.compiled.bytes,
            round(100 * line.deviation, 3),
            "" if line.counts_agree else line.seen,
        )
        for line in lines
    )


def _collectives(facts: Comparison) -> Table:
    columns = (
        Column("term", "Term"),
        Column("kind", "Kind"),
        Column("group", "Group", meaning="ranks that take part, by the plan's name"),
        Column("planned", "Planned", "1", "collectives a step on one rank"),
        Column("named", "Named", "1", "what the compiler counts otherwise"),
        Column("compiled", "Compiled", "1", "the same in the program, loops unrolled"),
        Column("planned_bytes", "Planned", "B", "gathered, before scattering, sent to all"),
        Column("compiled_bytes", "Compiled", "B"),
        Column("off", "Off", "%", "after what is named below"),
        Column("remark", "Remark"),
    )
    rows = _rows(facts.collectives)
    note = "" if rows else "One device sends nothing."
    return Table("Collectives of a step", columns, rows, note=note)


def _flops(facts: Comparison) -> Table:
    columns = (
        Column("term", "Term"),
        Column("planned", "Planned", "FLOP", "on one rank, a causal triangle of attention"),
        Column("named", "Named", "FLOP", "what the compiler counts otherwise"),
        Column("compiled", "Compiled", "FLOP", "dots of the program"),
        Column("off", "Off", "%"),
    )
    rows = [
        (line.key.term.replace("_", " "), line.planned.bytes, line.expected.bytes - line.planned.bytes,
         line.compiled.bytes, round(100 * line.deviation, 3))
        for line in facts.flops
    ]  # fmt: skip
    extra = facts.program.cost_flops / max(total(facts.flops)[2], 1.0)
    note = (
        f"XLA's own cost analysis says {extra:.2f} times the dots: it adds every element-wise operation, and counts "
        "the body of a loop over micro-batches once."
    )
    return Table("FLOPs of a step on one device", columns, tuple(rows), note=note)


def _memory(facts: Comparison) -> Table:
    columns = (
        Column("part", "Part"),
        Column("planned", "Planned", "B"),
        Column("compiled", "Compiled", "B"),
    )
    sizes = facts.program.memory
    rows = (
        ("arguments", facts.memory["arguments"], sizes["arguments"]),
        ("temporary", facts.temporary_bytes, sizes["temporary"]),
    )
    parts = ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in facts.memory.items() if name != "arguments")
    note = (
        "Arguments are parameters, moments and tokens; the plan counts norms as split over tp, the program copies "
        f"them. Temporary in the plan: {parts}. Temporary buffers of a CPU program also hold what each unfused "
        "primitive keeps, and every gathered layer."
    )
    return Table("Memory of one device", columns, rows, note=note)


def _named(facts: Comparison) -> Table:
    columns = (
        Column("term", "Term"),
        Column("count", "Collectives", "1"),
        Column("amount", "Amount", meaning="bytes of a collective, FLOPs of a matmul"),
        Column("reason", "Reason"),
    )
    lines = (*facts.collectives, *facts.flops)
    rows = [
        (line.key.term.replace("_", " "), round(item.count), f"{item.amount:+,.0f}", item.reason)
        for line in lines
        for item in line.named
    ]
    return Table("What the compiler counts otherwise", columns, tuple(rows))
