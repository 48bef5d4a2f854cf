"""Compiler text, kernel counters and kernel summaries in a report; and two compilations as a case of their own."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from ridgeline.arithmetic.hlo import HloModule
from ridgeline.arithmetic.hlo_collectives import collectives
from ridgeline.arithmetic.hlo_cost import totals
from ridgeline.core import format as formats
from ridgeline.core.case import Case, Column, InputFile, Section, Table
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.trace.dumps import Dumps
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.hlo_diff import Change, Difference, difference
from ridgeline.trace.kinds import kind_of
from ridgeline.trace.readers.ncu import KernelCounters
from ridgeline.trace.readers.nsys_stats import KernelSummary
from ridgeline.trace.tables import ROWS, short

_NAME = 100  # characters of a name that a table shows
_LOST = {
    "hlo": "compiler text: what is compiled, not how long it takes; a trace of the same binary says that",
    "sums": "kernel summary: sums have no order, so nothing is known of gaps, overlap or steps: "
    "nsys export --type sqlite REPORT.nsys-rep",
    "ncu": "kernel counters: single launches, without what lies between them; a trace says what they are worth",
}


def dump_decision(case: Case, found: Dumps | None) -> str:
    """What the dumps say where there is nothing else; empty without any."""
    if found is None:
        return ""
    said = []
    if found.sums:
        said.append(_summed(case, found.sums[0]))
    if found.hlo:
        said.append(_compiled(case, _largest(found.hlo)))
    if found.ncu:
        waits = sum(kernel.bound() == "latency bound" for kernel in found.ncu)
        many = formats.count(len(found.ncu), "profiled kernel")
        said.append(f"Neither compute nor memory is busy in {waits:,} of {many}.")
    return " ".join(said)


def dump_lost(found: Dumps | None) -> Iterator[str]:
    """What dumps alone cannot say."""
    for part, text in _LOST.items():
        if found is not None and getattr(found, part):
            yield text


def dump_sections(case: Case, facts: TraceFacts) -> Iterator[Section]:
    """The tables of the dumps."""
    found = facts.dumps
    if found is None:
        return
    made: dict[str, Table] = {}
    for number, summary in enumerate(found.sums):
        made[f"dumps.kernels.{number}" if number else "dumps.kernels"] = _kernel_table(summary)
    if found.hlo:
        made |= {"dumps.modules": _module_table(found.hlo), "dumps.collectives": _collective_table(found.hlo)}
    if found.ncu:
        made["dumps.counters"] = _counter_table(found.ncu)
    shown = {name: table for name, table in made.items() if table.rows}
    for name, table in shown.items():
        case.add_table(name, table)
    if shown:
        text = "Figures of one call of a module and one device; sums over kernels count overlapping ones twice."
        yield Section("Beside the trace" if facts.run else "What the files hold", (text,), tuple(shown))


def _largest(modules: tuple[HloModule, ...]) -> HloModule:
    return max(modules, key=lambda module: totals(module).flops)


def _summed(case: Case, summary: KernelSummary) -> str:
    first = summary.kernels[0]
    source = Source(summary.path, formats.count(len(summary.kernels), "kernel"))
    total = leaf("kernels.total", summary.total_ns * 1e-9, "s", "measured", source).titled("Time of all kernels")
    mine = leaf("kernels.first", first.total_ns * 1e-9, "s", "measured", source).titled("Time of the longest kernel")
    share = derive("kernels.first.share", "first/total", "%", first=mine, total=total)
    case.add(total, mine, share.titled("Share of the longest kernel"))
    name, runs = formats.parenthesised(short(first.name)), formats.count(first.instances, "run")
    return f"{{kernels.first.share}} of {{kernels.total}} in kernels is {name}, in {runs}."


def _compiled(case: Case, module: HloModule) -> str:
    sums, calls = totals(module), collectives(module)
    source = Source(module.path or "the HLO", "from shapes, per call and device")
    flops = leaf("hlo.call_flops", float(sums.flops), "FLOP", "measured", source).titled("Matmul FLOPs of a call")
    size = float(sum(call.size_bytes * call.runs for call in calls))
    moved = leaf("hlo.call_bytes", size, "B", "measured", source).titled("Bytes in collectives of a call")
    again = leaf("hlo.call_again", float(sums.recomputed_flops), "FLOP", "measured", source).titled("Recomputed FLOPs")
    case.add(flops, moved, again)
    many = formats.count(sum(call.runs for call in calls), "collective")
    return (
        f"A call of {formats.parenthesised(short(module.name))} computes {{hlo.call_flops}} in matmuls on each device, "
        f"{{hlo.call_again}} of it again, and moves {{hlo.call_bytes}} in {many}."
    )


def _kernel_table(summary: KernelSummary) -> Table:
    columns = (
        Column("kernel", "Kernel"), Column("kind", "Kind"), Column("share", "Share", "%"), Column("total", "Time", "s"),
        Column("launches", "Launches"), Column("mean", "Mean", "s"), Column("most", "Longest", "s"),
    )  # fmt: skip
    rows = tuple(
        (
            short(k.name, _NAME), kind_of(k.name)[0].name.lower(), 100 * summary.share(k), k.total_ns * 1e-9,
            k.instances, k.mean_ns * 1e-9, None if k.max_ns != k.max_ns else k.max_ns * 1e-9,
        )
        for k in summary.kernels[:ROWS]
    )  # fmt: skip
    return Table("Kernels, longest first", columns, rows, note=_more(len(summary.kernels)))


def _more(count: int) -> str:
    return f"{count - ROWS:,} more are left out." if count > ROWS else ""


def _module_table(modules: tuple[HloModule, ...]) -> Table:
    columns = (
        Column("module", "Module"), Column("instructions", "Instructions"), Column("fusions", "Fusions"),
        Column("flops", "Matmuls", "FLOP"), Column("again", "Recomputed", "FLOP"), Column("file", "File"),
    )  # fmt: skip
    rows = []
    for module in modules[:ROWS]:
        sums, fusions = totals(module), sum(item.opcode == "fusion" for item in module)
        count = sum(1 for _ in module)
        rows.append(
            (module.name, count, fusions, float(sums.flops), float(sums.recomputed_flops), Path(module.path).name)
        )
    return Table("Compiled modules", columns, tuple(rows), note=_more(len(modules)))


def _collective_table(modules: tuple[HloModule, ...]) -> Table:
    columns = (
        Column("module", "Module"), Column("kind", "Collective"), Column("group", "Over", "chip"),
        Column("calls", "Calls", "", "per call of the module"), Column("bytes", "Bytes", "B", "of all calls"),
        Column("plain", "Not asynchronous"),
    )  # fmt: skip
    sums: dict[tuple[str, str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for module in modules:
        for call in collectives(module):
            row = sums[module.name, call.kind.replace("_", "-"), call.group or 0]
            plain = 0 if call.asynchronous else call.runs
            row[:] = [row[0] + call.runs, row[1] + call.runs * call.size_bytes, row[2] + plain]
    ordered = sorted(sums.items(), key=lambda item: -item[1][1])
    rows = tuple((name, kind, group or None, *row) for (name, kind, group), row in ordered[:ROWS])
    return Table("Collectives of the modules", columns, rows, note=_more(len(sums)))


def _counter_table(kernels: tuple[KernelCounters, ...]) -> Table:
    columns = (
        Column("kernel", "Kernel"), Column("time", "Time", "s"), Column("bound", "Limit"),
        Column("compute", "Compute", "%", "of its speed of light"), Column("memory", "Memory", "%"),
        Column("occupancy", "Occupancy", "%"), Column("waves", "Waves"),
    )  # fmt: skip
    ordered = sorted(kernels, key=lambda kernel: -(kernel.duration_ns or 0))
    rows = tuple(
        (
            short(k.kernel, _NAME), None if k.duration_ns is None else k.duration_ns * 1e-9, k.bound(), k.sm_percent,
            k.memory_percent, k.achieved_occupancy_percent, k.waves_per_sm,
        )
        for k in ordered[:ROWS]
    )  # fmt: skip
    return Table("Profiled launches, longest first", columns, rows, note=_more(len(kernels)))


def hlo_case(before: Dumps, after: Dumps, names: tuple[str, str], command: str = "") -> Case:
    """What a second compilation of a step fuses, splits, recomputes and communicates otherwise.

    Of several modules on a side the one with most FLOPs is compared.
    """
    first, second = _largest(before.hlo), _largest(after.hlo)
    found = difference(first, second)
    case = Case("trace", f"{names[0]} against {names[1]}", command=command)
    case.inputs = [InputFile.of(module.path) for module in (first, second) if Path(module.path).is_file()]
    case.add(*_sizes(found, names))
    case.add_table("hlo.totals", _total_table(case, found, names))
    case.add_table("hlo.changes", _change_table(found))
    again = "as much is recomputed"
    if found.recomputed_flops[0] != found.recomputed_flops[1]:
        again = "recomputation goes from {hlo.before.again} to {hlo.after.again}"
    kinds = formats.count(len(found.collectives), "collective")
    fused = formats.count(len(found.fused), "pair")
    case.decision = f"The second compilation fuses {fused} of operations and splits {len(found.split):,}; {again}; "
    case.decision += f"{kinds} differ."
    case.because = "Work is matched by what the framework calls it. A trace of both says what the change is worth."
    text = "Pairs of operations count as fused where they share a fusion only in the second module."
    case.sections = [Section("What the second compilation does otherwise", (text,), ("hlo.totals", "hlo.changes"))]
    case.lost = [f"{loss.what}: {loss.count:,}" for side in (before, after) for loss in side.lost]
    return case


def _sizes(found: Difference, names: tuple[str, str]) -> Iterator[Quantity]:
    for at, (side, name) in enumerate(zip(("before", "after"), names, strict=True)):
        source = Source(name, "from shapes, per call and device")
        flops = leaf(f"hlo.{side}.flops", float(found.flops[at]), "FLOP", "measured", source)
        yield flops.titled(f"Matmul FLOPs, {name}")
        again = leaf(f"hlo.{side}.again", float(found.recomputed_flops[at]), "FLOP", "measured", source)
        yield again.titled(f"Recomputed FLOPs, {name}")


def _total_table(case: Case, found: Difference, names: tuple[str, str]) -> Table:
    columns = (
        Column("module", "Compilation"), Column("flops", "Matmuls", "FLOP"), Column("again", "Recomputed", "FLOP"),
        Column("fusions", "Fusions"),
    )  # fmt: skip
    rows = tuple(
        (name, case.quantities[f"hlo.{side}.flops"], case.quantities[f"hlo.{side}.again"], fusions)
        for side, name, fusions in zip(("before", "after"), names, found.fusions, strict=True)
    )
    return Table("Both compilations, one call and one device", columns, rows)


def _change_table(found: Difference) -> Table:
    columns = (
        Column("change", "Change"), Column("what", "Operation"), Column("opcode", "Opcode or partner"),
        Column("before", "Before"), Column("after", "After"),
    )  # fmt: skip
    listed: dict[str, tuple[Change, ...]] = {
        "collective": found.collectives, "recomputed now": found.rematted, "kept now": found.kept,
        "added": found.added, "removed": found.removed,
    }  # fmt: skip
    rows: list[tuple[object, ...]] = [
        (kind, short(c.op_name, _NAME), c.opcode, c.before, c.after) for kind, items in listed.items() for c in items
    ]
    for kind, pairs in (("fused", found.fused), ("split", found.split)):
        rows += [(kind, short(a, _NAME), short(b, _NAME), None, None) for a, b in pairs]
    return Table("Change by change", columns, tuple(rows[: 5 * ROWS]), note=_left(rows))


def _left(rows: list[tuple[object, ...]]) -> str:
    return f"{len(rows) - 5 * ROWS:,} more are left out." if len(rows) > 5 * ROWS else ""
