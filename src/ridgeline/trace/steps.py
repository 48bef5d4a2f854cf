"""Which training step each event belongs to, and which steps are steady.

A step is a range on the host (``ProfilerStep#3``). The device works later, so device work belongs to the step whose
launch call falls in the range; work without a launch call in the file goes by time. On the device's timeline a step
runs from where the work of the one before ends to where its own ends; while the device waits for the host, the host's
range is the border, so that time spent fetching a batch counts to the step that needs it. The last step ends with the
streams that earlier steps had finished when the next one began: what ran on beside a next step is no part of it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ridgeline.trace.events import NONE, Category, Events, Ints, Kind, Mask

WARM_UP_LENGTH = 1.3  # a leading step longer than this many median steps warms up
WHOLE_STEP_WORK = 0.9  # an outer step with less than this share of the median step's device events is cut off
JOINED = 0.1  # host time between two steps below this share of a step belongs to the earlier one

_NUMBER = re.compile(r"(\d+)\D*$")


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of one rank; arrays of one entry a step, times in ns as in the table.

    ``start``, ``end``: the window on the device; ``host_start``, ``host_end``: the range on the host. ``number`` as
    the trace counts. ``status``: "steady", "warm-up" or "partial". ``source``: "markers" (ranges on the host), "device
    markers", "inferred" (a repeating sequence of kernels) or "none" (the whole trace is one window).
    """

    number: Ints
    start: Ints
    end: Ints
    host_start: Ints
    host_end: Ints
    status: tuple[str, ...]
    source: str

    def __len__(self) -> int:
        return len(self.number)

    @property
    def steady(self) -> Mask:
        """The steps that represent the run; all of them where none is steady."""
        mask = np.array([status == "steady" for status in self.status], dtype=np.bool_)
        return mask if mask.any() else np.ones(len(self.status), dtype=np.bool_)

    @property
    def excluded(self) -> Mapping[int, str]:
        """Step number -> why it is left out of averages."""
        kept = self.steady
        return {int(n): s for n, s, keep in zip(self.number, self.status, kept, strict=True) if not keep}


def launch_rows(events: Events) -> Ints:
    """For every event the row of the runtime call that launched it; NONE on the host and where the file has none."""
    found = np.full(len(events), NONE, dtype=np.int64)
    calls = np.flatnonzero((events.category == Category.RUNTIME) & (events.corr != NONE))
    work = np.flatnonzero(events.on_device & (events.corr != NONE))
    if not len(calls) or not len(work):
        return found
    low = int(events.corr[calls].min())
    span = int(events.corr[calls].max()) - low + 1
    wanted = events.corr[work] - low
    inside = (wanted >= 0) & (wanted < span)
    if span <= 8 * len(events):  # ids are dense in practice: a table beats a sort
        table = np.full(span, NONE, dtype=np.int64)
        table[events.corr[calls[::-1]] - low] = calls[::-1]  # the earliest call of an id wins
        found[work[inside]] = table[wanted[inside]]
        return found
    order = calls[np.argsort(events.corr[calls], kind="stable")]
    at = np.minimum(np.searchsorted(events.corr[order], events.corr[work]), len(order) - 1)
    found[work] = np.where(events.corr[order[at]] == events.corr[work], order[at], NONE)
    return found


def assign(events: Events, *, infer: bool = False, launches: Ints | None = None) -> tuple[Events, Steps]:
    """The table with its ``step`` column filled (index into the steps; NONE outside), and the steps.

    Without markers the whole trace is one step, unless ``infer`` finds a repeating sequence of kernels. ``launches``
    is the result of `launch_rows` where the caller has it.
    """
    rows = _markers(events)
    if not len(rows):
        return _unmarked(events, infer)
    launched = launch_rows(events) if launches is None else launches
    numbers, low, high = _numbers(events, rows), events.ts[rows], events.end[rows]
    on_device = bool((events.thread[rows] == NONE).all() and (events.device[rows] != NONE).any())
    host_high = _join(low, high)
    linked = launched != NONE
    when = np.where(linked, events.ts[launched], events.ts)
    step = _inside(when, low, host_high)
    work = events.on_device
    start, end = (low, high) if on_device or not linked.any() else _windows(events, linked, step, (low, host_high))
    by_time = ~linked & (work | (events.category == Category.DEVICE_ANNOTATION))
    step[by_time] = _inside(events.ts[by_time], start, end)
    if on_device:
        step = _inside(events.ts, start, end)
    counts = np.bincount(step[work & (step != NONE)], minlength=len(low))
    source = "device markers" if on_device else "markers"
    steps = Steps(numbers, start, end, low, high, _status(end - start, counts), source)
    return events.with_columns(step=step), steps


def _markers(events: Events) -> Ints:
    """Rows of step ranges that do not overlap, from the thread that has most of them."""
    rows = np.flatnonzero((events.category == Category.STEP) & (events.dur > 0))
    if not len(rows):
        return rows
    threads, counts = np.unique(events.thread[rows], return_counts=True)
    rows = rows[events.thread[rows] == threads[np.argmax(counts)]]
    reach = np.maximum.accumulate(events.end[rows])
    alone: Ints = rows[np.r_[True, events.ts[rows[1:]] >= reach[:-1]]]
    return alone


def _numbers(events: Events, rows: Ints) -> Ints:
    found = [_NUMBER.search(events.name_of(row)) for row in rows]
    numbers = [int(match[1][-15:]) if match else NONE for match in found]
    distinct = len(set(numbers)) == len(numbers) and NONE not in numbers
    return np.array(numbers if distinct else range(len(rows)), dtype=np.int64)


def _join(low: Ints, high: Ints) -> Ints:
    """Ends of the host ranges, with the short time between two steps given to the earlier one."""
    if len(low) < 2:
        return high
    between = low[1:] - high[:-1]
    joined = between <= JOINED * np.median(high - low)
    ends: Ints = np.r_[np.where(joined, low[1:], high[:-1]), high[-1]]
    return ends


def _inside(when: Ints, low: Ints, high: Ints) -> Ints:
    """Index of the window that holds each time, else NONE."""
    at = np.searchsorted(low, when, side="right") - 1
    return np.where((at >= 0) & (when < high[np.maximum(at, 0)]), at, NONE)


def _windows(events: Events, linked: Mask, step: Ints, host: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """Windows on the device, from the stream that computes most."""
    low, high = host
    n, far = len(low), np.iinfo(np.int64).max
    mine = events.on_device & linked & (step != NONE)
    stream = _main_stream(events, mine)
    main = np.flatnonzero(mine & (events.stream == stream))
    first, last, latest = np.full(n, far), np.full(n, -far), np.full(n, -far)
    first[step[main[::-1]]] = events.ts[main[::-1]]
    np.maximum.at(last, step[main], events.end[main])
    np.maximum.at(latest, step[mine], events.end[mine])
    # launched before the profiler started: the end of a step that is not in the trace
    earlier = events.on_device & ~linked & (events.stream == stream) & (events.ts < first[0])
    before = int(events.end[earlier].max()) if earlier.any() else -far
    drained = np.maximum.accumulate(np.r_[before, last[:-1]])
    start = np.maximum.accumulate(np.minimum(np.maximum(low, drained), first))
    own_end = np.maximum(start, np.maximum(high, latest))
    own_end[-1] = max(start[-1], high[-1], _last_end(events, np.flatnonzero(mine), step, (stream, first)))
    following = np.r_[start[1:], own_end[-1]]
    touching = np.r_[high[:-1] == low[1:], True]
    return start, np.where(touching, following, np.minimum(own_end, following))


def _last_end(events: Events, rows: Ints, step: Ints, main: tuple[int, Ints]) -> int:
    """Where the last step's work ends on the streams that no earlier step left at work when the next one began.

    ``main``: the main stream, and where each step's first work on it starts.
    """
    main_stream, first = main
    if not len(rows):
        return -int(np.iinfo(np.int64).max)
    streams, stream = np.unique(events.stream[rows], return_inverse=True)
    end = np.full((len(streams), len(first)), -np.iinfo(np.int64).max)
    np.maximum.at(end, (stream, step[rows]), events.end[rows])
    finished = (streams == main_stream) | (end[:, :-1] <= first[1:]).all(axis=1)
    return int(end[finished, -1].max())


def _main_stream(events: Events, mine: Mask) -> int:
    rows = np.flatnonzero(mine & (events.category == Category.KERNEL) & (events.kind != Kind.COMM))
    rows = rows if len(rows) else np.flatnonzero(mine)
    if not len(rows):
        return NONE
    streams, index = np.unique(events.stream[rows], return_inverse=True)
    return int(streams[np.argmax(np.bincount(index, weights=events.dur[rows]))])


def _status(length: Ints, counts: Ints) -> tuple[str, ...]:
    """Leading slow steps warm up; an outer step with too little work is cut off. Needs three steps to compare."""
    n = len(length)
    status = ["steady"] * n
    if n < 3:
        return tuple(status)
    usual = np.median(counts)
    for outer in (0, n - 1):
        if counts[outer] < WHOLE_STEP_WORK * usual:
            status[outer] = "partial"
    for i in range(n // 2):
        if length[i] <= WARM_UP_LENGTH * np.median(length[i + 1 :]):
            break
        status[i] = "warm-up"
    return tuple(status)


def _unmarked(events: Events, infer: bool) -> tuple[Events, Steps]:
    work = events.on_device
    borders = period_borders(events) if infer else None
    if borders is None:
        seen = work if work.any() else np.ones(len(events), dtype=np.bool_)
        low = int(events.ts[seen].min()) if len(events) else 0
        high = int(events.end[seen].max()) if len(events) else 0
        one = np.array([low], np.int64), np.array([high], np.int64)
        steps = Steps(np.zeros(1, np.int64), *one, *one, ("steady",), "none")
        return events.with_columns(step=np.where(_inside(events.ts, *one) == NONE, NONE, 0)), steps
    start, end = borders[:-1], borders[1:]
    step = _inside(events.ts, start, end)
    counts = np.bincount(step[work & (step != NONE)], minlength=len(start))
    status = _status(end - start, counts)
    return events.with_columns(step=step), Steps(np.arange(len(start)), start, end, start, end, status, "inferred")


def period_borders(events: Events, *, agree: float = 0.95, least: int = 8) -> Ints | None:
    """Borders (ns) of repeating sequences of at least ``least`` kernels on the main stream; None if nothing repeats.

    A lag is a period where a share ``agree`` of the kernels has the name of the kernel one lag later, over at least
    three repetitions. Of lags that agree equally well the shortest counts: a stack of equal layers repeats as well,
    but not across its ends. The border is put where the device waits longest.
    """
    mine = events.on_device & (events.category == Category.KERNEL)
    rows = np.flatnonzero(mine & (events.stream == _main_stream(events, mine)))
    n = len(rows)
    if n < 3 * least:
        return None
    match = _agreement(events.name[rows])[: n // 3 + 1]
    match[:least] = 0
    best = float(match.max())
    if best < agree:
        return None
    period = int(np.argmax(match >= best - (1 - agree) / 5))
    wait = np.r_[0, events.ts[rows[1:]] - events.end[rows[:-1]]]
    whole = wait[: n // period * period].reshape(-1, period)
    phase = int(np.argmax(whole[1:].sum(axis=0))) if len(whole) > 1 else 0
    borders = events.ts[rows[phase::period]]
    tail = n - phase - (len(borders) - 1) * period
    return np.r_[borders, events.end[events.on_device].max()] if tail == period else borders


def _agreement(names: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Share of equal names at every lag: the autocorrelation of random signs given to the names."""
    n = len(names)
    size = 1 << (2 * n - 1).bit_length()
    code = np.unique(names, return_inverse=True)[1]
    random = np.random.default_rng(0)
    total = np.zeros(n)
    for _ in range(16):
        signs = random.choice([-1.0, 1.0], int(code.max()) + 1)[code]
        spectrum = np.fft.rfft(signs, size)
        total += np.fft.irfft(spectrum * spectrum.conj(), size)[:n]
    return total / 16 / np.arange(n, 0, -1)
