"""L4: the ranks of a job beside each other. A synchronous job runs at the pace of its slowest rank.

Who is late comes from matched collectives: of each call, the rank that starts last makes the others wait. A rank is a
straggler where it is last more often than chance allows (binomial, over calls) and makes others wait most in more than
half of the steps. Its cost is the exposed wait that would end with it: for each call it is last in, the shortest
exposed wait of the ranks that are no stragglers, and no less than its own time (span less exposed communication) above
theirs. Without collectives the ranks' own time is compared, or the step times of their logs. Why it is late: the bucket
of L0 in which it exceeds the median rank most, and what the samples of its device say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.trace.events import NONE, Ints
from ridgeline.trace.levels.devices import DeviceState, device_states
from ridgeline.trace.levels.l0 import RankBuckets
from ridgeline.trace.levels.l1 import Collectives
from ridgeline.trace.levels.periodic import Floats, Mask, log_binomial_tail
from ridgeline.trace.logs import DeviceSamples, StepLog

Verdict = Literal["even", "straggler", "throttled by heat", "at the power limit", "low clock", "slow link", "errors"]

CHANCE = 1e-3  # of being last so often, were all ranks alike
LEAST_COST = 0.005  # of the step: a rank that costs less is even
LEAST_SLOW = 0.02  # of the median rank's own time or clock
HELD = 0.2  # share of loaded samples below which a device was not held back
PARTS = ("compute", "exposed_copy", "memset", "other", "gc_gap", "input_gap", "sync_gap", "launch_gap",
         "framework_gap", "queue_gap", "unknown_gap")  # fmt: skip


@dataclass(frozen=True)
class RankState:
    """One rank. Seconds are per step; None where the inputs do not say.

    ``own_s``: the step less exposed communication. ``last`` of ``calls`` matched collectives it was last, ``late_s``
    behind the second to last, summed over them. ``cost_s``: what the step would gain were it as fast as the others.
    ``excess``: bucket -> seconds above the median rank. ``reason`` is a sentence.
    """

    label: str
    step_s: float | None = None
    own_s: float | None = None
    calls: int = 0
    last: int = 0
    late_s: float = 0.0
    cost_s: float = 0.0
    excess: Mapping[str, float] = field(default_factory=dict)
    device: DeviceState | None = None
    verdict: Verdict = "even"
    reason: str = ""


@dataclass(frozen=True, eq=False)
class RankSpread:
    """All ranks. ``step_s``: mean step. ``wait_s``: exposed wait for other ranks, per step, mean over ranks.

    ``own_spread``: slowest over median own time, less one. ``clock_s``: compute seconds per step that the slowest
    clock (of ``clock_rank``) costs against the reference clock, ``clock_mhz`` and ``reference_mhz`` beside it; None
    without compute times or clocks. ``basis``: what lateness was judged by.
    """

    ranks: tuple[RankState, ...]
    step_s: float | None
    basis: Literal["collectives", "own time", "step logs", "none"]
    wait_s: float | None = None
    own_spread: float | None = None
    clock_s: float | None = None
    clock_mhz: float | None = None
    reference_mhz: float | None = None
    clock_rank: str = ""
    notes: tuple[str, ...] = ()
    path: str = ""

    def judged(self, *verdicts: Verdict) -> tuple[RankState, ...]:
        """The ranks with some verdict, dearest first."""
        return tuple(sorted((r for r in self.ranks if r.verdict in verdicts), key=lambda r: -r.cost_s))


def rank_spread(
    *,
    logs: Sequence[StepLog] = (),
    buckets: Sequence[RankBuckets] = (),
    collectives: Collectives | None = None,
    samples: Sequence[DeviceSamples] = (),
    power_limit_w: float | None = None,
) -> RankSpread | None:
    """Compare the ranks of a job; None where fewer than two ranks and no device are seen.

    Device samples are one table a host, hosts in rank order; rank r is device r modulo the devices of a host.
    """
    labels = _labels(logs, buckets, collectives)
    devices = device_states(samples, power_limit_w)
    if len(labels) < 2 and not devices:
        return None
    if len(labels) < 2:
        labels = tuple(f"rank{i}" for i in range(len(devices)))
    placed = _placed(labels, devices)
    step = _step_s(logs, buckets)
    own = _own(labels, buckets)
    late = _raised(_late(labels, collectives, buckets, logs), own)
    excess = _excess(labels, buckets)
    ranks = tuple(
        _judge(
            RankState(
                label, _of(logs, label), own.get(label), late.calls.get(label, 0), late.last.get(label, 0),
                late.late_s.get(label, 0.0), late.cost_s.get(label, 0.0), excess.get(label, {}), placed.get(label),
            ),
            step,
        )
        for label in labels
    )  # fmt: skip
    notes = list(late.notes)
    if devices and len(devices) != len(labels):
        notes.append(f"{len(devices)} devices were sampled for {len(labels)} ranks: joined by index as far as they go")
    path = _path(buckets, logs, samples)
    return RankSpread(
        ranks, step, late.basis, late.wait_s, _spread(own), *_clock(placed, buckets), notes=tuple(notes), path=path
    )


def _path(buckets: Sequence[RankBuckets], logs: Sequence[StepLog], samples: Sequence[DeviceSamples]) -> str:
    paths = [*(rank.path for rank in buckets), *(log.path for log in logs), *(host.path for host in samples)]
    return next(iter(paths), "")


def _labels(
    logs: Sequence[StepLog], buckets: Sequence[RankBuckets], collectives: Collectives | None
) -> tuple[str, ...]:
    if collectives is not None:
        return collectives.labels
    if buckets:
        return tuple(rank.label for rank in buckets)
    return tuple(dict.fromkeys(log.label for log in logs))


def _placed(labels: Sequence[str], devices: Sequence[DeviceState]) -> dict[str, DeviceState]:
    """The device of each rank: by the number in its label, host after host."""
    numbers = {label: int(tail) if (tail := label.removeprefix("rank")).isdigit() else i
               for i, label in enumerate(labels)}  # fmt: skip
    return {label: devices[n] for label, n in numbers.items() if n < len(devices)}


def _of(logs: Sequence[StepLog], label: str) -> float | None:
    return next((float(np.median(log.seconds)) for log in logs if log.label == label), None)


def _step_s(logs: Sequence[StepLog], buckets: Sequence[RankBuckets]) -> float | None:
    if buckets:
        return max(rank.mean_s("span") for rank in buckets)
    return max((float(np.median(log.seconds)) for log in logs), default=None)


def _own(labels: Sequence[str], buckets: Sequence[RankBuckets]) -> dict[str, float]:
    return {rank.label: rank.mean_s("span") - rank.mean_s("exposed_comm") for rank in buckets if rank.label in labels}


def _spread(own: Mapping[str, float]) -> float | None:
    values = list(own.values())
    middle = float(np.median(values)) if values else 0.0
    return max(values) / middle - 1 if middle > 0 and len(values) > 1 else None


def _excess(labels: Sequence[str], buckets: Sequence[RankBuckets]) -> dict[str, dict[str, float]]:
    """By rank, how many seconds per step each bucket lies above the median over ranks."""
    if len(buckets) < 2:
        return {}
    table = np.array([[rank.mean_s(part) for part in PARTS] for rank in buckets])
    above = table - np.median(table, axis=0)
    return {
        rank.label: {part: float(v) for part, v in zip(PARTS, row, strict=True) if v > 0}
        for rank, row in zip(buckets, above, strict=True)
        if rank.label in labels
    }


@dataclass(frozen=True)
class _Lateness:
    """By label: matched calls, how often last, seconds per step behind the second to last, and the cost."""

    basis: Literal["collectives", "own time", "step logs", "none"] = "none"
    calls: Mapping[str, int] = field(default_factory=dict)
    last: Mapping[str, int] = field(default_factory=dict)
    late_s: Mapping[str, float] = field(default_factory=dict)
    cost_s: Mapping[str, float] = field(default_factory=dict)
    wait_s: float | None = None
    notes: tuple[str, ...] = ()


def _late(
    labels: Sequence[str], collectives: Collectives | None, buckets: Sequence[RankBuckets], logs: Sequence[StepLog]
) -> _Lateness:
    if collectives is not None and (collectives.instances.match != NONE).any():
        return _by_collectives(collectives)
    own = _own(labels, buckets)
    if len(own) > 1:
        return _by_own("own time", {label: np.atleast_1d(value) for label, value in own.items()})
    by_log = {log.label: log.seconds for log in logs}
    return _by_own("step logs", by_log) if len(by_log) > 1 else _Lateness()


def _by_own(basis: Literal["own time", "step logs"], times: Mapping[str, Floats]) -> _Lateness:
    """The slowest rank costs what lies between it and the next."""
    typical = {label: float(np.median(values)) for label, values in times.items()}
    order = sorted(typical, key=lambda label: -typical[label])
    first, second = order[0], order[1]
    cost = typical[first] - typical[second]
    middle = float(np.median(list(typical.values())))
    found = {first: cost} if typical[first] > (1 + LEAST_SLOW) * middle else {}
    return _Lateness(basis, late_s=found, cost_s=found, notes=("no collective was matched over ranks",))


@dataclass(frozen=True, eq=False)
class _Calls:
    """Matched calls (calls, ranks): start (ns, NONE where a rank has no part) and exposed wait; the step of each."""

    start: Ints
    wait: Ints
    step: Ints
    taking_part: Mask


def _calls(collectives: Collectives) -> _Calls:
    found = collectives.instances
    rows = np.flatnonzero((found.match != NONE) & (found.steady == 1))
    rows = rows if len(rows) else np.flatnonzero(found.match != NONE)
    ids, call = np.unique(found.match[rows], return_inverse=True)
    shape = (len(ids), len(collectives.labels))
    start, wait = np.full(shape, NONE, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    step, part = np.full(len(ids), NONE, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
    start[call, found.rank[rows]] = found.start[rows]
    wait[call, found.rank[rows]] = found.exposed_wait[rows]
    part[call, found.rank[rows]] = True
    step[call] = found.step[rows]
    several = part.sum(axis=1) > 1
    return _Calls(start[several], wait[several], step[several], part[several])


def _by_collectives(collectives: Collectives) -> _Lateness:
    calls, n = _calls(collectives), len(collectives.labels)
    if not len(calls.start):
        return _Lateness()
    far = np.iinfo(np.int64).min
    start = np.where(calls.taking_part, calls.start, far)
    last = np.argmax(start, axis=1)
    ordered = np.sort(start, axis=1)
    behind = ordered[:, -1] - ordered[:, -2]
    due = behind > (collectives.spread_ns or 0)  # closer than the clocks agree is no order
    steps = max(len(np.unique(calls.step)), 1)
    counts, lasts = calls.taking_part.sum(axis=0), np.bincount(last[due], minlength=n)
    slow = _stragglers(calls, last, due, lasts)
    cost = _costs(calls, last, due, slow) * 1e-9 / steps
    late = np.bincount(last[due], weights=behind[due], minlength=n) * 1e-9 / steps

    def named(values: Any) -> dict[str, Any]:
        return {label: values[i].item() for i, label in enumerate(collectives.labels)}

    wait = float(calls.wait.sum()) * 1e-9 / steps / n
    notes = () if due.all() else (f"{int((~due).sum())} calls start closer together than the clocks agree",)
    return _Lateness("collectives", named(counts), named(lasts), named(late), named(cost), wait, notes)


def _raised(late: _Lateness, own: Mapping[str, float]) -> _Lateness:
    """The cost of a single straggler by calls, raised to the difference of own times where that is larger.

    A wait also moves the calls behind it on the stream, which then start together and show no late rank.
    """
    slow = [label for label, cost in late.cost_s.items() if cost > 0]
    others = [value for label, value in own.items() if label not in slow]
    if late.basis != "collectives" or len(slow) != 1 or not others:
        return late
    cost = max(late.cost_s[slow[0]], own.get(slow[0], 0.0) - max(others))
    return replace(late, cost_s={**late.cost_s, slow[0]: cost})


def _stragglers(calls: _Calls, last: Ints, due: Mask, lasts: Ints) -> Mask:
    """Ranks that are last more often than chance and that the others wait for most in more than half of the steps."""
    n = calls.start.shape[1]
    slow = np.zeros(n, dtype=np.bool_)
    waited = calls.wait.sum(axis=1) / np.maximum(calls.taking_part.sum(axis=1) - 1, 1)
    steps, at = np.unique(calls.step, return_inverse=True)
    blame = np.zeros((len(steps), n))
    np.add.at(blame, (at[due], last[due]), waited[due])
    for rank in range(n):
        mine = calls.taking_part[:, rank] & due
        chance = float((1 / calls.taking_part[mine].sum(axis=1)).mean()) if mine.any() else 1.0
        if chance < 1 and log_binomial_tail(int(lasts[rank]), int(mine.sum()), chance) < np.log(CHANCE):
            share = blame[:, rank] / np.maximum(blame.sum(axis=1), 1.0)
            slow[rank] = (share > 1.5 * chance).mean() > 0.5
    return slow


def _costs(calls: _Calls, last: Ints, due: Mask, slow: Mask) -> Floats:
    """ns by rank: of each call a straggler is last in, the shortest exposed wait among the other ranks."""
    n = calls.start.shape[1]
    others = calls.taking_part & ~slow[None, :]
    wait = np.where(others, calls.wait, np.iinfo(np.int64).max).min(axis=1)
    counted = due & slow[last] & others.any(axis=1)
    return np.bincount(last[counted], weights=wait[counted], minlength=n).astype(np.float64)


def _clock(
    placed: Mapping[str, DeviceState], buckets: Sequence[RankBuckets]
) -> tuple[float | None, float | None, float | None, str]:
    """(compute seconds that the slowest clock costs, that clock, the reference clock, whose clock it is)."""
    known = {label: d for label, d in placed.items() if d.clock_ratio and d.clock_mhz}
    if not known:
        return None, None, None, ""
    slowest = min(known, key=lambda label: known[label].clock_ratio or 1.0)
    device = known[slowest]
    assert device.clock_mhz is not None
    assert device.clock_ratio is not None
    compute = next((rank.mean_s("compute") for rank in buckets if rank.label == slowest), None)
    lost = None if compute is None else compute * max(0.0, 1 - device.clock_ratio)
    return lost, device.clock_mhz, device.clock_mhz / device.clock_ratio, slowest


def _judge(rank: RankState, step_s: float | None) -> RankState:
    """The verdict: what holds the device back goes before lateness, which it explains."""
    verdict, reason = _device_verdict(rank.device)
    dear = rank.cost_s > 0 and (step_s is None or rank.cost_s >= LEAST_COST * step_s)
    if dear:
        where = max(rank.excess, key=lambda part: rank.excess[part], default="")
        largest = rank.excess.get(where, 0.0)
        excess = f"{largest * 1e3:.3g} ms per step more {where.replace('_', ' ')} than the median rank" if where else ""
        if verdict in ("even", "slow link", "errors"):
            verdict, reason = "straggler", "; ".join(filter(None, (excess, reason)))
        else:
            reason = "; ".join(filter(None, (reason, excess)))
    return replace(rank, verdict=verdict, reason=reason)


def _device_verdict(device: DeviceState | None) -> tuple[Verdict, str]:
    if device is None:
        return "even", ""
    slow = device.clock_ratio is not None and device.clock_ratio < 1 - LEAST_SLOW
    clock = f"{device.clock_mhz:.0f} MHz under load, {device.clock_ratio:.0%} of the best" if slow else ""
    said = "reported by the driver" if device.reported else "judged by temperature and power"
    if slow and (device.thermal or 0) >= HELD:
        temp = f" at {device.temp_c:.0f} C" if device.temp_c is not None else ""
        return "throttled by heat", f"{clock}{temp}: heat in {device.thermal:.0%} of samples, {said}"
    if slow and (device.power or 0) >= HELD:
        return "at the power limit", f"{clock}: power in {device.power:.0%} of samples, {said}"
    if slow:
        return "low clock", f"{clock}, and neither heat nor power explains it"
    if device.slow_link:
        name, share = device.slow_link
        return "slow link", f"{name.removesuffix('_mb_s').replace('_', ' ')} at {share:.0%} of its host's median"
    if device.errors:
        return "errors", ", ".join(f"{name.replace('_', ' ')}: {count:g}" for name, count in device.errors.items())
    return "even", ""


def quantities(spread: RankSpread) -> dict[str, Quantity]:
    """``ranks.step``, ``ranks.wait``, ``ranks.clock_cost``, and ``rank3.late_cost`` of ranks that cost, in seconds."""
    source = Source(spread.path or "the ranks", spread.basis)
    named = {"ranks.step": (spread.step_s, "Step of the slowest rank"),
             "ranks.wait": (spread.wait_s, "Exposed wait for other ranks, per step"),
             "ranks.clock_cost": (spread.clock_s, "Compute lost to the slowest clock, per step")}  # fmt: skip
    found = {
        name: leaf(name, value, "s", "measured", source).titled(label)
        for name, (value, label) in named.items()
        if value is not None
    }
    for rank in spread.ranks:
        if rank.cost_s > 0:
            cost = leaf(f"{rank.label}.late_cost", rank.cost_s, "s", "measured", source)
            found[f"{rank.label}.late_cost"] = cost.titled(f"Wait for {rank.label}, per step")
    return found
