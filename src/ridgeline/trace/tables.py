"""The tables of an analysed run, from which reports and charts are made.

Times are seconds. Long kernel names are cut in the middle; a table that would be too long for a page says how many
rows it leaves out.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ridgeline.core.case import Column, Table
from ridgeline.core.quantity import Quantity, derive
from ridgeline.trace.levels import l0
from ridgeline.trace.levels.families import labels as family_labels
from ridgeline.trace.levels.l0 import LABELS, RankBuckets
from ridgeline.trace.levels.l1 import Collectives
from ridgeline.trace.levels.l2 import Operations
from ridgeline.trace.levels.l3 import StripChart
from ridgeline.trace.levels.l4 import RankSpread
from ridgeline.trace.timeline import PARTS, Timeline, shown_ranks

ROWS, STEP_ROWS, POINTS = 40, 600, 800
MANY_RANKS = 32  # from here on only the buckets of `SHOWN` are quantities of every rank
SHOWN = ("span", "compute", "comm", "overlap", "exposed_comm", "exposed_copy", "idle")
_SUMS: Mapping[str, tuple[str, ...]] = {
    "host_gap": ("gc_gap", "input_gap", "sync_gap"),
    "late_gap": ("launch_gap", "framework_gap", "queue_gap"),
    "idle": l0.GAPS,
}  # fmt: skip


def short(name: str, most: int = 60) -> str:
    """A name of at most that many characters, its end kept: kernels differ there."""
    name = " ".join(name.split())
    head = most * 2 // 3
    return name if len(name) <= most else f"{name[:head]}…{name[-(most - head - 1) :]}"


def rank_quantities(rank: RankBuckets, *, every: bool = True) -> dict[str, Quantity]:
    """``rank0.span``, ``rank0.compute``, ... over the window in seconds; sums and the rest are derived from the others.

    ``every`` False gives those of `SHOWN` alone, all measured.
    """
    measured = l0.quantities(rank)
    if not every:
        return {name: measured[name] for name in SHOWN}
    found = {name: item for name, item in measured.items() if name not in _SUMS}
    for name, parts in _SUMS.items():
        inputs = {part: found[part] for part in parts}
        found[name] = derive(f"{rank.label}.{name}", " + ".join(parts), "s", **inputs).titled(measured[name].label)
    return found


def bucket_table(ranks: Sequence[RankBuckets], marked: int | None, mark: str) -> Table:
    """The mean steady step of every rank by bucket; the marked rank is the one that matters."""
    columns = (
        Column("rank", "Rank"),
        Column("step", "Step", "s", "mean over steady steps"),
        Column("compute", "Compute", "s"),
        Column("exposed_comm", "Comm", "s", "communication that no compute covers"),
        Column("exposed_copy", "Copies", "s", "copies over a link that nothing covers"),
        Column("host_gap", "Host", "s", "input, synchronisation, garbage collection"),
        Column("late_gap", "Launch", "s", "kernels launched or started late: runtime, framework, queue"),
        Column("rest", "Rest", "s", "memsets, copies inside the device, idle of unknown cause"),
        Column("overlap", "Hidden comm", "s", "communication under compute"),
    )
    names = ("span", "compute", "exposed_comm", "exposed_copy", "host_gap", "late_gap")
    shown = _with(shown_ranks(ranks, 64), marked)
    rows = []
    for index in shown:
        rank = ranks[index]
        rest = sum(rank.mean_s(name) for name in ("memset", "other", "unknown_gap"))
        rows.append((rank.label, *(rank.mean_s(name) for name in names), rest, rank.mean_s("overlap")))
    at = shown.index(marked) if marked is not None else None
    left = len(ranks) - len(shown)
    note = "The columns from Compute to Rest sum to the step."
    note += f" {left} ranks near the median left out." if left else ""
    return Table("The mean step of each rank", columns, tuple(rows), at, mark if at is not None else "", note)


def _with(shown: list[int], wanted: int | None) -> list[int]:
    return sorted({*shown, wanted}) if wanted is not None else shown


def whole_table(quantities: Mapping[str, Mapping[str, Quantity]]) -> Table:
    """The whole window of every rank, as quantities."""
    columns = (Column("rank", "Rank"), *(Column(name, LABELS[name], "s") for name in SHOWN))
    rows = tuple((label, *(mine[name] for name in SHOWN)) for label, mine in list(quantities.items())[:64])
    left = len(quantities) - len(rows)
    return Table("The whole window of each rank", columns, rows, note=f"{left} more ranks." if left else "")


def part_table(ranks: Sequence[RankBuckets]) -> Table:
    """A row a rank and part: the data of the bars."""
    columns = (Column("rank", "Rank"), Column("part", "Part"), Column("time", "Mean step", "ms"))
    rows = tuple(
        (ranks[index].label, part, 1e3 * sum(ranks[index].mean_s(name) for name in names))
        for index in shown_ranks(ranks)
        for part, names in PARTS.items()
    )
    note = "Communication and copies are what no compute covers; host is time that the device waits for the host."
    return Table("Parts of the mean step", columns, rows, note=note)


def step_table(ranks: Sequence[RankBuckets]) -> Table:
    """A row a rank and step."""
    names = ("span", "compute", "exposed_comm", "exposed_copy", "memset", "other", "host_gap", "late_gap",
             "unknown_gap", "idle", "overlap")  # fmt: skip
    columns = (
        Column("rank", "Rank"), Column("step", "Step"), Column("status", "Status"),
        *(Column(name, LABELS[name], "s") for name in names),
    )  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for rank in ranks:
        if len(rows) >= STEP_ROWS:
            break
        table = [rank.column(name) * 1e-9 for name in names]
        for i, (number, status) in enumerate(zip(rank.steps.number, rank.steps.status, strict=True)):
            rows.append((rank.label, str(int(number)), status, *(float(column[i]) for column in table)))
    left = sum(len(rank.steps) for rank in ranks) - len(rows[:STEP_ROWS])
    note = "Every column but the last two is part of the step, and they sum to it to the nanosecond."
    return Table("Steps", columns, tuple(rows[:STEP_ROWS]), note=note + (f" {left} rows left out." if left > 0 else ""))


def timeline_table(found: Timeline) -> Table:
    """A row a span, times from the start of the step."""
    columns = (
        Column("rank", "Rank"), Column("start", "Time in the step", "ms"), Column("end", "End", "ms"),
        Column("part", "Part"),
        Column("what", "Longest event"),
    )  # fmt: skip
    rows = tuple((s.lane, s.start * 1e-6, s.end * 1e-6, s.part, short(s.name)) for s in found.spans)
    note = f"Each slice of {found.slice_ns * 1e-6:.3g} ms shows what took most of it."
    return Table(f"Step {found.step}", columns, rows, note=note)


def heat_table(ranks: Sequence[RankBuckets]) -> Table:
    """How far each rank lies from the median rank, by part of the step."""
    table = np.array([[sum(rank.mean_s(name) for name in names) for names in PARTS.values()] for rank in ranks])
    away = table - np.median(table, axis=0)
    columns = (Column("rank", "Rank"), Column("part", "Part"), Column("away", "Above the median rank", "ms"))
    rows = tuple(
        (ranks[index].label, part, 1e3 * float(away[index, j]))
        for index in shown_ranks(ranks, 64)
        for j, part in enumerate(PARTS)
    )
    return Table("Ranks against the median rank, per step", columns, rows)


def collective_table(found: Collectives, link_bytes_per_s: float | None) -> Table:
    """A row a collective, most exposed first."""
    columns: tuple[Column, ...] = (
        Column("what", "Collective"),
        Column("exposed", "Exposed", "s", "per steady step, mean over ranks"),
        Column("wait", "of it wait", "s", "for the rank that arrives last"),
        Column("verdict", "Verdict"),
        Column("last", "Last", "", "the rank that arrives last most often"),
        Column("calls", "Calls", "", "on one rank, whole trace"),
        Column("kernel", "Kernel time", "s", "all calls of a rank, mean over ranks"),
        Column("wire", "Wire", "s", "a call without waiting: the shortest over ranks"),
        Column("skew", "Skew", "s", "largest time between first and last start"),
        Column("bus", "Bus", "B/s", "bytes a chip sends over the wire time"),
        Column("group", "Group"),
    )
    ranks = max(len(found.labels), 1)
    rows: tuple[tuple[Any, ...], ...] = tuple(
        (
            row.title, row.per_step_s, row.wait_per_step_s, found.verdict(row, link_bytes_per_s),
            found.labels[int(np.argmax(row.last))] if row.matched else "not matched",
            int(row.count.max()), float(row.kernel.sum()) * 1e-9 / ranks, row.wire_s, row.skew * 1e-9,
            row.bus_bytes_per_s, short(row.key.group, 30),
        )
        for row in sorted(found.rows, key=lambda row: -row.per_step_s)[:ROWS]
    )  # fmt: skip
    if len({row[-1] for row in rows}) < 2:  # one group says nothing
        columns, rows = columns[:-1], tuple(row[:-1] for row in rows)
    note = "Exposed times sum to the exposed communication of the step."
    note = _left(found.rows) if len(found.rows) > ROWS else note
    return Table("Collectives", columns, rows, note=note)


def _left(rows: Sequence[Any]) -> str:
    return f"{len(rows) - ROWS} more rows, all smaller, left out."


def matrix_table(found: Collectives) -> Table:
    """Exposed time of the largest collectives on every rank, per steady step."""
    calls, ranks = found.instances, len(found.labels)
    cell = calls.row * ranks + calls.rank
    ns = np.bincount(cell, weights=calls.exposed * calls.steady, minlength=len(found.rows) * ranks).reshape(-1, ranks)
    ms = ns * 1e-6 / np.maximum(found.steps, 1)
    chosen = sorted(sorted(range(ranks), key=lambda i: -int(found.blame[i]))[:16])
    largest = [i for i in np.argsort(-ms.sum(axis=1), kind="stable").tolist() if ms[i].sum() > 0][:12]
    rows = [(found.rows[i].title, found.labels[j], float(ms[i, j])) for i in largest for j in chosen]
    columns = (Column("what", "Collective"), Column("rank", "Rank"), Column("exposed", "Exposed", "ms"))
    return Table("Exposed time of each collective on each rank, per step", columns, tuple(rows))


def operation_table(found: Operations) -> Table:
    """A row an operation, longest first."""
    columns = (
        Column("what", "Operation"),
        Column("time", "Time", "s", "per step"),
        Column("share", "Share", "%", "of the device time of all operations"),
        Column("limit", "Limit"),
        Column("of_bound", "Of roofline", "%", "the roofline's lower bound over the time taken"),
        Column("rate", "Rate", "FLOP/s"),
        Column("phase", "Phase"),
        Column("calls", "Calls", "", "all steps"),
        Column("shapes", "Shapes"),
        Column("kernel", "Kernel"),
    )
    whole = max(found.work_ns, 1)
    rows = tuple(
        (
            short(row.label, 48), row.device_ns * 1e-9 / found.steps, 100 * row.device_ns / whole, row.limit,
            _percent(row.efficiency), row.flops_per_s, row.phase, row.calls, short(_shapes(row.shapes), 48),
            short(row.kernel),
        )
        for row in found.rows[:ROWS]
    )  # fmt: skip
    note = _left(found.rows) if len(found.rows) > ROWS else ""
    return Table(f"Operations of {found.rank}", columns, rows, note=note)


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _shapes(shapes: Iterable[tuple[int, ...]]) -> str:
    return " · ".join("×".join(map(str, shape)) for shape in shapes if shape)


def family_table(found: Operations) -> Table:
    """A row a family of kernels."""
    names = family_labels()
    columns = (
        Column("family", "Family"), Column("time", "Time", "s", "per step"), Column("share", "Share", "%"),
        Column("kernels", "Kernels", "", "all steps"), Column("rate", "Rate", "FLOP/s"),
    )  # fmt: skip
    whole = max(found.work_ns, 1)
    rows = tuple(
        (
            names.get(total.family, total.family), total.device_ns * 1e-9 / found.steps,
            100 * total.device_ns / whole, total.kernels,
            total.flops / (total.device_ns * 1e-9) if total.flops and total.device_ns else None,
        )
        for total in found.families
    )  # fmt: skip
    return Table(f"What {found.rank} computes, by family", columns, rows)


def strip_table(found: StripChart) -> Table:
    """Step times; of long logs the longest step of each stretch, so that no stall gets lost."""
    steps, seconds = found.log.step, found.seconds
    chunk = -(-len(steps) // POINTS)
    rows = []
    for low in range(0, len(steps), chunk):
        at = low + int(np.argmax(seconds[low : low + chunk]))
        rows.append((int(steps[at]), float(seconds[at])))
    note = f"Of every {chunk} steps the longest is shown." if chunk > 1 else ""
    columns = (Column("step", "Step"), Column("seconds", "Step time", "s"))
    return Table(f"Step times of {found.label}", columns, tuple(rows), note=note)


def stall_table(found: StripChart) -> Table:
    """How the mean step comes about."""
    columns = (
        Column("part", "Part"), Column("seconds", "Per step", "s"), Column("each", "Each", "s"),
        Column("every", "Every", "", "steps"), Column("times", "Times"), Column("cause", "Cause"),
        Column("evidence", "Evidence"),
    )  # fmt: skip
    rows: list[tuple[Any, ...]] = [("step without stalls", found.typical_s, "", "", "", "", "")]
    rows += [
        ("stall", item.per_step_s, item.each_s, round(item.period, 1), item.occurrences, item.cause, item.evidence)
        for item in found.stalls
    ]
    rows += [
        ("outliers", found.outliers_s, "", "", found.outliers, "", ""),
        ("drift and noise", found.rest_s, "", "", "", "", ""),
        ("mean step", found.mean_s, "", "", "", "", ""),
    ]
    return Table("The mean step, taken apart", columns, tuple(rows), note=" ".join(_sentences(found.notes)))


def _sentences(notes: Iterable[str]) -> list[str]:
    return [note[:1].upper() + note[1:].rstrip(".") + "." for note in notes]


def spread_table(found: RankSpread) -> Table:
    """A row a rank: how late, why, and the state of its device."""
    columns = (
        Column("rank", "Rank"), Column("verdict", "Verdict"),
        Column("cost", "Costs", "s", "per step, all other ranks wait for it"),
        Column("last", "Last", "", "of the matched collectives, how often it came last"),
        Column("own", "Own time", "s", "the step less exposed communication"),
        Column("clock", "Clock", "MHz", "under load"), Column("temp", "Temp", "C"), Column("power", "Power", "W"),
        Column("why", "Why"),
    )  # fmt: skip
    order = sorted(range(len(found.ranks)), key=lambda i: (found.ranks[i].verdict == "even", -found.ranks[i].cost_s))
    kept = sorted(order[:64])
    rows = []
    for rank in (found.ranks[i] for i in kept):
        device = rank.device
        state = (device.clock_mhz, device.temp_c, device.power_w) if device else ("", "", "")
        last = f"{rank.last} of {rank.calls}" if rank.calls else ""
        rows.append((rank.label, rank.verdict, rank.cost_s, last, rank.own_s, *state, rank.reason))
    worst = kept.index(order[0]) if found.ranks[order[0]].verdict != "even" else None
    filled = [i for i in range(len(columns)) if any(row[i] not in ("", None) for row in rows)]
    return Table(
        "Ranks", tuple(columns[i] for i in filled), tuple(tuple(row[i] for i in filled) for row in rows),
        worst, "look here" if worst is not None else "", " ".join(_sentences(found.notes)),
    )  # fmt: skip
