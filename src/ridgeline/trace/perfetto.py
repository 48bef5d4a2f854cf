"""The trace with what was found drawn in: a Chrome trace that opens in the Perfetto UI and reads back like any other.

Every rank is a process with its device streams as threads. Beside it stand tracks of ours: the buckets of the step, the
exposed part of every collective, and the step windows; one more process lists the findings. Times are microseconds
with three decimals on the first rank's clock. Host operators are left out: they are most of a file and change nothing.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from ridgeline.core.case import Case
from ridgeline.core.finding import Verdict
from ridgeline.core.format import seconds
from ridgeline.trace.events import NONE, Category, Events, Ints, Mask
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l0 import LABELS, RankBuckets, partition
from ridgeline.trace.timeline import usual_step

CATEGORY = "ridgeline"  # no reader takes it for work
_KINETO: dict[int, str] = {
    Category.KERNEL: "kernel",
    Category.MEMCPY: "gpu_memcpy",
    Category.MEMSET: "gpu_memset",
    Category.DEVICE_SYNC: "cuda_sync",
    Category.STEP: "user_annotation",
}
_FAR = np.iinfo(np.int64).max
_BUCKETS, _EXPOSED, _STEPS = 1, 2, 3  # threads of our process
_OVERFLOW = 1000  # added to a stream's number where its events overlap: the viewer drops overlapping ones
BLOCK_ROWS = 1 << 16
_HOST = 10**6  # thread of step ranges of the host


@dataclass(frozen=True)
class Slice:
    """A stretch of time on the first rank's clock, ns: only what touches it is written. ``ranks`` None: all."""

    low: int = -_FAR
    high: int = _FAR
    ranks: tuple[str, ...] | None = None


def write(facts: TraceFacts, case: Case, path: Path, part: Slice | None = None) -> None:
    """Write the annotated trace of a run; without a run, a file with the findings alone."""
    part = part or Slice()
    origin = _origin(facts, part)
    with path.open("w", encoding="utf-8") as file:
        file.write(_head(facts, origin))
        _lines(file, _events(facts, case, part, origin))
        file.write("\n]}\n")


def _head(facts: TraceFacts, origin: int) -> str:
    head: dict[str, Any] = {"schemaVersion": 1, "displayTimeUnit": "ms", "madeBy": "ridgeline"}
    if facts.run is not None:
        first = facts.run.ranks[0].info
        head["baseTimeNanoseconds"] = first.base_ns + origin
        head["deviceProperties"] = [{"id": 0, "name": first.device}]
        head["distributedInfo"] = {"rank": first.rank or 0, "world_size": first.world or len(facts.run)}
    return json.dumps(head)[:-1] + ', "traceEvents": [\n'


def _lines(file: IO[str], lines: Iterable[str]) -> None:
    lines, before = iter(lines), ""
    while block := ",\n".join(islice(lines, BLOCK_ROWS)):
        file.write(before + block)
        before = ",\n"


def _origin(facts: TraceFacts, part: Slice) -> int:
    """The first time written, ns on the first rank's clock: relative times stay short."""
    if part.low > -_FAR:
        return part.low
    if facts.run is None:
        return 0
    offsets = facts.run.offset_ns or (0,) * len(facts.run)
    starts = [int(r.ts[_written(r)].min()) + o for r, o in zip(facts.run, offsets, strict=True) if _written(r).any()]
    return min(starts, default=0)


def _written(events: Events) -> Mask:
    return events.on_device | np.isin(events.category, (Category.STEP, Category.DEVICE_SYNC))


def _events(facts: TraceFacts, case: Case, part: Slice, origin: int) -> Iterator[str]:
    run = facts.run
    if run is not None:
        offsets = run.offset_ns or (0,) * len(run)
        for i, (label, events) in enumerate(zip(run.labels(), run, strict=True)):
            if part.ranks is None or label in part.ranks:
                shift = offsets[i] - origin
                place = _Place(2 * i, label, shift, part.low - origin, part.high - origin)
                yield from _device(events, place)
                yield from _ours(facts, i, events, place)
    yield from _findings(facts, case, origin)


@dataclass(frozen=True)
class _Place:
    """A rank's process, its shift to the file's clock, and the stretch of that clock that is wanted, ns."""

    pid: int
    label: str
    shift: int
    low: int
    high: int

    def wanted(self, start: Ints, end: Ints) -> Ints:
        """Rows that touch the stretch."""
        return np.flatnonzero((start + self.shift < self.high) & (end + self.shift > self.low))


def _device(events: Events, place: _Place) -> Iterator[str]:
    """The device's work and the host's step ranges, as in the file that was read."""
    yield _meta("process_name", place.pid, 0, name=place.label)
    yield _meta("process_sort_index", place.pid, 0, sort_index=place.pid)
    rows = place.wanted(events.ts, events.end)
    rows = rows[_written(events)[rows]]
    threads = _threads(events, rows)
    for thread in np.unique(threads).tolist():
        yield _meta("thread_name", place.pid, thread, name=_thread_name(thread))
    names = {i: json.dumps(events.names[i]) for i in np.unique(events.name[rows]).tolist()}
    columns = (events.ts, events.dur, events.name, events.category, events.stream, events.device, events.corr,
               events.ext, events.bytes)  # fmt: skip
    for thread, ts, dur, name, category, *details in _rows(threads, *(column[rows] for column in columns)):
        args = ", ".join([f'"{key}": {value}' for key, value in zip(_DETAILS, details, strict=True) if value != NONE])
        yield _complete(place.pid, thread, _KINETO[category], names[name], (ts + place.shift, dur), f"{{{args}}}")


_DETAILS = ("stream", "device", "correlation", "External id", "bytes")


def _rows(*columns: Ints) -> Iterator[tuple[int, ...]]:
    """The rows of equally long columns as Python integers, a block at a time: these take ten times the memory."""
    for at in range(0, len(columns[0]), BLOCK_ROWS):
        yield from zip(*(column[at : at + BLOCK_ROWS].tolist() for column in columns), strict=True)


def _threads(events: Events, rows: Ints) -> Ints:
    """A thread for each event: its stream, and more for events that begin before the one before them has ended."""
    threads = np.where(events.category[rows] == Category.STEP, _HOST, np.maximum(events.stream[rows], 0))
    end = events.end[rows]
    for thread in np.unique(threads).tolist():
        left = np.flatnonzero(threads == thread)
        level = 0
        while len(left):
            reach = np.r_[-_FAR, np.maximum.accumulate(end[left])[:-1]]
            late = events.ts[rows[left]] < reach
            threads[left] = thread + level * _OVERFLOW
            left, level = left[late], level + 1
    return threads


def _thread_name(thread: int) -> str:
    if thread >= _HOST:
        return "steps on the host"
    stream, level = thread % _OVERFLOW, thread // _OVERFLOW
    return f"stream {stream}" + (f", overlapping {level}" if level else "")


def _ours(facts: TraceFacts, index: int, events: Events, place: _Place) -> Iterator[str]:
    """Buckets, exposed collectives and step windows of a rank."""
    rank = next((r for r in facts.l0 if r.label == place.label), None)
    if rank is None:
        return
    pid = place.pid + 1
    yield _meta("process_name", pid, 0, name=f"{place.label}, ridgeline")
    yield _meta("process_sort_index", pid, 0, sort_index=pid)
    for thread, name in ((_BUCKETS, "buckets"), (_EXPOSED, "exposed communication"), (_STEPS, "steps")):
        yield _meta("thread_name", pid, thread, name=name)
    for bucket, spans in partition(events, window=rank.window).items():
        rows = place.wanted(spans.start, spans.end)
        name = json.dumps(LABELS[bucket])
        for start, end in _rows(spans.start[rows], spans.end[rows]):
            yield _complete(pid, _BUCKETS, CATEGORY, name, (start + place.shift, end - start))
    yield from _exposed(facts, index, place)
    yield from _steps(rank, place)


def _exposed(facts: TraceFacts, index: int, place: _Place) -> Iterator[str]:
    """Each call that is exposed, with how long it waits for the last rank; its times are on the first rank's clock."""
    if facts.l1 is None or facts.run is None:
        return
    calls = facts.l1.instances
    own = facts.run.offset_ns[index] if facts.run.offset_ns else 0
    origin = own - place.shift
    rows = np.flatnonzero((calls.rank == index) & (calls.exposed > 0))
    reach = -_FAR
    for row in rows.tolist():
        start, dur = int(calls.start[row]) - origin, int(calls.dur[row])
        if start >= place.high or start + dur <= place.low:
            continue
        begin = max(start, reach)  # calls may overlap: the first keeps its place
        if begin >= start + dur:
            continue
        reach = start + dur
        args = {
            "exposed": seconds(int(calls.exposed[row]) * 1e-9),
            "of it wait": seconds(int(calls.exposed_wait[row]) * 1e-9),
            "wire": seconds(int(calls.wire[row]) * 1e-9),
        }
        name = json.dumps(facts.l1.rows[int(calls.row[row])].title)
        yield _complete(place.pid + 1, _EXPOSED, CATEGORY, name, (begin, reach - begin), json.dumps(args))


def _steps(rank: RankBuckets, place: _Place) -> Iterator[str]:
    reach = -_FAR
    for i in place.wanted(rank.steps.start, rank.steps.end).tolist():
        start, end = max(int(rank.steps.start[i]), reach), int(rank.steps.end[i])
        if end <= start:
            continue
        reach = end
        parts = ("compute", "exposed_comm", "idle")
        shares = {LABELS[part]: seconds(int(rank.column(part)[i]) * 1e-9) for part in parts}
        name = json.dumps(f"step {int(rank.steps.number[i])}, {rank.steps.status[i]}")
        yield _complete(place.pid + 1, _STEPS, CATEGORY, name, (start + place.shift, end - start), json.dumps(shares))


def _findings(facts: TraceFacts, case: Case, origin: int) -> Iterator[str]:
    """What failed or warns, each as a bar over the step that the report shows."""
    open_ones = [f for f in case.findings if f.verdict in (Verdict.FAIL, Verdict.WARN)]
    low, high = _report_step(facts)
    pid = 2 * len(facts.run) if facts.run is not None else 0
    if open_ones:
        yield _meta("process_name", pid, 0, name="ridgeline findings")
        yield _meta("process_sort_index", pid, 0, sort_index=-1)
    for thread, finding in enumerate(open_ones):
        args = {"verdict": str(finding.verdict), "says": case.text(finding.sentence), "do": case.text(finding.fix)}
        args |= {f"costs, {key}": case.text(f"{{{q.name}}}") for key, q in finding.cost.figures.items()}
        name = json.dumps(f"{finding.code} {finding.title}")
        yield _meta("thread_name", pid, thread, name=finding.code)
        yield _complete(pid, thread, CATEGORY, name, (low - origin, high - low), json.dumps(args))


def _report_step(facts: TraceFacts) -> tuple[int, int]:
    """The step that the report's timeline shows, on the first rank's clock."""
    number = usual_step(facts.l0)
    if number is None or facts.run is None:
        return 0, 1000
    rank = next(rank for rank in facts.l0 if (rank.steps.number == number).any())
    at = int(np.flatnonzero(rank.steps.number == number)[0])
    index = facts.run.labels().index(rank.label)
    offset = facts.run.offset_ns[index] if facts.run.offset_ns else 0
    return int(rank.steps.start[at]) + offset, int(rank.steps.end[at]) + offset


def _meta(kind: str, pid: int, tid: int, **args: Any) -> str:
    return json.dumps({"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args})


def _complete(pid: int, tid: int, category: str, name: str, times: tuple[int, int], args: str = "") -> str:
    """One event; ``name`` and ``args`` are JSON already."""
    start, dur = times
    said = f', "args": {args}' if args else ""
    begin = f"{start // 1000}.{start % 1000:03d}" if start >= 0 else _us(start)  # in place: half of all the time
    return (
        f'{{"ph": "X", "cat": "{category}", "name": {name}, "pid": {pid}, "tid": {tid}, '
        f'"ts": {begin}, "dur": {dur // 1000}.{dur % 1000:03d}{said}}}'
    )


def _us(ns: int) -> str:
    """Nanoseconds as microseconds with three decimals, exact."""
    return f"{ns // 1000}.{ns % 1000:03d}" if ns >= 0 else f"-{_us(-ns)}"
