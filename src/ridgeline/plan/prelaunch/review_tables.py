"""Tables and charts of a review, and the sections that show them."""

from dataclasses import replace

import numpy as np

from ridgeline.core import charts
from ridgeline.core.case import Case, Chart, Column, Section, Table
from ridgeline.core.quantity import Source, leaf
from ridgeline.plan.prelaunch.comparable import Comparison
from ridgeline.plan.prelaunch.pilot import Pilot
from ridgeline.plan.prelaunch.review_facts import ACTIVITY, TITLES, ReviewFacts
from ridgeline.plan.prelaunch.review_shapes import matmul_rows
from ridgeline.plan.steps.fits import held
from ridgeline.plan.steps.layout import Layout

_MOST_STAGES = 32
_LEVEL = ("gpipe", "dualpipe")  # schedules that hold as much on every stage


def expectation(case: Case, facts: ReviewFacts) -> Section:
    """The number, its intervals, and what stands beside it."""
    rows: list[tuple[object, ...]] = []
    ends = facts.expected
    rows.append(("Expected by the design", ends.mfu, ends.low, ends.high, "step model, errors of published runs"))
    if facts.claimed is not None:
        claim = facts.proposal.file.claim
        assert claim is not None
        rows.append(("Claimed", facts.claimed, "", "", claim.provenance))
    found = facts.comparison
    if found is not None:
        low, high = found.corrected, found.proportional
        rows.append(("Promised by the comparable run", found.expectation, low, high, "geometry"))
        rows.append(("The same by the step model", found.modelled, "", "", "plan, links and shapes"))
    rows.append(("Large matmuls alone", facts.ceiling, "", "", "ceiling"))
    columns = (
        Column("what", "What"), Column("mfu", "MFU", "%"), Column("low", "Low", "%"), Column("high", "High", "%"),
        Column("from", "From"),
    )  # fmt: skip
    note = f"MFU counts {facts.counted}; low and high are the ends of the 80% interval."
    case.add_table(
        "review.expectation", Table("What to expect, and of whom", columns, tuple(rows), 0, "expect this", note)
    )
    residuals = facts.predicted.residuals
    text = (
        "The step is the sum of the terms below, each from kernel times and the design's own shapes; its interval is "
        f"that of {residuals.groups} groups of published runs that were held out. MFU is {{{facts.flops.name}}} of "
        "useful work over the dense peak of all chips in that step."
    )
    goodput = "Restarts, stalls and evaluation are goodput, which is another number: none of them is in here."
    return Section("What to expect", (text, goodput), ("review.expectation",))


def step(case: Case, facts: ReviewFacts) -> Section:
    """The stacked bar of the step, exposed communication apart."""
    rows = tuple(
        (TITLES[name], ACTIVITY.get(name, "compute"), seconds, facts.share(seconds))
        for name, seconds in facts.terms.items()
    )
    columns = (
        Column("term", "Term"), Column("activity", "Activity"), Column("seconds", "Time", "s"),
        Column("share", "Share", "%"),
    )  # fmt: skip
    table = Table("The step, term by term", columns, rows)
    case.add_table("review.step", table)
    largest = max(facts.terms.values(), key=lambda item: float(item.value))
    title = case.text(f"{{expected.step}} a step; the largest part is {largest.label.lower()}, {{{largest.name}}}")
    spec = charts.bars(table, "term", "seconds", "activity")
    alt = "Seconds of a step by term, coloured by activity: compute, communication that nothing hides, host, idle."
    case.charts["review.step"] = Chart(title, alt, spec, "review.step")
    show = ["review.step"]
    if facts.wires:
        case.add_table("review.wires", _wire_table(facts))
        show.append("review.wires")
    text = "Terms are those of the slowest pipeline stage. What communication hides under compute is not in the bar."
    return Section("Where the step goes", (text,), tuple(show))


def _wire_table(facts: ReviewFacts) -> Table:
    rows = tuple(
        (wire.label.replace(", whole", ""), wire, facts.terms.get(f"{name}_exposed", 0.0))
        for name, wire in facts.wires.items()
    )
    columns = (Column("group", "Traffic"), Column("wire", "On the wire", "s"), Column("exposed", "Exposed", "s"))
    return Table("Wire against exposed", columns, rows)


def memory(case: Case, facts: ReviewFacts) -> Section:
    """The stacked bar of every pipeline stage's fullest chip."""
    table = Table(
        "Memory of the fullest chip, by pipeline stage",
        (Column("stage", "Stage"), Column("part", "Part"), Column("bytes", "Memory", "GB/chip")),
        tuple(_stages(facts)),
    )
    case.add_table("review.memory", table)
    case.add(facts.memory, *([facts.capacity] if facts.capacity else []))
    room = "" if facts.capacity is None else f" of {{{facts.capacity.name}}}"
    title = case.text(f"{facts.held.stage(0).capitalize()} holds {{memory.total}}{room}")
    alt = "Memory by part on the fullest chip of every pipeline stage."
    case.charts["review.memory"] = Chart(title, alt, charts.bars(table, "stage", "bytes", "part"), "review.memory")
    text = f"The fullest chip holds {{memory.total}}{room}, by closed forms, with Adam in mixed precision."
    return Section("Memory by stage", (text,), ("review.memory",))


def _stages(facts: ReviewFacts) -> list[tuple[object, ...]]:
    """Parts of every stage: activations in flight fall from the first stage to the last, logits are on the last."""
    stages, source = facts.axis("pp"), Source("closed forms of training memory", "one pipeline stage")
    parts = {name: float(value[0]) for name, value in facts.held.parts.items()}
    kept, logits = _ends(facts)
    rows: list[tuple[object, ...]] = []
    for stage in range(min(stages, _MOST_STAGES)):
        here = parts | {"activations": kept[stage], "logits": logits if stage == stages - 1 else 0.0}
        for name, size in _grouped(here).items():
            if size > 0:
                found = leaf(f"memory.stage{stage + 1}.{name}", size, "B/chip", "measured", source)
                rows.append((f"stage {stage + 1}", name, found))
    return rows


_GROUPS = {"working": "buffers", "gathered": "buffers", "slack": "runtime"}


def _grouped(parts: dict[str, float]) -> dict[str, float]:
    """Small parts together, so that each has a colour of its own."""
    found: dict[str, float] = {}
    for name, size in parts.items():
        group = _GROUPS.get(name, name)
        found[group] = found.get(group, 0.0) + size
    return found


def _ends(facts: ReviewFacts) -> tuple[list[float], float]:
    """Bytes of activations on every stage, and of the logits."""
    stages, p = facts.axis("pp"), facts.proposal
    parts = facts.held.parts
    flat = _one_stage(facts)
    logits = float(held(p.spec, p.batch, flat, p.software).parts["logits"][0])
    if stages == 1:
        return [float(parts["activations"][0])], logits
    one = held(p.spec, p.batch, flat, p.software).parts["activations"][0] / stages
    count = int(p.layouts.micro_batches(p.sequences)[0])
    flying = [min(stages - stage, count) for stage in range(stages)]
    if facts.plan["schedule"] in _LEVEL:
        flying = [count] * stages
    first = float(one) * flying[0]
    binding = float(parts["activations"][0]) if not int(facts.held.stages[0]) else first
    return [binding * share / flying[0] for share in flying], logits


def _one_stage(facts: ReviewFacts) -> Layout:
    """The plan without its pipeline."""
    ones = np.array([1])
    return replace(facts.proposal.layouts, pp=ones, chunks=ones)


def shapes(case: Case, facts: ReviewFacts) -> Section:
    """Every matmul of a micro-batch on one rank, the slowest marked."""
    found = matmul_rows(facts)
    rows = tuple(
        (row.name, row.m, row.k, row.n, 100 * row.rate, 100 * row.weight, 100 * row.wave,
         "measured" if row.measured else "modelled")
        for row in found
    )  # fmt: skip
    columns = (
        Column("name", "Matmul"), Column("m", "Rows m", "1"), Column("k", "k", "1"), Column("n", "n", "1"),
        Column("rate", "Of peak", "%"), Column("weight", "Of matmul time", "%"), Column("wave", "Unfilled waves", "%"),
        Column("kind", "Kernel"),
    )  # fmt: skip
    slowest = min(range(len(found)), key=lambda index: found[index].rate)
    table = Table("Matmuls of a micro-batch on one rank", columns, rows, slowest, "slowest")
    case.add_table("review.matmuls", table)
    text = "Rates are those of the forward matmul and both gradients together, before the fit to published runs."
    show = ["review.matmuls"]
    if facts.geometry is not None:
        case.add_table("review.geometry", _geometry_table(facts))
        show.append("review.geometry")
    return Section("The shapes on one chip", (text,), tuple(show))


def _geometry_table(facts: ReviewFacts) -> Table:
    assert facts.geometry is not None
    rows = tuple(
        (row.what, row.size, row.tile, row.efficiency, row.share, row.points) for row in facts.geometry.dimensions
    )
    columns = (
        Column("what", "Dimension"), Column("size", "On one chip", "1"), Column("tile", "Tile", "1"),
        Column("efficiency", "Useful", "%"), Column("share", "Of the FLOPs", "%"), Column("points", "Padding", "%"),
    )  # fmt: skip
    return Table("Dimensions against the tile", columns, rows, note="padding in points of peak")


def comparable_table(found: Comparison) -> Table:
    """Dimension by dimension, what the runs share."""
    said = {True: "same", False: "differs"}
    rows = tuple((row.what, row.ours, row.theirs, said[row.alike], row.points or "") for row in found.rows)
    columns = (
        Column("what", "Dimension"), Column("ours", "Here"), Column("theirs", "There"), Column("alike", "Alike"),
        Column("points", "Padding beyond theirs", "%"),
    )  # fmt: skip
    return Table(f"This design against {found.name}", columns, rows)


def pilot_table(small: Pilot) -> Table:
    """Every term of the pilot, the riskiest first."""
    rows = tuple(
        (line.title, line.expected, line.low, line.passes, line.stops, line.risk, line.origin) for line in small.lines
    )
    columns = (
        Column("term", "Term"), Column("expected", "Expected", "ms"), Column("low", "Low", "ms"),
        Column("pass", "Passes up to", "ms"), Column("stop", "Stop above", "ms"),
        Column("risk", "Risk to the design", "%"), Column("origin", "Interval of"),
    )  # fmt: skip
    return Table(
        "What the pilot measures", columns, rows, 0, "riskiest", "risk in MFU points at the interval's high end"
    )
