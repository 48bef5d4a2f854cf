"""The tables of a search, from which its report and charts are made. Plain numbers: a row is an estimate of a plan."""

from collections.abc import Sequence

import numpy as np

from ridgeline.arithmetic.conventions import compare
from ridgeline.arithmetic.pairs import Batch
from ridgeline.core import units
from ridgeline.core.case import Column, Table
from ridgeline.plan.layouts import explain
from ridgeline.plan.layouts.finalists import Exact
from ridgeline.plan.layouts.portable import Portable
from ridgeline.plan.layouts.ranking import Ranked, Ranking
from ridgeline.plan.layouts.scan import Scan
from ridgeline.plan.layouts.search import Found, short
from ridgeline.plan.steps import fits

OPS = 600  # bars of a timeline
_GB = units.parse("GB")[0]
_SLOWEST = 2.0  # times the fastest step: what is slower is no alternative
_LEGEND = (
    "pp2x8: 8 model chunks a stage; b: micro-batch; z1/8: ZeRO-1 over 8 ranks; sp: sequence parallel; rc: recompute"
)
_VERDICTS = {"indistinguishable": "alike"}
_GFLOP = units.parse("GFLOP")[0]
_KINDS = {"F": "forward", "B": "backward", "W": "weight gradients"}


def top_table(ranking: Ranking) -> Table:
    """The best plan of every mesh, with intervals."""
    columns = (
        Column("rank", "#"),
        Column("plan", "Plan", meaning=_LEGEND),
        Column("step", "Step", "s", "expected"),
        Column("low", "from", "s", "lower end of the 80% interval"),
        Column("high", "to", "s", "upper end of the 80% interval"),
        Column("mfu", "MFU", "%", "megatron-lm convention"),
        Column("free", "Free", "GB", "memory left on the fullest chip"),
        Column("verdict", "Verdict"),
        Column("exact", "Simulated", "s", "schedule run event by event, layers split by cost"),
    )
    rows = tuple(_top_row(item, rank) for rank, item in enumerate(ranking.ranked, 1))
    note = (
        "Alike: the 80% interval overlaps that of the fastest. Such plans share most of the model's "
        "error, so a short run of two of them tells more than the ranking."
    )
    return Table("The best plan of every mesh", columns, rows, highlight=0, mark="fastest", note=note)


def _top_row(item: Ranked, rank: int) -> tuple[object, ...]:
    exact_s = item.exact.step_s if item.exact is not None else None
    return (
        rank, short(item.plan), _digits(item.step_s), _digits(item.low_s), _digits(item.high_s),
        _digits(100 * item.mfu), _digits(item.free_bytes / _GB), _VERDICTS.get(item.verdict, item.verdict),
        _digits(exact_s) if exact_s is not None else "",
    )  # fmt: skip


def why_table(found: Found, best: int, other: int) -> Table:
    """Two plans term by term; the differences add up to that of their steps."""
    columns = (
        Column("term", "Term"),
        Column("best", "Fastest", "s"),
        Column("other", "Runner-up", "s"),
        Column("more", "Difference", "s"),
    )
    parts = explain.differences(found.steps, best, other)
    rows: list[tuple[object, ...]] = [
        (p.words, _digits(p.best_s), _digits(p.other_s), _digits(p.more_s)) for p in parts if p.best_s or p.other_s
    ]
    steps = found.steps.step_s
    total = (float(steps[best]), float(steps[other]))
    rows.append(("step", *map(_digits, total), _digits(total[1] - total[0])))
    return Table("Why the runner-up lost", columns, tuple(rows), highlight=len(rows) - 1, mark="sum")


def terms_table(ranking: Ranking) -> Table:
    """Where the step of the first plans goes, by activity: the stacked bars."""
    columns = (Column("plan", "Plan"), Column("activity", "Activity"), Column("seconds", "Time", "s"))
    rows: list[tuple[object, ...]] = []
    for rank, item in enumerate(ranking.ranked, 1):
        sums = dict.fromkeys(("compute", "communication", "host", "idle"), 0.0)
        for name, values in ranking.found.steps.terms.items():
            sums[explain.activity(name)] += float(values[item.row])
        rows += [(f"#{rank}", name, _digits(value)) for name, value in sums.items()]
    return Table("Where the step goes", columns, tuple(rows))


def front_table(found: Found) -> Table:
    """The Pareto front of step time, headroom and simplicity, as far as twice the fastest step."""
    columns = (
        Column("plan", "Plan"),
        Column("step", "Step", "s"),
        Column("headroom", "Headroom", "%", "share of memory left free on the fullest chip"),
        Column("knobs", "Knobs", meaning="parallel axes above one, and switches turned on"),
    )
    knobs, headroom, step_s = found.knobs, found.headroom, found.steps.step_s
    rows_shown = [row for row in found.front.tolist() if step_s[row] <= _SLOWEST * step_s[0]]
    rows = tuple(
        (short(found.layouts.row(row)), _digits(float(step_s[row])), _digits(100 * float(headroom[row])),
         int(knobs[row]))
        for row in rows_shown
    )  # fmt: skip
    return Table("None of these is beaten in time, headroom and simplicity at once", columns, rows)


def memory_table(found: Found, row: int) -> Table:
    """What the fullest chip of one plan holds, by part."""
    request = found.request
    held = fits.held(request.spec, request.batch, found.layouts.take(slice(row, row + 1)), request.software)
    parts = {name: float(values[0]) for name, values in held.parts.items()}
    free = found.limit_bytes - float(held.total_bytes[0])
    rows = [(name, _digits(size / _GB)) for name, size in parts.items() if size] + [("free", _digits(free / _GB))]
    columns = (Column("part", "Part"), Column("size", "Held", "GB"))
    return Table(f"Memory of the fullest chip, {held.stage(0)}", columns, tuple(rows))


_QUOTED = ("6n", "megatron-lm", "megatron-bridge", "nemo", "torchtitan", "maxtext", "llm-foundry")  # in MFU reports


def conventions_table(found: Found, row: int) -> Table:
    """The MFU of one plan as each convention counts it; the useful FLOPs of a step beside it."""
    request = found.request
    batch = Batch.of(request.batch[1], request.batch[0])
    rows = []
    for counted in compare(request.spec, batch, _QUOTED):
        flops = float(counted.sequence.base)
        share = 100 * float(found.steps.take(slice(row, row + 1)).mfu(flops)[0])
        rows.append((counted.convention.title, _digits(share), _digits(flops / request.tokens / _GFLOP)))
    columns = (Column("convention", "Counted by"), Column("mfu", "MFU", "%"), Column("flops", "A token", "GFLOP/token"))
    return Table("The same step as others count it", columns, tuple(rows))


def funnel_table(found: Found) -> Table:
    """How many plans were left after each sieve."""
    counts = found.counts
    rows = (("tried", counts.tried), ("divide as they must", counts.divide), ("fit memory, and were timed", counts.fit))
    return Table("The search", (Column("sieve", "Plans that"), Column("plans", "Number")), rows)


def timeline_table(exact: Exact) -> Table:
    """The first operations of a simulated schedule."""
    columns = (
        Column("stage", "Stage"), Column("start", "Start", "s"), Column("end", "End", "s"), Column("what", "Pass"),
        Column("micro", "Micro-batch"),
    )  # fmt: skip
    line = exact.timeline
    rows = tuple(
        (f"stage {line.device[i] + 1}", round(float(line.start_s[i]), 6), round(float(line.end_s[i]), 6),
         _KINDS[line.ops[i].kind], line.ops[i].micro + 1)
        for i in np.lexsort((line.start_s[:OPS], line.device[:OPS])).tolist()
    )  # fmt: skip
    return Table("The schedule, from its start", columns, rows)


def formats_table(others: Sequence[Portable]) -> Table:
    """The fastest plan that each tool can run, or why it can run none."""
    columns = (Column("name", "Format"), Column("step", "Step", "s"), Column("plan", "Plan", meaning=_LEGEND))
    rows = tuple(
        (item.format, _digits(item.step_s), short(item.job.plan.columns))
        if item.job is not None
        else (item.format, "", f"none of the plans kept: {item.reason}")
        for item in others
    )
    return Table("The fastest plan that each tool can run", columns, rows)


def scan_table(scan: Scan, asked: int) -> Table:
    """What more or fewer chips do to the same job."""
    columns = (
        Column("chips", "Chips", "chip"),
        Column("step", "Step", "s"),
        Column("mfu", "MFU", "%", "megatron-lm convention"),
        Column("communication", "Communication", "%", "exposed, of the step"),
        Column("idle", "Bubble", "%", "of the step"),
        Column("rate", "Throughput", "token/s"),
        Column("gain", "Gain of a chip", "token/s/chip", "per chip added since the row above"),
        Column("worth", "Worth", "%", "of what chips bring in the first row"),
        Column("plan", "Best plan"),
    )
    rows = tuple(
        (p.chips, _digits(p.step_s), _digits(100 * p.mfu), _digits(100 * p.communication), _digits(100 * p.idle),
         _digits(p.tokens_per_s), _digits(p.gain), _digits(100 * p.worth), p.plan)
        for p in scan.points
    )  # fmt: skip
    here = next((index for index, p in enumerate(scan.points) if p.chips == asked), None)
    note = "; ".join(f"{count} chips: no plan ({why})" for count, why in scan.without)
    mark = "asked for" if here is not None else ""
    return Table("The same job on more and fewer chips", columns, rows, highlight=here, mark=mark, note=note)


def shares(scan: Scan) -> Table:
    """The scan in long form for a chart: MFU, exposed communication and worth of added chips, in percent."""
    columns = (Column("chips", "Chips", "chip"), Column("share", "Share", "%"), Column("what", "What"))
    names = {"mfu": "MFU", "communication": "exposed communication", "worth": "worth of an added chip"}
    rows = [(p.chips, _digits(100 * getattr(p, name)), title) for name, title in names.items() for p in scan.points]
    return Table("Shares against chips", columns, tuple(rows))


def _digits(value: float) -> float:
    """Four significant digits: more than any of these knows."""
    return float(f"{value:.4g}")
