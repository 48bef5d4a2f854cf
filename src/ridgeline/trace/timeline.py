"""The timeline of one step: for every rank which activity took each moment, merged to as many spans as a page shows.

The step is cut into equal slices; a slice shows the activity that took most of it, and equal neighbours join. Slices
get wider until the spans are few enough, so nothing is left out, only made coarser.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ridgeline.core.charts import ACTIVITIES
from ridgeline.trace import intervals
from ridgeline.trace.events import Events, Ints, Run
from ridgeline.trace.intervals import Spans
from ridgeline.trace.levels.l0 import RankBuckets, Window, partition

LIMIT, LANES, FINEST = 400, 16, 2400
# Which buckets make up each of the five activities that every chart shows.
PARTS: dict[str, tuple[str, ...]] = {
    "compute": ("compute",),
    "communication": ("exposed_comm",),
    "copies": ("exposed_copy", "memset", "other"),
    "host": ("gc_gap", "input_gap", "sync_gap", "launch_gap", "framework_gap"),
    "idle": ("queue_gap", "unknown_gap"),
}
assert tuple(PARTS) == ACTIVITIES


@dataclass(frozen=True)
class Span:
    """One bar: ``start``, ``end`` in ns from the start of the timeline; ``name``: the longest device event in it."""

    lane: str
    start: int
    end: int
    part: str
    name: str


@dataclass(frozen=True)
class Timeline:
    """Spans of one step, lane by lane. ``slice_ns`` is the resolution; ``left_out`` counts ranks that have no lane."""

    step: int
    length: int
    slice_ns: int
    spans: tuple[Span, ...]
    left_out: int


def usual_step(ranks: Sequence[RankBuckets]) -> int | None:
    """The number of the steady step whose length on the slowest rank is nearest to its median; None without ranks."""
    if not ranks:
        return None
    slowest = max(ranks, key=lambda rank: rank.mean_s("span"))
    rows = np.flatnonzero(slowest.steps.steady)
    length = slowest.span[rows]
    return int(slowest.steps.number[rows[int(np.argmin(np.abs(length - np.median(length))))]])


def shown_ranks(ranks: Sequence[RankBuckets], most: int = LANES) -> list[int]:
    """Indices of at most that many ranks, in order: those furthest from the median in any part of the step."""
    if len(ranks) <= most:
        return list(range(len(ranks)))
    table = np.array([[sum(rank.mean_s(name) for name in names) for names in PARTS.values()] for rank in ranks])
    odd = np.abs(table - np.median(table, axis=0)).max(axis=1)
    return sorted(int(i) for i in np.argsort(-odd, kind="stable")[:most])


def timeline(
    run: Run, ranks: Sequence[RankBuckets], step: int, *, window: Window = "all", limit: int = LIMIT
) -> Timeline | None:
    """The timeline of the step of that number, at most ``limit`` spans; None where no rank has it."""
    labels = run.labels()
    lanes = []
    for index in shown_ranks(ranks):
        rank = ranks[index]
        here = np.flatnonzero(rank.steps.number == step)
        if len(here) and rank.steps.end[here[0]] > rank.steps.start[here[0]]:
            at = labels.index(rank.label)
            offset = run.offset_ns[at] if run.offset_ns else 0
            edges = (int(rank.steps.start[here[0]]), int(rank.steps.end[here[0]]))
            lanes.append(_Lane(rank.label, run.ranks[at], offset, *edges, activities(run.ranks[at], window)))
    if not lanes:
        return None
    low, high = min(lane.low + lane.offset for lane in lanes), max(lane.high + lane.offset for lane in lanes)
    bins = FINEST
    while True:
        width = max(1, -(-(high - low) // bins))
        found = [span for lane in lanes for span in _spans(lane, low, width)]
        if len(found) <= limit or bins <= 8:
            return Timeline(step, high - low, width, tuple(found), len(ranks) - len(lanes))
        bins = bins * 3 // 4


def activities(events: Events, window: Window = "all") -> dict[str, Spans]:
    """The five activities as disjoint sets of time, on the rank's own clock."""
    buckets = partition(events, window=window)
    found = {}
    for part, names in PARTS.items():
        spans = intervals.EMPTY
        for name in names:
            spans = intervals.either(spans, buckets[name])
        found[part] = spans
    return found


@dataclass(frozen=True, eq=False)
class _Lane:
    label: str
    events: Events
    offset: int
    low: int
    high: int
    parts: dict[str, Spans]


def _spans(lane: _Lane, origin: int, width: int) -> list[Span]:
    """The lane's bars at one resolution."""
    first, last = lane.low + lane.offset - origin, lane.high + lane.offset - origin
    edges = np.r_[np.arange(first, last, width, dtype=np.int64), last]
    own = edges + origin - lane.offset
    took = np.stack([intervals.covered(spans, own[:-1], own[1:]) for spans in lane.parts.values()])
    part = np.argmax(took, axis=0)
    begins = np.flatnonzero(np.r_[True, part[1:] != part[:-1]])
    ends = np.r_[begins[1:], len(part)]
    names = _longest(lane.events, own[begins], own[ends])
    return [
        Span(lane.label, int(edges[a]), int(edges[b]), ACTIVITIES[part[a]], name if part[a] < 3 else "")
        for a, b, name in zip(begins, ends, names, strict=True)
    ]


def _longest(events: Events, start: Ints, end: Ints) -> list[str]:
    """For each span the name of the longest device event whose middle lies in it; empty where there is none."""
    rows = np.flatnonzero(events.on_device & (events.ts < end[-1]) & (events.end > start[0]))
    middle = events.ts[rows] + events.dur[rows] // 2
    at = np.searchsorted(start, middle, side="right") - 1
    inside = (at >= 0) & (middle < end[np.maximum(at, 0)])
    rows, at = rows[inside], at[inside]
    names = [""] * len(start)
    for i in np.lexsort((events.dur[rows], at)):  # the longest of a span comes last and stays
        names[int(at[i])] = events.name_of(rows[i])
    return names
