"""L0: where every nanosecond of a rank went, over the whole trace and step by step.

Each nanosecond is given to the first of these that covers it: compute, communication, copies over a link, memsets,
other device work; what is left is idle and is split by what the host was doing. So

span = compute + exposed_comm + exposed_copy + memset + other + idle
idle = gc_gap + input_gap + sync_gap + launch_gap + framework_gap + queue_gap + unknown_gap

to the nanosecond. Compute is every kernel that does more than communicate, synchronise or copy, those of unknown kind
included (``unclassified`` says how much of it). Copies are H2D, D2H and between chips; copies inside a chip are
``other``.

The gaps: ``gc_gap`` and ``input_gap`` lie under a host range of that kind. ``sync_gap``: the host was blocked in a
synchronisation, or had been when the device ran dry. Of the rest of a gap before a kernel that was launched late,
after the work before it had ended, ``launch_gap`` is inside runtime calls or between launch and start, and
``framework_gap`` is not: Python and operators on the way to the launch. ``queue_gap`` lies before a kernel that was
launched in time: the device's own latency, or a wait for another stream. ``unknown_gap`` ends in work without a
launch call in the file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.trace import intervals
from ridgeline.trace.events import COPIES, NONE, Category, Events, Ints, Kind, Mask, Run
from ridgeline.trace.host import host_kinds
from ridgeline.trace.intervals import EMPTY, Spans
from ridgeline.trace.steps import Steps, assign, launch_rows

Window = Literal["all", "linked", "before_last_step"]
WINDOWS: tuple[Window, ...] = ("all", "linked", "before_last_step")

WORK = ("compute", "exposed_comm", "exposed_copy", "memset", "other")
GAPS = ("gc_gap", "input_gap", "sync_gap", "launch_gap", "framework_gap", "queue_gap", "unknown_gap")
BUCKETS = (*WORK, *GAPS)  # they sum to the span
LABELS: Mapping[str, str] = {
    "span": "Span",
    "compute": "Compute",
    "exposed_comm": "Exposed communication",
    "exposed_copy": "Exposed copies",
    "memset": "Memsets alone on the device",
    "other": "Other device work",
    "gc_gap": "Garbage collection",
    "input_gap": "Input",
    "sync_gap": "Host synchronisation",
    "launch_gap": "Kernel launches",
    "framework_gap": "Framework and Python",
    "queue_gap": "Between queued kernels",
    "unknown_gap": "Idle, cause unknown",
    "idle": "Idle",
    "host_gap": "Host and input gaps",
    "late_gap": "Launch and framework gaps",
    "comm": "Communication",
    "copy": "Copies",
    "overlap": "Communication under compute",
    "unclassified": "Compute of unknown kind",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Parts:
    """Nanoseconds, int64, one entry a window. `BUCKETS` sum to ``span``; ``comm``, ``copy``, ``overlap`` (of
    communication and compute) and ``unclassified`` (of compute) are totals beside them."""

    span: Ints
    compute: Ints
    exposed_comm: Ints
    exposed_copy: Ints
    memset: Ints
    other: Ints
    gc_gap: Ints
    input_gap: Ints
    sync_gap: Ints
    launch_gap: Ints
    framework_gap: Ints
    queue_gap: Ints
    unknown_gap: Ints
    comm: Ints
    copy: Ints
    overlap: Ints
    unclassified: Ints

    @property
    def idle(self) -> Ints:
        """Nothing on the device."""
        return self.total(*GAPS)

    @property
    def host_gap(self) -> Ints:
        """Idle while the host waited for input, a synchronisation or garbage collection."""
        return self.gc_gap + self.input_gap + self.sync_gap

    @property
    def late_gap(self) -> Ints:
        """Idle because work was launched late or started late: runtime, framework and queue."""
        return self.launch_gap + self.framework_gap + self.queue_gap

    def total(self, *names: str) -> Ints:
        """The sum of some columns."""
        found: Ints = np.sum([getattr(self, name) for name in names], axis=0, dtype=np.int64)
        return found

    def column(self, name: str) -> Ints:
        """A column, or ``idle``, ``host_gap``, ``late_gap``, by name."""
        found: Ints = getattr(self, name)
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class RankBuckets(Parts):
    """The buckets of one rank: an entry a step, and ``whole`` with one entry for the selected events' whole span.

    ``linked`` and ``events``: how many of the device events have a launch call in the file, and how many there are.
    """

    label: str
    path: str
    window: Window
    steps: Steps
    whole: Parts
    linked: int
    events: int

    def mean_s(self, name: str) -> float:
        """Seconds per steady step."""
        return float(self.column(name)[self.steps.steady].mean()) * 1e-9

    def whole_s(self, name: str) -> float:
        """Seconds over the whole window."""
        return int(self.whole.column(name)[0]) * 1e-9


def buckets(
    events: Events,
    *,
    label: str = "rank0",
    window: Window = "all",
    work: Literal["all", "kernels"] = "all",
    infer: bool = False,
) -> RankBuckets:
    """The buckets of one rank.

    ``window``: "all" device events; "linked", those whose launch call is in the file; "before_last_step", those
    launched before the last step marker. ``work="kernels"`` looks at kernels alone, as some analysers do. ``infer``
    looks for a repeating sequence of kernels where there are no markers. The table need not have steps assigned.
    Raises `InputError` for an unknown window.
    """
    launches = launch_rows(events)
    events, steps = assign(events, infer=infer, launches=launches)
    mine = selected(events, steps, launches, window=window, work=work)
    return _measure(_Selection(events, launches, mine), steps, label, window)


def run_buckets(run: Run, *, window: Window = "all", infer: bool = False) -> tuple[RankBuckets, ...]:
    """The buckets of every rank of a run that has device work of some length."""
    return tuple(
        buckets(events, label=label, window=window, infer=infer)
        for events, label in zip(run, run.labels(), strict=True)
        if (events.dur[events.on_device] > 0).any()
    )


def selected(
    events: Events, steps: Steps, launches: Ints, *, window: Window = "all", work: Literal["all", "kernels"] = "all"
) -> Mask:
    """The device events that a window keeps."""
    if window not in WINDOWS:
        raise InputError.expected(f"one of {', '.join(WINDOWS)}", window, where="the window")
    mine: Mask = events.on_device if work == "all" else events.category == Category.KERNEL
    if window == "all":
        return mine
    mine &= launches != NONE
    if window == "before_last_step" and steps.source in ("markers", "device markers"):
        mine &= events.ts[launches] < steps.host_start[-1]
    return mine


@dataclass(frozen=True, eq=False)
class _Selection:
    events: Events
    launches: Ints
    mine: Mask

    def spans(self, mask: Mask) -> Spans:
        """The time that some of the selected events cover."""
        rows = np.flatnonzero(self.mine & mask)
        return intervals.union(self.events.ts[rows], self.events.dur[rows])


def partition(events: Events, *, window: Window = "all") -> dict[str, Spans]:
    """The buckets as disjoint sets of time that cover the trace from the first device event or step to the last."""
    launches = launch_rows(events)
    events, steps = assign(events, launches=launches)
    return _partition(_Selection(events, launches, selected(events, steps, launches, window=window)), steps)


def _masks(events: Events) -> dict[str, Mask]:
    """Which events make up each bucket of work, before what is hidden under another is taken off."""
    kernel, copy = events.category == Category.KERNEL, events.category == Category.MEMCPY
    comm, no_work = events.kind == Kind.COMM, np.isin(events.kind, (Kind.SYNC, Kind.D2D))
    linked_copy = copy & np.isin(events.kind, COPIES)
    return {
        "compute": kernel & ~comm & ~no_work,
        "exposed_comm": (kernel | copy) & comm,
        "exposed_copy": linked_copy,
        "memset": events.category == Category.MEMSET,
        "other": (copy & ~linked_copy & ~comm) | (kernel & no_work),
    }


def _partition(chosen: _Selection, steps: Steps) -> dict[str, Spans]:
    parts: dict[str, Spans] = {}
    busy = EMPTY
    for name, mask in _masks(chosen.events).items():
        spans = chosen.spans(mask)
        parts[name] = intervals.subtract(spans, busy)
        busy = intervals.either(busy, spans)
    low, high = _extent(busy, steps)
    return parts | _idle_parts(chosen, intervals.gaps(busy, low, high))


def _extent(busy: Spans, steps: Steps) -> tuple[int, int]:
    low, high = busy.extent
    if not len(busy.start):
        low, high = int(steps.start[0]), int(steps.end[-1])
    return min(low, int(steps.start[0])), max(high, int(steps.end[-1]))


def _idle_parts(chosen: _Selection, idle: Spans) -> dict[str, Spans]:
    """Idle time by its cause: each bucket takes what those before it have left."""
    parts: dict[str, Spans] = {}
    rest = idle
    for name, claim in _claims(chosen, idle).items():
        parts[name] = intervals.intersect(rest, claim)
        rest = intervals.subtract(rest, claim)
    assert rest.total == 0, "every gap has a cause"
    return parts


def _claims(chosen: _Selection, idle: Spans) -> dict[str, Spans]:
    """The time that each cause of idleness claims, strongest first."""
    events, kinds = chosen.events, host_kinds()
    in_flight, cause = _gap_causes(chosen, idle)
    late, queued, unknown = (_only(idle, cause == value) for value in (_LATE, _QUEUED, _UNKNOWN))
    launching = np.unique(events.thread[chosen.launches[chosen.mine & (chosen.launches != NONE)]])
    blocked = kinds["sync"].spans(events, launching)
    drained = _only(idle, (cause == _LATE) & _touches(blocked, idle.start))
    rows = np.flatnonzero(events.category == Category.RUNTIME)
    calls = intervals.intersect(intervals.union(events.ts[rows], events.dur[rows]), late)
    return {
        "gc_gap": kinds["garbage"].spans(events),
        "input_gap": kinds["input"].spans(events),
        "sync_gap": intervals.either(intervals.intersect(blocked, late), drained),
        "launch_gap": intervals.either(in_flight, calls),
        "framework_gap": late,
        "queue_gap": queued,
        "unknown_gap": unknown,
    }


_LATE, _QUEUED, _UNKNOWN = 0, 1, 2


def _only(spans: Spans, mask: Mask) -> Spans:
    return Spans(spans.start[mask], spans.end[mask])


def _touches(spans: Spans, at: Ints) -> Mask:
    """Whether each time is inside one of the spans or where it ends."""
    if not len(spans.start):
        return np.zeros(len(at), dtype=np.bool_)
    index = np.searchsorted(spans.start, at, side="right") - 1
    return (index >= 0) & (spans.end[np.maximum(index, 0)] >= at)


def _gap_causes(chosen: _Selection, idle: Spans) -> tuple[Spans, Ints]:
    """The time between launch call and start at the end of each gap, and a cause for each gap."""
    events = chosen.events
    rows = np.flatnonzero(chosen.mine & (events.dur > 0))
    has_host = bool(np.isin(events.category, (Category.RUNTIME, Category.HOST_OP)).any())
    cause = np.full(len(idle.start), _LATE if has_host else _UNKNOWN, dtype=np.int64)
    if not len(rows) or not len(idle.start):
        return EMPTY, cause
    at = np.minimum(np.searchsorted(events.ts[rows], idle.end, side="left"), len(rows) - 1)
    ends_in_work = events.ts[rows[at]] == idle.end
    call = np.where(ends_in_work, chosen.launches[rows[at]], NONE)
    known = call != NONE
    begun, returned = events.ts[call], events.end[call]
    cause[ends_in_work & ~known] = _UNKNOWN
    cause[known & (begun <= idle.start)] = _QUEUED
    low = np.maximum(begun, idle.start)
    high = np.where(begun > idle.start, idle.end, np.minimum(np.maximum(returned, idle.start), idle.end))
    in_flight = known & (high > low)
    return Spans(low[in_flight], high[in_flight]), cause


def _measure(chosen: _Selection, steps: Steps, label: str, window: Window) -> RankBuckets:
    events = chosen.events
    parts = _partition(chosen, steps)
    masks = _masks(events)
    beside = {"comm": chosen.spans(masks["exposed_comm"]), "copy": chosen.spans(masks["exposed_copy"])}
    beside["overlap"] = intervals.intersect(beside["comm"], parts["compute"])
    beside["unclassified"] = chosen.spans(masks["compute"] & (events.kind == Kind.UNCLASSIFIED))
    rows = np.flatnonzero(chosen.mine)
    lasting = rows[events.dur[rows] > 0]
    low, high = (int(events.ts[lasting].min()), int(events.end[lasting].max())) if len(lasting) else (0, 0)
    every = parts | beside
    one = np.array([low], np.int64), np.array([high], np.int64)
    whole = {name: intervals.covered(spans, *one) for name, spans in every.items()}
    by_step = {name: intervals.covered(spans, steps.start, steps.end) for name, spans in every.items()}
    return RankBuckets(
        **by_step, span=steps.end - steps.start, whole=Parts(**whole, span=one[1] - one[0]),
        label=label, path=events.info.path, window=window, steps=steps,
        linked=int((chosen.launches[rows] != NONE).sum()), events=len(rows),
    )  # fmt: skip


QUANTITIES = ("span", *BUCKETS, "idle", "host_gap", "late_gap", "comm", "copy", "overlap", "unclassified")


def quantities(rank: RankBuckets) -> dict[str, Quantity]:
    """``rank0.span``, ``rank0.compute``, ... over the whole window, in seconds."""
    return {name: _leaf(rank, name) for name in QUANTITIES}


def _leaf(rank: RankBuckets, name: str) -> Quantity:
    events = {"all": "all device events", "linked": "device events with a launch call in the file"}
    where = events.get(rank.window, "device events launched before the last step")
    found = leaf(f"{rank.label}.{name}", rank.whole_s(name), "s", "measured", Source(rank.path, where))
    return found.titled(f"{LABELS[name]}, {rank.label}")


def per_step(ranks: tuple[RankBuckets, ...], name: str, key: str) -> Quantity:
    """``<key>`` (s): seconds of a bucket in a step, the mean over steady steps and then over ranks."""
    mean = float(np.mean([rank.mean_s(name) for rank in ranks]))
    steps = sum(int(rank.steps.steady.sum()) for rank in ranks)
    many = f"mean over {len(ranks)} ranks" if len(ranks) > 1 else ranks[0].label
    found = leaf(key, mean, "s", "measured", Source(ranks[0].path, f"{many}, {steps} steady steps in all"))
    return found.titled(f"{LABELS[name]} per step")


def rows(rank: RankBuckets) -> Iterator[dict[str, int | str]]:
    """A row a step: its number and status, and every column in ns."""
    table = {name: rank.column(name) for name in QUANTITIES}
    for i, (number, status) in enumerate(zip(rank.steps.number, rank.steps.status, strict=True)):
        yield {"step": int(number), "status": status, **{name: int(values[i]) for name, values in table.items()}}


assert {field.name for field in fields(Parts)} == {"span", *BUCKETS, "comm", "copy", "overlap", "unclassified"}
