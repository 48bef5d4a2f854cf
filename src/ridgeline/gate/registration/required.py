"""How many pairs a plan needs, before there is a candidate: from an assumed variance, or from a pilot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from ridgeline.core.case import Case, Column, InputFile, Section, Table
from ridgeline.core.format import printable
from ridgeline.core.quantity import Source, leaf
from ridgeline.gate.evidence.pairing import Pairs
from ridgeline.gate.judging.paired import Column as Judged
from ridgeline.gate.judging.paired import columns
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.registration.record import Data, Record, Required, signed
from ridgeline.gate.statistics.clusters import design_effect
from ridgeline.gate.statistics.sizes import needed, variance_bound

OVERALL, EACH = "overall", "each slice"


@dataclass(frozen=True)
class Registering:
    """What a registration is made of. ``there`` counts the registered examples overall and of every slice."""

    plan: Plan
    data: tuple[Data, ...]
    at: datetime
    version: str
    pilot: Pairs | None = None
    there: Mapping[str, int] = field(default_factory=dict)


def register(asked: Registering) -> Record:
    """The record, signed by its hash. Raises `InputError` as the pilot's columns do."""
    found = from_pilot(asked) if asked.pilot is not None else assumed(asked)
    record = Record(asked.plan, asked.at, asked.version, asked.data, found)
    return Record(asked.plan, asked.at, asked.version, asked.data, found, signed(record))


def assumed(asked: Registering) -> tuple[Required, ...]:
    """From the variance that the plan assumes; nothing where it assumes none. Named slices have their own row."""
    plan, there = asked.plan, asked.there
    if plan.variance is None:
        return ()
    rows = [(OVERALL, plan.margin, there.get(OVERALL))]
    if plan.slices:
        least = min((count for name, count in there.items() if name != OVERALL), default=None)
        rows += [(EACH, plan.slice_margin, least)]
    rows += [(name, margin, there.get(name)) for name, margin in plan.margins.items()]
    return tuple(_row(plan, name, margin, plan.variance, count) for name, margin, count in rows)


def _row(plan: Plan, name: str, margin: float, variance: float, there: int | None) -> Required:
    n = needed(variance, margin, alpha=plan.alpha, power=plan.power)
    return Required(name, margin, variance, "assumed", n, there)


def from_pilot(asked: Registering) -> tuple[Required, ...]:
    """From the upper bound of a pilot's variance, of its first metric, times the design effect of its clusters."""
    assert asked.pilot is not None
    plan, item = asked.plan, columns(asked.pilot, asked.plan)[0]
    everything = np.arange(len(item.base), dtype=np.intp)
    parts = {OVERALL: (everything, plan.margin)}
    parts |= {name: (at, plan.margin_of(name)) for name, at in item.rows.items()}
    found = []
    for name, (at, margin) in parts.items():
        variance = _variance(item, at)
        if np.isfinite(variance):
            n = needed(variance, margin, alpha=plan.alpha, power=plan.power)
            found.append(Required(name, margin, variance, "pilot", n, asked.there.get(name)))
    return tuple(found)


def _variance(item: Judged, at: np.ndarray[tuple[int], np.dtype[np.intp]]) -> float:
    difference = item.difference[at]
    effect = 1.0 if item.groups is None or len(at) < 2 else design_effect(difference, item.groups[at])
    return variance_bound(difference) * effect


def case_of(record: Record, inputs: tuple[InputFile, ...], place: str, command: str) -> Case:
    """The registration for people: when, which hash, and the pairs that each check needs."""
    plan = record.plan
    case = Case("gate register", f"plan of the gate {plan.gate}", command=command)
    case.inputs = list(inputs)
    source = Source("the registered plan", place)
    for name, number, unit in (("margin", plan.margin, "1"), ("slice_margin", plan.slice_margin, "1"),
                               ("alpha", plan.alpha, "1"), ("power", plan.power, "1")):  # fmt: skip
        case.add(leaf(f"gate.registration.{name}", number, unit, "specified", source).titled(f"Registered {name}"))
    when = f"{record.registered:%Y-%m-%d %H:%M} UTC"
    case.decision = f"REGISTERED: the gate {plan.gate}, {when}, sha256 {record.sha256[:12]}."
    case.because = _because(record, place)
    case.add_table("gate.required", _table(record))
    case.add_table("gate.plan", _plan_table(plan))
    case.add_table("gate.data", _data_table(record))
    need = Section("Pairs that each check needs", (_how(record),), ("gate.required",))
    case.sections = [need, Section("What was registered", (), ("gate.plan", "gate.data"))]
    return case


def _because(record: Record, place: str) -> str:
    plan = record.plan
    short = [item for item in record.required if item.there is not None and item.there < item.n]
    cite = f"Cite it: ridgeline gate {plan.gate} ... --registration {place}"
    if not short:
        return cite
    worst = max(short, key=lambda item: item.n - (item.there or 0))
    more = f"{len(short)} of {len(record.required)} checks have too few examples for a power of {plan.power:.0%}"
    return f"{more}; {printable(worst.check)} has {worst.there:,} of {worst.n:,}. {cite}"


def _how(record: Record) -> str:
    if not record.required:
        return "No variance was given, so no number of pairs: name `variance` in the spec, or two pilot runs."
    said = "assumed in the spec" if record.required[0].source == "assumed" else "the pilot's upper 80% bound"
    return f"For a candidate that loses nothing, at a power of {record.plan.power:.0%}; the variance is {said}."


def _table(record: Record) -> Table:
    heads = (
        Column("check", "Check"), Column("margin", "Margin"),
        Column("variance", "Variance", "", "of one pair's difference; of zeros and ones, the share that disagrees"),
        Column("n", "n needed"), Column("there", "n there"), Column("source", "Variance is"),
    )  # fmt: skip
    rows = [
        (
            printable(item.check),
            item.margin,
            item.variance,
            item.n,
            "" if item.there is None else item.there,
            item.source,
        )
        for item in record.required
    ]
    return Table("Pairs needed", heads, tuple(rows))


def _plan_table(plan: Plan) -> Table:
    rows = [
        (name, printable(str(value))) for name, value in plan.model_dump(mode="json").items() if value not in ("", {})
    ]
    return Table("The plan", (Column("key", "Key"), Column("value", "Value")), tuple(rows))


def _data_table(record: Record) -> Table:
    rows = [
        (printable(item.path), item.kind, item.sha256, "" if item.rows is None else item.rows) for item in record.data
    ]
    heads = (Column("path", "Path"), Column("kind", "Hash of"), Column("sha256", "SHA-256"), Column("rows", "Rows"))
    return Table("Data", heads, tuple(rows))
