"""What the canary shows: the heat map by depth and length, hits by distance to the end, and the windows tried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ridgeline.core import charts
from ridgeline.core.case import Chart, Column, Section, Table
from ridgeline.core.format import printable
from ridgeline.gate.canary.eviction import Asked, by_distance
from ridgeline.gate.canary.facts import CanaryFacts
from ridgeline.gate.decision import Check

_POINTS = 100.0
SHOWN = 200  # values without a place that a table lists


@dataclass(frozen=True)
class Cell:
    """One depth of one length: its check, and the hit rates of both runs."""

    depth: str
    length: str
    check: Check
    baseline: float
    candidate: float
    contexts: int


@dataclass(frozen=True)
class Pictures:
    """Tables and charts by their names, and the sections that show them."""

    tables: Mapping[str, Table]
    charts: Mapping[str, Chart]
    sections: tuple[Section, ...] = field(default_factory=tuple)


def pictures(cells: Sequence[Cell], base: Asked, cand: Asked, facts: CanaryFacts) -> Pictures:
    """Everything that is shown beside the checks."""
    tables = {"canary.cells": heat(cells), "canary.distance": distance(base, cand), "canary.windows": windows(facts)}
    if facts.unplaced:
        tables["canary.unplaced"] = unplaced(facts)
    drawn: dict[str, Chart] = {}
    kept = [cell for cell in cells if cell.contexts]
    if kept:
        worst = min(kept, key=lambda cell: cell.candidate - cell.baseline)
        spec = charts.cells(tables["canary.cells"], "stratum", "length", "delta", around=True)
        alt = f"Change of the hit rate by depth and length; the lowest is {worst.depth}, {worst.length}"
        drawn["canary.heat"] = Chart("Where needles are gained and lost, in points", alt, spec, "canary.cells")
    look = charts.Look(log_x=True, zero_y=True)
    spec = charts.line(tables["canary.distance"], "distance", "rate", "run", look=look)
    alt = "Hit rate of both runs by the needle's distance to the end of the prompt"
    drawn["canary.distance"] = Chart("Eviction is a step, distance alone a slope", alt, spec, "canary.distance")
    return Pictures(tables, drawn, _sections(tables))


def _sections(tables: Mapping[str, Table]) -> tuple[Section, ...]:
    where = (
        "Candidate minus baseline. A needle's depth is the share of the text before the question that stands before "
        "it, recomputed from the prompt. Contexts are the clusters: needles of one context share its luck."
    )
    audit = (
        "Beyond a window, needles far from the end are lost and others found. A collapse loses needles near the end as "
        "soon as prompts are longer than the window. Every window is tried, with Holm's correction."
    )
    found = [
        Section("Where needles are lost", (where,), ("canary.heat", "canary.cells")),
        Section("Does it forget beyond a distance", (audit,), ("canary.distance", "canary.windows")),
    ]
    if "canary.unplaced" in tables:
        said = "A value that stands in the text never, or more than once, tells nothing about its needle."
        found.append(Section("Values that are not judged", (said,), ("canary.unplaced",)))
    return tuple(found)


def heat(cells: Sequence[Cell]) -> Table:
    """Cells with needles, by depth and length."""
    columns = (
        Column("stratum", "Depth"), Column("length", "Tokens"),
        Column("delta", "Change", "point", "candidate minus baseline"),
        Column("baseline", "Baseline", "%"), Column("candidate", "Candidate", "%"),
        Column("contexts", "Contexts"), Column("needles", "Needles"), Column("outcome", "Outcome"),
    )  # fmt: skip
    rows = [
        (
            cell.depth.removeprefix("depth "), cell.length, _POINTS * (cell.candidate - cell.baseline),
            _POINTS * cell.baseline, _POINTS * cell.candidate,
            cell.contexts, cell.check.interval.n, str(cell.check.outcome),
        )
        for cell in cells
        if cell.contexts
    ]  # fmt: skip
    return Table("Hit rate by depth and length", columns, tuple(rows))


def distance(base: Asked, cand: Asked) -> Table:
    """Hit rate of both runs by distance to the end, in octaves."""
    columns = (
        Column("run", "Run"), Column("distance", "Tokens to the end, up to", "token"), Column("rate", "Found", "%"),
        Column("needles", "Needles"),
    )  # fmt: skip
    rows = [
        (name, upper, _POINTS * rate, n)
        for name, asked in (("baseline", base), ("candidate", cand))
        for upper, rate, n in by_distance(asked)
    ]
    return Table("Hit rate by distance to the end of the prompt", columns, tuple(rows))


def windows(facts: CanaryFacts) -> Table:
    """Every window that was tried, those that are flagged first."""
    columns = (
        Column("run", "Run"), Column("pattern", "Pattern"), Column("window", "Window", "token"),
        Column("held", "Held", "%", "rate where needles should be found"),
        Column("fell", "Fell", "%", "rate beyond"), Column("p", "p", "", "after Holm's correction"),
        Column("n", "Needles"), Column("outcome", "Outcome"), Column("lost", "Lost at"),
    )  # fmt: skip
    rows = [
        (run, item.pattern, item.tokens, _POINTS * item.held, _POINTS * item.fell, f"{item.p:.2g}", item.n,
         "falls" if item.flagged else "holds", item.where if item.flagged else "")
        for run, found in facts.audits.items()
        for item in sorted(found, key=lambda item: (not item.flagged, -item.fall))
    ]  # fmt: skip
    return Table("Windows tried", columns, tuple(rows))


def unplaced(facts: CanaryFacts) -> Table:
    """Values without a single place."""
    columns = (Column("context", "Context"), Column("value", "Value"), Column("times", "Stands there, times"))
    rows = [(printable(u.context[:24]), printable(u.value[:40]), u.times) for u in facts.unplaced[:SHOWN]]
    more = len(facts.unplaced) - len(rows)
    return Table("Values without a single place", columns, tuple(rows), note=f"{more:,} more." if more else "")
