"""What XProf's two files (``.xplane.pb`` and the trace viewer's JSON) share: lines and operations become rows.

A device's plane has lines. On a TPU ``XLA Ops`` holds the operations, nested where a loop calls others; on a GPU the
lines named ``Stream`` do, and lines with XLA's names repeat them. A copy or collective that runs beside other work
has a start, a done that waits for it, and often a line of its own for the time between.
"""

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.trace.columns import Intern
from ridgeline.trace.events import DEVICE_WORK, NONE, Category, Events, Info, Ints
from ridgeline.trace.readers.xprof_ops import details, opcode, operation
from ridgeline.trace.rows import Table

DEVICE = re.compile(r"/device:([A-Za-z]+):(\d+)\b.*")  # also "/device:TPU:0 SparseCore 1"

_DERIVED = ("Framework Name Scope", "Framework Ops", "Source code", "TensorFlow Name Scope", "TensorFlow Ops")
_STREAM = re.compile(r"Stream #(\d+)")
_OTHER_LINES = 1 << 32  # numbers of lines that have none, above any stream's
_CALL = re.compile(r"(cu|cuda|hip|nccl|rccl)[A-Z]\w*")
_PROGRAM = re.compile(r"(.+?)\((\d+)\)$")
_CONTROL = ("while", "conditional", "call", "async")  # they hold other operations and do nothing themselves
_COLUMNS = ("ts", "dur", "category", "name", "stream", "device", "thread", "corr", "bytes", "meta")


class Role(Enum):
    """What a line of a device's plane holds."""

    OPERATIONS = auto()
    STEPS = auto()
    MODULES = auto()
    OTHER = auto()  # marks and waits
    DERIVED = auto()  # repeats another line under other names


def role(line: str, streams: bool) -> Role:
    """The role of a line; ``streams`` says that its plane has GPU streams, which hold the operations."""
    if line.startswith("Stream #"):
        return Role.OPERATIONS
    if line == "Steps":
        return Role.STEPS
    if line == "XLA Modules":
        return Role.MODULES
    if line in _DERIVED or (streams and line in ("XLA Ops", "Async XLA Ops")):
        return Role.DERIVED
    if line.endswith("Ops") or line.startswith("Host Offload Ops"):
        return Role.OPERATIONS
    return Role.OTHER


class Resolved(NamedTuple):
    """What many events have in common: category, indices of name and details, bytes."""

    category: int
    name: int
    meta: int = NONE
    nbytes: int = NONE


@dataclass
class XprofRows:
    """Rows on their way into one `Events` per device."""

    table: Table = field(default_factory=Table)
    devices: dict[int, dict[str, Any]] = field(default_factory=dict)  # facts about each device
    skipped: dict[str, int] = field(default_factory=dict)
    epoch: bool = False  # whether times count from 1970
    _streams: Intern = field(default_factory=Intern)
    _rows: dict[str, "array[int]"] = field(default_factory=lambda: {name: array("q") for name in _COLUMNS})

    def _add(self, start: int, end: int, category: int, name: int, **columns: int) -> None:
        rows = self._rows
        rows["ts"].append(start)
        rows["dur"].append(end - start)
        rows["category"].append(category)
        rows["name"].append(name)
        for column in _COLUMNS[4:]:
            rows[column].append(columns.get(column, NONE))

    def stream(self, plane: str, line: str) -> int:
        """A number for a line: its own where it is a GPU stream, else one that no other line of the file has."""
        match = _STREAM.match(line)
        return int(match[1][:9]) if match else _OTHER_LINES + self._streams[plane, line]

    @property
    def has_work(self) -> bool:
        """Whether any device has had an event so far."""
        return any(device != NONE for device in self._rows["device"])

    def skip(self, what: str, count: int = 1) -> None:
        """Count events that repeat others or take no time."""
        self.skipped[what] = self.skipped.get(what, 0) + count

    def resolve(self, place: Role, name: str, stats: Mapping[str, Any]) -> Resolved:
        """What an event of a device's line is. ``stats`` may hold the HLO text as "hlo"."""
        if place is Role.OPERATIONS:
            found = operation(name, stats)
            return Resolved(int(found.category), self.table.name(name), self.table.meta(found.meta), found.nbytes)
        if place is Role.STEPS:
            return Resolved(Category.STEP, self.table.name(f"step {name}" if name.isdecimal() else name))
        if place is Role.MODULES:
            match = _PROGRAM.fullmatch(name)
            label = self.table.name(match[1] if match else name)
            return Resolved(Category.DEVICE_ANNOTATION, label, self.table.meta({"line": "XLA Modules"}))
        waits = "wait" in name or "barrier" in name
        return Resolved(Category.DEVICE_SYNC if waits else Category.DEVICE_ANNOTATION, self.table.name(name))

    def on_device(self, device: int, stream: int, span: tuple[int, int], what: Resolved, corr: Any = None) -> None:
        """One event of a device's line; ``span`` is start and end, ns, ``corr`` its correlation id if it has one."""
        self._add(
            *span, what.category, what.name,
            stream=stream, device=device, corr=_whole(corr), bytes=what.nbytes, meta=what.meta,
        )  # fmt: skip

    def on_host(
        self, thread: int, span: tuple[int, int], name: str, stats: Mapping[str, Any], *, work: bool = False
    ) -> None:
        """One event of a host thread. Events of no length are marks of the thread pool: counted, not kept.

        With ``work`` (no device has a plane of its own) operations that say on which device they ran are its work.
        """
        if work and "hlo_op" in stats and (ordinal := _whole(stats.get("device_ordinal"))) != NONE:
            self.devices.setdefault(ordinal, {"type": "CPU"})
            self.on_device(ordinal, thread, span, self.resolve(Role.OPERATIONS, name, stats))
            return
        start, end = span
        if end <= start:
            self.skip("host events of no length")
            return
        corr, nbytes, meta = NONE, NONE, NONE
        if "step_num" in stats:
            number = _whole(stats["step_num"])
            category, name = Category.STEP, f"{name} {number}" if number != NONE else name
        elif name.startswith("$"):
            category, name = Category.PYTHON, name[1:]
        elif "correlation_id" in stats or _CALL.fullmatch(name):
            category, corr = Category.RUNTIME, _whole(stats.get("correlation_id"))
        else:
            category = Category.HOST_OP
        if stats:
            meta = self.table.meta(details(name, stats))
            nbytes = _whole(stats.get("size"))
        index = self.table.name(name)
        self._add(start, end, category, index, thread=thread, corr=corr, bytes=nbytes, meta=meta)

    def finish(self, info: Info, lost: tuple[Loss, ...]) -> Events:
        """One table; where several devices worked, each is a rank (``info.extra["rank_per_device"]``).

        Calls that launched work of one device carry that device. Raises `InputError` where there is no event at all.
        """
        if not self._rows["ts"]:
            hint = "was the profile taken while the program ran?"
            raise InputError.expected("a profile with events", "none", where=info.path, hint=hint)
        columns: dict[str, Ints] = {name: np.array(values, np.int64) for name, values in self._rows.items()}
        columns["category"] = _without_containers(columns, self.table.names)
        columns["category"], source = _steps(columns, self.table.names, self.table.metas)
        columns["device"] = _with_launches(columns)
        self.table.add(**columns)
        work = np.unique(columns["device"][np.isin(columns["category"], DEVICE_WORK)]).tolist()
        facts = self.devices.get(work[0], {}) if work else {}
        cores = _whole(facts.get("core_count"))
        extra = {**info.extra, "steps_from": source, "device_facts": facts}
        if self.skipped:
            extra["skipped"] = self.skipped
        if len(work) > 1:
            extra |= {"rank_per_device": True, "devices": tuple(work)}
        label = str(facts.get("device_type_string") or facts.get("device_vendor") or facts.get("type") or "")
        sm_count = cores if cores > 0 and facts.get("type") == "GPU" else None
        return self.table.build(replace(info, lost=lost, device=label, sm_count=sm_count, extra=extra))


def _with_launches(columns: Mapping[str, Ints]) -> Ints:
    """The device column, with the device of the work they launched on host rows that share its correlation id."""
    device, corr = columns["device"].copy(), columns["corr"]
    work = np.flatnonzero((device != NONE) & (corr != NONE))
    calls = np.flatnonzero((device == NONE) & (corr != NONE))
    if len(work) and len(calls):
        work = work[np.argsort(corr[work], kind="stable")]
        at = np.minimum(np.searchsorted(corr[work], corr[calls]), len(work) - 1)
        found = corr[work[at]] == corr[calls]
        device[calls[found]] = device[work[at[found]]]
    return device


def _without_containers(columns: Mapping[str, Ints], names: Sequence[str]) -> Ints:
    """Loops, branches and calls that enclose other operations of their line become annotations.

    The time inside belongs to what they hold: as work they would hide every wait and every collective in a loop.
    """
    category = columns["category"].copy()
    control = np.array([opcode(name).startswith(_CONTROL) for name in names], np.bool_)
    rows = np.flatnonzero(category == Category.KERNEL)
    if not len(rows) or not control[columns["name"][rows]].any():
        return category
    start, end = columns["ts"], columns["ts"] + columns["dur"]
    order = rows[np.lexsort((-columns["dur"][rows], start[rows], columns["stream"][rows], columns["device"][rows]))]
    here, after = order[:-1], order[1:]
    same = (columns["stream"][here] == columns["stream"][after]) & (columns["device"][here] == columns["device"][after])
    holds = same & (start[after] < end[here]) & (end[after] <= end[here])
    category[here[holds & control[columns["name"][here]]]] = Category.DEVICE_ANNOTATION
    return category


def _steps(columns: Mapping[str, Ints], names: Sequence[str], metas: Sequence[Mapping[str, Any]]) -> tuple[Ints, str]:
    """One source of steps: the devices' own line, else the host's step annotations, else runs of the main program.

    The main program is the module that took most time, if it ran at least twice.
    """
    category = columns["category"].copy()
    step, on_device = category == Category.STEP, columns["device"] != NONE
    if (step & on_device).any():
        category[step & ~on_device] = Category.ANNOTATION
        return category, "Steps line of the device"
    if step.any():
        return category, "step annotations on the host"
    modules = np.array([meta.get("line") == "XLA Modules" for meta in metas], np.bool_)
    rows = np.flatnonzero((category == Category.DEVICE_ANNOTATION) & (columns["meta"] != NONE))
    rows = rows[modules[columns["meta"][rows]]] if len(rows) else rows
    if not len(rows):
        return category, "none"
    name = columns["name"][rows]
    total = np.bincount(name, weights=columns["dur"][rows])
    best = int(np.argmax(total))
    runs = rows[name == best]
    if len(runs) < 2 * len(np.unique(columns["device"][runs])):
        return category, "none"
    category[runs] = Category.STEP
    return category, f"runs of the program {names[best]}"


def _whole(value: Any) -> int:
    """A count that a stat holds as number or text; NONE where it is neither or does not fit."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return NONE
    return number if 0 <= number < 1 << 62 else NONE
