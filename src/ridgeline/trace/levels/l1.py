"""L1: every collective of a run: how long, how exposed, who made whom wait, and how fast the wire was.

One call is one instance, matched over the ranks of its group. The shortest duration over the ranks is the *wire* time:
the rank that arrives last waits for nobody. What another rank takes longer is *wait*. Exposed time is what no compute
kernel of the rank covers; where collectives overlap, each nanosecond belongs to the one that started first, so that
exposed times sum to the exposed communication of L0. A call starts with its wait, so the exposed time before ``end -
wire`` is *exposed wait* and the rest *exposed wire*.

A collective in two events, as XLA writes them, is one call from the start of the first to the end of the second; it is
exposed in the second alone, so that the first, a moment, is missing in that sum.

Bandwidths are decimal. ``bus`` is bytes sent per chip over wire time, with the factors of
`ridgeline.arithmetic.collectives`; ``algo`` is the array's bytes over wire time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, cast

import numpy as np

from ridgeline.arithmetic.collectives import Collective, sent
from ridgeline.core.format import value
from ridgeline.core.quantity import leaf
from ridgeline.trace import intervals
from ridgeline.trace.collective_names import dtype_of, kind_of, size_of
from ridgeline.trace.events import NONE, Category, Events, Ints, Kind, Mask, Run
from ridgeline.trace.intervals import Spans
from ridgeline.trace.matching import match, paired
from ridgeline.trace.steps import assign, launch_rows

Verdict = Literal["hidden", "straggler", "bandwidth", "latency", "scheduling", "unknown"]

HIDDEN = 0.1  # share of the kernel time that may be exposed
FULL_LINK = 0.6  # of the link's bandwidth: what a large transfer reaches at least
LATENCY_S = 50e-6  # a wire time below this is mostly the latency of launching and of the hops
SMALL_BYTES = 2**18  # a message below this does not fill any link
NEXT_NS = 20_000  # a collective that starts within this time of a kernel's end stood behind it

_COUNTED = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "point_to_point")


@dataclass(frozen=True)
class Key:
    """What makes calls one row: kind, element type, bytes of the array (None: not in the trace), and the group."""

    kind: str
    dtype: str
    size: int | None
    group: str
    group_size: int | None


@dataclass(frozen=True, eq=False)
class Instances:
    """Every call on every rank, sorted by rank and start; int64, times in ns on the first rank's clock.

    ``row`` indexes `Collectives.rows`; ``match`` is equal for the ranks of one call, NONE where no other rank has it.
    ``wire`` is the shortest duration of the match (the own duration if unmatched). ``behind`` is the length of a
    compute kernel that ended just before on the same stream, after the call had been launched, else 0, and
    ``behind_name`` that kernel's name, an index into ``names``.
    """

    rank: Ints
    row: Ints
    start: Ints
    dur: Ints
    step: Ints
    steady: Ints
    exposed: Ints
    exposed_wait: Ints
    match: Ints
    wire: Ints
    behind: Ints
    behind_name: Ints
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rank)


@dataclass(frozen=True, eq=False)
class Row:
    """All calls of one key. Arrays have an entry a rank, in ns over the whole trace unless named per step.

    ``matched``: calls seen on several ranks; ``wire``: their wire times summed. ``skew``: the largest time between
    the first and the last start. ``last``: how often each rank arrived last. ``per_step``: exposed seconds in a steady
    step (mean over ranks), ``wait_per_step`` the part of it that is wait. ``fastest``: the shortest duration of any
    call, ns. ``groups``: the ranks of the groups that make the calls, where the trace says.
    """

    key: Key
    count: Ints
    kernel: Ints
    exposed: Ints
    exposed_wait: Ints
    matched: int
    wire: int
    skew: int
    last: Ints
    per_step_s: float
    wait_per_step_s: float
    fastest: int
    groups: tuple[tuple[int, ...], ...] = ()

    @cached_property
    def sent_bytes(self) -> float | None:
        """Bytes a chip sends in one call; None where size or group are not in the trace or the kind has no formula."""
        key = self.key
        if key.size is None or not key.group_size or key.kind not in _COUNTED:
            return None
        size, chips = leaf("size", float(key.size), "B"), leaf("chips", float(key.group_size), "chip")
        return float(cast(float, sent(cast(Collective, key.kind), size, chips).base))

    @property
    def wire_s(self) -> float | None:
        """Mean wire time of a call: over the matched ones, else the fastest call if there are several."""
        if self.matched:
            return self.wire * 1e-9 / self.matched
        return self.fastest * 1e-9 if int(self.count.sum()) > 1 else None

    @property
    def bus_bytes_per_s(self) -> float | None:
        """Bus bandwidth, B/s."""
        return None if not self.wire_s or self.sent_bytes is None else self.sent_bytes / self.wire_s

    @property
    def algo_bytes_per_s(self) -> float | None:
        """Algorithm bandwidth, B/s."""
        return None if not self.wire_s or self.key.size is None else self.key.size / self.wire_s

    @property
    def title(self) -> str:
        """What people read: *all-gather fp32 151 MB over 8*."""
        key = self.key
        size = "" if key.size is None else f" {value(key.size, 'B')}"
        over = f" over {key.group_size}" if key.group_size else ""
        return f"{key.kind.replace('_', '-')} {key.dtype}".strip() + size + over


@dataclass(frozen=True, eq=False)
class Collectives:
    """The rows, most exposed first, and what holds for all of them; arrays have an entry a rank.

    ``unmatched``: calls that no other rank has. ``compute``, ``idle``, ``kernel``: ns. ``blame``: exposed time that the
    group spent waiting for this rank as the last to arrive, ns summed over calls, mean over the others where all ranks
    are in the group, over all ranks where some are not; ``blame_per_step``: the same in ns per steady step; ``last``:
    how often. ``steps``: steady steps of each rank.
    ``room_s``: compute in a steady step, mean over ranks. ``spread_ns``: how well the clocks agree.
    """

    labels: tuple[str, ...]
    rows: tuple[Row, ...]
    instances: Instances
    unmatched: Ints
    compute: Ints
    idle: Ints
    kernel: Ints
    blame: Ints
    blame_per_step: Ints
    last: Ints
    steps: Ints
    room_s: float
    spread_ns: int | None

    @property
    def matched(self) -> bool:
        """Whether any call was seen on several ranks."""
        return any(row.matched for row in self.rows)

    def verdict(self, row: Row, link_bytes_per_s: float | None = None, *, waits: bool = True) -> Verdict:
        """Why the row costs what it costs; ``link_bytes_per_s`` of the device's link, one direction, if known.

        ``waits`` False judges the transfer alone, as if no rank were late. Calls of one rank alone can't tell waiting
        from transferring: the fastest of them is an upper bound of the wire time, so only a row that is at the link's
        bandwidth, or all latency, has a known cause.
        """
        calls = max(int(row.count.sum()), 1)
        waited = int(row.exposed_wait.sum())
        found = verdict(
            Timing(
                kernel_s=(int(row.kernel.sum()) - (0 if waits else waited)) * 1e-9 / calls,
                exposed_wait_s=waited * 1e-9 / calls if waits else 0.0,
                exposed_wire_s=(int(row.exposed.sum()) - waited) * 1e-9 / calls,
                wire_s=row.wire_s or 0.0,
                room_s=self.room_s * len(self.labels) / calls * max(float(self.steps.sum()) / len(self.labels), 1.0),
            ),
            row.sent_bytes,
            link_bytes_per_s,
        )
        if row.matched or found in ("hidden", "latency"):
            return found
        return "scheduling" if found == "scheduling" and link_bytes_per_s and row.bus_bytes_per_s else "unknown"


@dataclass(frozen=True)
class Timing:
    """Seconds of a collective, all per call or all per step: ``room_s`` is the compute that it could hide under."""

    kernel_s: float
    exposed_wait_s: float
    exposed_wire_s: float
    wire_s: float
    room_s: float


def verdict(timing: Timing, sent_bytes: float | None = None, link_bytes_per_s: float | None = None) -> Verdict:
    """Scheduling, bandwidth, straggler, or nothing to gain.

    Straggler: most of the exposed time is waiting for the last rank. Bandwidth: the wire is slower than the link
    should be, or busier than there is compute to hide it. Latency: slower than the link, but too short for the link to
    matter. Else the transfer would fit under the compute and is not put there: scheduling.
    """
    exposed = timing.exposed_wait_s + timing.exposed_wire_s
    if exposed <= HIDDEN * timing.kernel_s:
        return "hidden"
    if timing.exposed_wait_s > timing.exposed_wire_s:
        return "straggler"
    if sent_bytes is not None and timing.wire_s > 0:
        slow = bool(link_bytes_per_s) and sent_bytes < FULL_LINK * timing.wire_s * (link_bytes_per_s or 0)
        if timing.wire_s < LATENCY_S and (slow or sent_bytes < SMALL_BYTES):
            return "latency"
        if slow:
            return "bandwidth"
    return "bandwidth" if timing.wire_s > timing.room_s else "scheduling"


def collectives(run: Run, *, infer: bool = False) -> Collectives | None:
    """L1 of a run; None where no rank has communication on its device. ``infer`` steps where there are no markers."""
    table = _KeyTable()
    ranks = [_rank(events, table, infer) for events in run]
    if not any(len(rank.start) for rank in ranks):
        return None
    offsets = run.offset_ns or tuple(e.info.base_ns - run.ranks[0].info.base_ns for e in run)
    joined = _join(ranks, offsets)
    joined["match"] = _matched(joined, table, len(ranks))
    wire, last, skew = _over_ranks(joined)
    joined["wire"] = wire
    joined["exposed_wait"] = _displaced(joined, _exposed_wait(ranks, joined), last)
    return _assemble(run, ranks, table, joined, (last, skew))


class _KeyTable:
    """Rows and groups by their index, filled while ranks are read."""

    def __init__(self) -> None:
        self.keys: dict[Key, int] = {}
        self.groups: dict[Any, int] = {}
        self.members: dict[Key, set[tuple[int, ...]]] = {}

    def add(self, meta: Mapping[str, Any], kernel: str, known: Mapping[str, tuple[int, ...]]) -> int:
        kind, dtype = kind_of(meta, kernel), dtype_of(meta, kernel)
        group = str(meta.get("group", ""))
        members = tuple(meta.get("group_ranks") or known.get(group, ()))
        size = meta.get("group_size") or len(members) or None
        label = str(meta.get("group_desc") or group)
        key = Key(kind, dtype, size_of(kind, meta, dtype), label, int(size) if size else None)
        self.groups.setdefault((group, members), len(self.groups))
        if members:
            self.members.setdefault(key, set()).add(members)
        return self.keys.setdefault(key, len(self.keys))

    def communicator(self, meta: Mapping[str, Any], known: Mapping[str, tuple[int, ...]]) -> int:
        group = str(meta.get("group", ""))
        return self.groups[(group, tuple(meta.get("group_ranks") or known.get(group, ())))]


@dataclass(frozen=True, eq=False)
class _Rank:
    """The calls of one rank in order of start, on its own clock, with the compute that may hide them."""

    start: Ints
    dur: Ints
    own: Ints  # where the part begins that may be exposed and that no earlier call covers
    row: Ints
    group: Ints
    seq: Ints
    step: Ints
    steady: Ints
    exposed: Ints
    behind: Ints
    behind_name: Ints
    names: tuple[str, ...]
    compute: Spans
    steady_compute: float
    steps: int
    idle: int


def _rank(events: Events, table: _KeyTable, infer: bool) -> _Rank:
    launches = launch_rows(events)
    events, steps = assign(events, infer=infer, launches=launches)
    kernel, comm = events.category == Category.KERNEL, events.kind == Kind.COMM
    opened, rows = paired(events, np.flatnonzero(events.on_device & comm & (events.dur >= 0)))
    computing = np.flatnonzero(kernel & ~comm & ~np.isin(events.kind, (Kind.SYNC, Kind.D2D)))
    compute = intervals.union(events.ts[computing], events.dur[computing])
    row, group, seq = _keys(events, opened, table)
    start, end = events.ts[opened], events.end[rows]
    dur = end - start
    reach = np.r_[np.iinfo(np.int64).min, np.maximum.accumulate(end)[:-1]] if len(rows) else end
    own = np.minimum(np.maximum(events.ts[rows], reach), end)
    behind, name = _behind(events, opened, launches)
    step = events.step[rows]
    busy_rows = np.flatnonzero(events.on_device)
    busy = intervals.union(events.ts[busy_rows], events.dur[busy_rows])
    steady = steps.steady
    in_step = intervals.covered(compute, steps.start, steps.end)[steady]
    return _Rank(
        start=start, dur=dur, own=own, row=row, group=group, seq=seq, step=step,
        steady=((step != NONE) & steady[np.maximum(step, 0)]).astype(np.int64),
        exposed=(end - own) - intervals.covered(compute, own, end), behind=behind, behind_name=name,
        names=events.names, compute=compute, steady_compute=float(in_step.mean()) * 1e-9, steps=int(steady.sum()),
        idle=busy.extent[1] - busy.extent[0] - busy.total,
    )  # fmt: skip


def _keys(events: Events, rows: Ints, table: _KeyTable) -> tuple[Ints, Ints, Ints]:
    """Row, communicator and sequence number of every call: details are read once per distinct call."""
    pairs = events.name[rows] * (len(events.metas) + 1) + events.meta[rows] + 1
    distinct, inverse = np.unique(pairs, return_inverse=True)
    row, group, seq = (np.full(len(distinct), NONE, dtype=np.int64) for _ in range(3))
    for i, pair in enumerate(distinct):
        name, meta = divmod(int(pair), len(events.metas) + 1)
        details = events.metas[meta - 1] if meta else {}
        row[i] = table.add(details, events.names[name], events.info.groups)
        group[i] = table.communicator(details, events.info.groups)
        number = details.get("seq")
        seq[i] = number if isinstance(number, int) else NONE
    return row[inverse], group[inverse], seq[inverse]


def _behind(events: Events, rows: Ints, launches: Ints) -> tuple[Ints, Ints]:
    """Compute kernels that calls stood behind on their stream, though they had been launched before."""
    work = np.flatnonzero(events.on_device)
    order = work[np.argsort(events.stream[work], kind="stable")]  # by stream, then by start
    position = np.empty(len(events), np.int64)
    position[order] = np.arange(len(order))
    before = order[np.maximum(position[rows] - 1, 0)] if len(order) else rows
    same = (position[rows] > 0) & (events.stream[before] == events.stream[rows])
    computes = (events.category[before] == Category.KERNEL) & (events.kind[before] != Kind.COMM)
    near = events.ts[rows] - events.end[before] <= NEXT_NS
    called = launches[rows]
    queued = (called == NONE) | (events.ts[called] < events.end[before])
    stood = same & computes & near & queued
    return np.where(stood, events.dur[before], 0), np.where(stood, events.name[before], NONE)


_COPIED = ("start", "dur", "row", "group", "seq", "step", "steady", "exposed", "behind", "behind_name")


def _join(ranks: Sequence[_Rank], offsets: Sequence[int]) -> dict[str, Ints]:
    """All calls in one table, on one clock."""
    joined = {name: np.concatenate([getattr(rank, name) for rank in ranks]) for name in _COPIED}
    lengths = [len(rank.start) for rank in ranks]
    joined["rank"] = np.repeat(np.arange(len(ranks)), lengths)
    joined["start"] = joined["start"] + np.repeat(np.array(offsets, dtype=np.int64), lengths)
    return joined


def _matched(joined: Mapping[str, Ints], table: _KeyTable, ranks: int) -> Ints:
    """Match ids over all communicators."""
    found = np.full(len(joined["rank"]), NONE, dtype=np.int64)
    following = 0
    order = np.lexsort((joined["start"], joined["rank"], joined["group"]))
    borders = np.searchsorted(joined["group"][order], np.arange(len(table.groups) + 1))
    for low, high in pairwise(borders):
        members = order[low:high]
        by_rank = np.split(members, np.searchsorted(joined["rank"][members], np.arange(1, ranks)))
        by_rank = [rows for rows in by_rank if len(rows)]
        if len(by_rank) < 2:
            continue
        ids = match([joined["row"][rows] for rows in by_rank], [joined["seq"][rows] for rows in by_rank])
        for rows, own in zip(by_rank, ids, strict=True):
            found[rows] = np.where(own == NONE, NONE, own + following)
        following = int(max(found.max(), following - 1)) + 1
    return found


def _over_ranks(joined: Mapping[str, Ints]) -> tuple[Ints, Ints, Ints]:
    """Wire time of every call, whether it arrived last of its match, and the skew of the match."""
    wire = joined["dur"].copy()
    last, skew = np.zeros_like(wire), np.zeros_like(wire)
    rows = np.flatnonzero(joined["match"] != NONE)
    if not len(rows):
        return wire, last, skew
    order = rows[np.lexsort((joined["start"][rows], joined["match"][rows]))]
    ids, start = joined["match"][order], joined["start"][order]
    first = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    length = np.diff(np.r_[first, len(ids)])
    wire[order] = np.repeat(np.minimum.reduceat(joined["dur"][order], first), length)
    final = first + length - 1
    last[order[final]] = 1
    skew[order] = np.repeat(start[final] - start[first], length)
    return wire, last, skew


def _exposed_wait(ranks: Sequence[_Rank], joined: Mapping[str, Ints]) -> Ints:
    """Exposed time before the last rank arrived."""
    found = np.zeros(len(joined["rank"]), np.int64)
    at = 0
    for rank in ranks:
        here = slice(at, at + len(rank.start))
        at += len(rank.start)
        arrived = np.maximum(rank.start + rank.dur - joined["wire"][here], rank.own)
        found[here] = (arrived - rank.own) - intervals.covered(rank.compute, rank.own, arrived)
    return found


def _displaced(joined: Mapping[str, Ints], wait: Ints, last: Ints) -> Ints:
    """The exposed wait with the transfer that lateness has moved out from under compute.

    What the last rank hides of the transfer and another exposes, the other has lost by waiting: it ran out of compute.
    It cannot lose more than it came earlier.
    """
    rows = np.flatnonzero(joined["match"] != NONE)
    if not len(rows):
        return wait
    match = joined["match"]
    of_last = np.zeros(int(match[rows].max()) + 1, np.int64)
    late = rows[last[rows] == 1]
    of_last[match[late]] = joined["exposed"][late]
    more = np.minimum(joined["exposed"] - of_last[np.maximum(match, 0)], joined["dur"] - joined["wire"])
    return np.where(match != NONE, np.maximum(wait, more), wait)


def _assemble(
    run: Run, ranks: Sequence[_Rank], table: _KeyTable, joined: dict[str, Ints], over: tuple[Ints, Ints]
) -> Collectives:
    last, skew = over
    n, steps = len(ranks), np.array([rank.steps for rank in ranks], dtype=np.int64)

    def by(key: Ints, size: int, values: Ints) -> Ints:
        return np.bincount(key, weights=values, minlength=size).astype(np.int64)

    cell = joined["row"] * n + joined["rank"]
    size = len(table.keys) * n
    sums = {name: by(cell, size, joined[name]).reshape(-1, n) for name in ("dur", "exposed", "exposed_wait")}
    steady = {
        name: by(cell, size, joined[name] * joined["steady"]).reshape(-1, n) for name in ("exposed", "exposed_wait")
    }
    lasts, counts = by(cell, size, last).reshape(-1, n), np.bincount(cell, minlength=size).reshape(-1, n)
    first = last == 1
    matches, wires = (by(joined["row"][first], len(table.keys), v[first]) for v in (last, joined["wire"]))
    fastest, widest = np.full(len(table.keys), np.iinfo(np.int64).max), np.zeros(len(table.keys), np.int64)
    np.minimum.at(fastest, joined["row"], joined["dur"])
    np.maximum.at(widest, joined["row"], skew)
    rows = [
        Row(
            key, counts[i], sums["dur"][i], sums["exposed"][i], sums["exposed_wait"][i], int(matches[i]),
            int(wires[i]), int(widest[i]), lasts[i], float((steady["exposed"][i] / steps).mean()) * 1e-9,
            float((steady["exposed_wait"][i] / steps).mean()) * 1e-9, int(fastest[i]),
            tuple(sorted(table.members.get(key, ()))),
        )
        for key, i in table.keys.items()
    ]  # fmt: skip
    order = sorted(range(len(rows)), key=lambda i: (-int(rows[i].exposed.sum()), i))
    place = np.empty(len(rows), np.int64)
    place[order] = np.arange(len(rows))
    names, joined["behind_name"] = _names(ranks, joined)
    columns = ("rank", "start", "dur", "step", "steady", "exposed", "exposed_wait", "match", "wire", "behind")
    return Collectives(
        labels=tuple(run.labels()), rows=tuple(rows[i] for i in order),
        instances=Instances(row=place[joined["row"]], behind_name=joined["behind_name"], names=names,
                            **{name: joined[name] for name in columns}),
        unmatched=by(joined["rank"], n, (joined["match"] == NONE).astype(np.int64)),
        compute=np.array([rank.compute.total for rank in ranks], dtype=np.int64),
        idle=np.array([rank.idle for rank in ranks], dtype=np.int64), kernel=by(joined["rank"], n, joined["dur"]),
        blame=_blame(joined, last, n, joined["match"] != NONE),
        blame_per_step=_blame(joined, last, n, (joined["match"] != NONE) & (joined["steady"] == 1)) // steps,
        last=by(joined["rank"], n, last), steps=steps,
        room_s=float(np.mean([rank.steady_compute for rank in ranks])), spread_ns=run.spread_ns,
    )  # fmt: skip


def _blame(joined: Mapping[str, Ints], last: Ints, n: int, counted: Mask) -> Ints:
    """Exposed wait of each match, on the account of the rank that arrived last.

    Where all ranks take part, the mean over those who waited: what the step loses. Where some do not, the mean over all
    ranks, which need not all lose it.
    """
    rows = np.flatnonzero(counted)
    if not len(rows):
        return np.zeros(n, np.int64)
    ids = joined["match"][rows]
    size = int(ids.max()) + 1
    waited = np.bincount(ids, weights=joined["exposed_wait"][rows], minlength=size)
    members = np.bincount(ids, minlength=size)
    waiting = np.where(members < n, n, np.maximum(members - 1, 1))
    late = np.flatnonzero(counted & (last == 1))
    share = (waited / waiting)[joined["match"][late]]
    return np.bincount(joined["rank"][late], weights=share, minlength=n).astype(np.int64)


def _names(ranks: Sequence[_Rank], joined: Mapping[str, Ints]) -> tuple[tuple[str, ...], Ints]:
    """Names of the kernels that calls stood behind, interned over ranks."""
    table: dict[str, int] = {}
    found = np.full(len(joined["rank"]), NONE, dtype=np.int64)
    for i in np.flatnonzero(joined["behind_name"] != NONE):
        name = ranks[int(joined["rank"][i])].names[int(joined["behind_name"][i])]
        found[i] = table.setdefault(name, len(table))
    return tuple(table), found
