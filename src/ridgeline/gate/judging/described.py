"""What a gate shows beside its checks and does not decide by: flips, shrunk estimates, the slices that regressed."""

from collections.abc import Callable, Sequence

import numpy as np

from ridgeline.core.case import Column as Head
from ridgeline.core.case import Section, Table
from ridgeline.core.format import printable
from ridgeline.gate.evidence.pairing import Pairs
from ridgeline.gate.evidence.samples import Texts
from ridgeline.gate.judging.paired import Column
from ridgeline.gate.registration.record import hash_of_ids
from ridgeline.gate.statistics.slices import regressed, shrunk

EXAMPLES = 3  # keys of flipped examples that a row shows
KEY = 24  # characters of one


def ids_of(pairs: Pairs) -> Callable[[], tuple[str, ...]]:
    """The hash of the ids of either run, paired or not, when it is asked for."""

    def hashes() -> tuple[str, ...]:
        base = hash_of_ids([*pairs.baseline.keys.tolist(), *pairs.only_baseline])
        return base, hash_of_ids([*pairs.candidate.keys.tolist(), *pairs.only_candidate])

    return hashes


def described(columns: Sequence[Column]) -> dict[str, Table]:
    """``gate.flips.METRIC`` and, with slices, ``gate.slices.METRIC`` of every metric."""
    found = {}
    for item in columns:
        found[f"gate.flips.{item.name}"] = flips(item)
        if item.names is not None:
            found[f"gate.slices.{item.name}"] = slices(item)
    return found


def sections(tables: dict[str, Table]) -> tuple[Section, ...]:
    """The sections of `described`."""
    flipped = tuple(name for name in tables if name.startswith("gate.flips."))
    sliced = tuple(name for name in tables if name.startswith("gate.slices."))
    where = Section("Where the errors went", ("Examples that only one of the two runs got right.",), flipped)
    if not sliced:
        return (where,)
    said = (
        "Described, not decided on. A shrunk estimate draws a slice towards the others by as much as its own noise "
        "explains, which hides exactly the slice that is asked about. The list of slices that regressed claims several "
        "things at once, and takes Holm's correction; the decision needs none."
    )
    return (where, Section("Slices, described", (said,), sliced))


def flips(item: Column) -> Table:
    """Where the errors went: examples gained and lost by slice, with the first keys of those lost.

    Of a real-valued loss, those that changed by more than what counts as broken.
    """
    beyond = item.plan.rare_beyond if item.unit == "nat" else 0.0
    gained, lost = item.difference > beyond, item.difference < -beyond
    everything = {"all": np.arange(len(item.base), dtype=np.intp)}
    rows = []
    for name, at in (item.rows or everything).items():
        which = at[lost[at]]
        rows.append((printable(name), len(at), int(gained[at].sum()), len(which), _some(item.keys[which])))
    rows.sort(key=lambda row: (row[2] - row[3], row[0]))
    columns = (
        Head("slice", "Slice"), Head("n", "n"), Head("gained", "Gained"), Head("lost", "Lost"),
        Head("which", "Lost, first of them"),
    )  # fmt: skip
    by = f" by more than {beyond:g} nat" if beyond else ""
    return Table(f"Examples whose {printable(item.name)} changed{by}, most lost first", columns, tuple(rows))


def _some(keys: Texts) -> str:
    shown: Sequence[str] = [str(key)[:KEY] for key in keys[:EXAMPLES].tolist()]
    return printable(", ".join(shown)) + (" ..." if len(keys) > len(shown) else "")


def slices(item: Column) -> Table:
    """Every slice as measured and shrunk, and whether it regressed after Holm's correction."""
    assert item.names is not None
    plan, scale = item.plan, 100.0 if item.unit == "%" else 1.0
    intervals = item.intervals
    lost = {} if item.groups is not None else regressed(item.base, item.cand, item.names, plan.alpha)
    drawn = dict(zip(intervals, shrunk(list(intervals.values())), strict=True))
    p = {name: f"p = {value:.2g}" for name, value in lost.items()}
    rows = [
        (printable(name), at.n, scale * at.estimate, scale * drawn[name], p.get(name, ""))
        for name, at in sorted(intervals.items(), key=lambda pair: pair[1].estimate)
    ]
    unit = {"%": "point", "1": ""}.get(item.unit, item.unit)
    columns = (
        Head("slice", "Slice"), Head("n", "n"), Head("delta", "Change", unit),
        Head("shrunk", "Shrunk", unit, "drawn towards the other slices; never decided on"),
        Head("regressed", "Regressed", "", "Holm's corrected p-value, where it is at or below alpha"),
    )  # fmt: skip
    note = "With clusters no list of regressions is made." if item.groups is not None else ""
    return Table(f"Slices of {printable(item.name)}, the largest loss first", columns, tuple(rows), note=note)
