"""Pipeline schedules, executed event by event: when each stage works on which micro-batch, and where it waits.

A device runs one operation at a time: the forward pass F of a micro-batch through one of its stages, the backward
pass B, and under zero-bubble schedules the weight gradients W apart from it. F waits for the stage before, B for the
stage behind, W for its own B; a tensor that crosses devices arrives ``transfer_s`` later.

``gpipe``        all F, then all B (Huang et al. 2019, arXiv:1811.06965)
``1f1b``         one F, one B, at most as many micro-batches in flight as stages behind (Narayanan et al. 2019, 2021)
``interleaved``  several stages per device, in rounds of as many micro-batches as devices (arXiv:2104.04473, 2.2)
``zb-h1``        W fills the bubble, in the memory of 1F1B (Qi et al. 2023, arXiv:2401.10241)
``dualpipe``     micro-batches from both ends, each device holding two stages (DeepSeek-V3, arXiv:2412.19437, 3.2.1)

All but the last run in their fixed order. ``dualpipe`` is a list schedule under the same rules and memory: B before F
before W, whatever is ready. Its overlap of one batch's communication with another's computation is not modelled
here: give the ``transfer_s`` that is left exposed.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InfeasibleError, InputError, did_you_mean

Array = NDArray[np.float64]
SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1", "dualpipe")
_SPLITS_BACKWARD = ("zb-h1", "dualpipe")
_RANK = {"B": 0, "F": 1, "W": 2}
_MOST = 1_000_000  # operations of one simulation


class Op(NamedTuple):
    """One operation: F, B or W of a micro-batch at a stage (of the V stages that the model is cut into)."""

    kind: str
    stage: int
    micro: int


@dataclass(frozen=True)
class Stages:
    """Seconds that one micro-batch takes at each of the model's V stages, shape (V,) each.

    ``backward_s`` holds the gradients of the inputs and ``weight_s`` those of the weights; schedules that do not
    split the backward pass run them as one. ``transfer_s`` is what one hand-over between devices adds.
    """

    forward_s: Array
    backward_s: Array
    weight_s: Array
    transfer_s: float = 0.0

    @classmethod
    def even(
        cls, count: int, forward_s: float, backward_s: float, weight_s: float, transfer_s: float = 0.0
    ) -> "Stages":
        """As many equal stages."""
        forward, backward, weight = (np.full(count, seconds) for seconds in (forward_s, backward_s, weight_s))
        return cls(forward, backward, weight, transfer_s)


@dataclass(frozen=True)
class Timeline:
    """What ran when. ``ops`` with ``start_s``, ``end_s`` and ``device`` (n,), in order of their start.

    ``step_s`` is the end of the last operation, ``busy_s`` (devices,) what each device worked, ``held`` (devices,)
    the most stage inputs that it kept for a backward pass at once.
    """

    ops: tuple[Op, ...]
    device: NDArray[np.int64]
    start_s: Array
    end_s: Array
    step_s: float
    busy_s: Array
    held: NDArray[np.int64]

    @property
    def bubble(self) -> float:
        """The share of all devices' time in which they wait."""
        return 1 - float(self.busy_s.sum()) / (self.step_s * len(self.busy_s))


@dataclass(frozen=True)
class _Job:
    """A schedule to run: the stages, where each operation runs, and whether W is split from B."""

    stages: Stages
    devices: int
    split: bool
    place: Callable[[Op], int]
    times: Mapping[str, list[float]]

    def seconds(self, op: Op) -> float:
        return self.times[op.kind][op.stage]

    def needs(self, op: Op) -> Op | None:
        """What must be done before, if anything."""
        if op.kind == "W":
            return Op("B", op.stage, op.micro)
        if op.kind == "F":
            return Op("F", op.stage - 1, op.micro) if op.stage else None
        turns = op.stage == len(self.stages.forward_s) - 1
        return Op("F", op.stage, op.micro) if turns else Op("B", op.stage + 1, op.micro)


def simulate(schedule: str, devices: int, micro_batches: int, stages: Stages) -> Timeline:
    """Run one step. The V stages are spread over ``devices`` in turn: stage v on device v % devices.

    ``dualpipe`` takes as many stages as devices and runs them from both ends, half of the micro-batches each way.
    Raises `InfeasibleError` where the schedule cannot run with these numbers, `InputError` for bad input.
    """
    count = _checked(schedule, devices, micro_batches, stages)
    split = schedule in _SPLITS_BACKWARD
    half = micro_batches // 2

    def place(op: Op) -> int:
        turned = schedule == "dualpipe" and op.micro >= half
        return devices - 1 - op.stage if turned else op.stage % devices

    backward = stages.backward_s + (0.0 if split else stages.weight_s)
    times = {"F": stages.forward_s.tolist(), "B": backward.tolist(), "W": stages.weight_s.tolist()}
    job = _Job(stages, devices, split, place, times)
    if schedule == "dualpipe":
        return _timeline(job, _greedy(job, count, micro_batches))
    orders = [_order(schedule, device, devices, count // devices, micro_batches) for device in range(devices)]
    return _timeline(job, _in_order(job, orders))


def _checked(schedule: str, devices: int, micro_batches: int, stages: Stages) -> int:
    if schedule not in SCHEDULES:
        hint = did_you_mean(schedule, SCHEDULES, "one of " + ", ".join(SCHEDULES))
        raise InputError.expected("a pipeline schedule", schedule, where="schedule", hint=hint)
    for name, value in {"stages": devices, "micro-batches": micro_batches}.items():
        if value < 1:
            raise InputError.expected("at least 1", value, where=f"the pipeline's {name}")
    times = np.concatenate([stages.forward_s, stages.backward_s, stages.weight_s, [stages.transfer_s]])
    if not np.all(np.isfinite(times) & (times >= 0)):
        raise InputError.expected("times of at least 0 s", float(np.min(times)), where="the pipeline's stages")
    count = len(stages.forward_s)
    if count % devices or (count != devices and schedule != "interleaved"):
        text = f"{devices} stages" if schedule != "interleaved" else f"a multiple of {devices} stages"
        raise InputError.expected(text, count, where=f"the pipeline's stages ({schedule})")
    if schedule == "interleaved" and micro_batches % devices:
        more = -(-micro_batches // devices) * devices
        text = f"Expected a multiple of {devices} micro-batches, got {micro_batches}, at the interleaved schedule"
        raise InfeasibleError(text, limit="rounds of as many micro-batches as devices", nearest=f"{more} micro-batches")
    if schedule == "dualpipe" and (micro_batches % 2 or devices % 2):
        text = f"Expected even numbers, got {micro_batches} micro-batches on {devices} stages, at the dualpipe schedule"
        nearest = f"{micro_batches + micro_batches % 2} micro-batches on {devices + devices % 2} stages"
        raise InfeasibleError(text, limit="half of the micro-batches from each end", nearest=nearest)
    if count * micro_batches * 3 > _MOST:
        raise InputError.expected(f"at most {_MOST:,} operations", count * micro_batches * 3, where="the pipeline")
    return count


def _order(schedule: str, device: int, devices: int, chunks: int, micro_batches: int) -> list[Op]:
    """The fixed order of one device."""
    if schedule == "zb-h1":
        return _zero_bubble(device, devices, micro_batches)
    total = chunks * micro_batches
    if schedule == "gpipe":
        kinds = [("F", i) for i in range(total)] + [("B", i) for i in range(total)]
    else:
        early = devices - device - 1 if chunks == 1 else 2 * (devices - device - 1) + (chunks - 1) * devices
        early = min(early, total)
        kinds = [("F", i) for i in range(early)]
        kinds += [pair for i in range(total - early) for pair in (("F", early + i), ("B", i))]
        kinds += [("B", i) for i in range(total - early, total)]
    return [_nth(kind, i, device, devices, chunks) for kind, i in kinds]


def _nth(kind: str, index: int, device: int, devices: int, chunks: int) -> Op:
    """The index-th F or B of a device: rounds of as many micro-batches as devices, chunk after chunk."""
    if chunks == 1:
        return Op(kind, device, index)
    rounds, inside = divmod(index, devices * chunks)
    chunk, micro = divmod(inside, devices)
    if kind == "B":
        chunk = chunks - 1 - chunk
    return Op(kind, chunk * devices + device, rounds * devices + micro)


def _zero_bubble(device: int, devices: int, micro_batches: int) -> list[Op]:
    """1F1B with W as late as its memory allows: as many inputs in flight on every device as on the first."""
    early = min(devices - device, micro_batches)
    order = [Op("F", device, i) for i in range(early)]
    for i in range(micro_batches):
        order.append(Op("B", device, i))
        if i >= device:
            order.append(Op("W", device, i - device))
        if early + i < micro_batches:
            order.append(Op("F", device, early + i))
    return order + [Op("W", device, i) for i in range(max(0, micro_batches - device), micro_batches)]


_Spans = dict[Op, tuple[float, float]]


def _ready_s(job: _Job, op: Op, spans: Mapping[Op, tuple[float, float]]) -> float | None:
    """When its input is there, or None while that is not known."""
    before = job.needs(op)
    if before is None:
        return 0.0
    if before not in spans:
        return None
    return spans[before][1] + (job.stages.transfer_s if job.place(before) != job.place(op) else 0.0)


def _in_order(job: _Job, orders: list[list[Op]]) -> _Spans:
    """Each device in its order, as soon as its inputs are there."""
    spans: _Spans = {}
    clock, position = [0.0] * job.devices, [0] * job.devices
    todo = set(range(job.devices))
    while todo:
        moved = False
        for device in sorted(todo):
            order = orders[device]
            while position[device] < len(order):
                op = order[position[device]]
                ready = _ready_s(job, op, spans)
                if ready is None:
                    break
                start = max(clock[device], ready)
                clock[device] = start + job.seconds(op)
                spans[op] = (start, clock[device])
                position[device] += 1
                moved = True
            if position[device] == len(order):
                todo.discard(device)
        assert moved or not todo, "the schedule waits for itself"
    return spans


def _greedy(job: _Job, count: int, micro_batches: int) -> _Spans:
    """B before F before W, whatever is ready; a stage holds as many inputs as the stages behind it and itself."""
    spans: _Spans = {}
    waiting: list[dict[tuple[str, int], list[tuple[float, int]]]] = [defaultdict(list) for _ in range(job.devices)]
    for micro in range(micro_batches):
        heapq.heappush(waiting[job.place(Op("F", 0, micro))]["F", 0], (0.0, micro))
    held = np.zeros((job.devices, count), np.int64)
    free = [0.0] * job.devices
    events = [(0.0, device) for device in range(job.devices)]
    while events:
        now, device = heapq.heappop(events)
        op = None if now < free[device] else _choose(waiting[device], now, held[device])
        if op is None:
            continue
        end = now + job.seconds(op)
        spans[op], free[device] = (now, end), end
        held[device, op.stage] += (op.kind == "F") - (op.kind == "W")
        heapq.heappush(events, (end, device))
        for after in _unlocked(op, count):
            there = job.place(after)
            ready = end + (job.stages.transfer_s if there != device else 0.0)
            heapq.heappush(waiting[there][after.kind, after.stage], (ready, after.micro))
            heapq.heappush(events, (max(ready, free[there]), there))
    assert len(spans) == 3 * count * micro_batches, "the schedule waits for itself"
    return spans


def _choose(
    waiting: Mapping[tuple[str, int], list[tuple[float, int]]], now: float, held: NDArray[np.int64]
) -> Op | None:
    """The next operation of a device at that time, taken off its queue; None where nothing may run."""
    open_ = [
        (_RANK[kind], *queue[0], stage, kind)
        for (kind, stage), queue in waiting.items()
        if queue and queue[0][0] <= now and (kind != "F" or held[stage] < len(held) - stage)
    ]
    if not open_:
        return None
    _, _, micro, stage, kind = min(open_)
    heapq.heappop(waiting[kind, stage])
    return Op(kind, stage, micro)


def _unlocked(op: Op, count: int) -> list[Op]:
    """What an operation makes possible."""
    if op.kind == "W":
        return []
    if op.kind == "F":
        return [Op("F", op.stage + 1, op.micro)] if op.stage + 1 < count else [Op("B", op.stage, op.micro)]
    own = [Op("W", op.stage, op.micro)]
    return [Op("B", op.stage - 1, op.micro), *own] if op.stage else own


def _timeline(job: _Job, spans: _Spans) -> Timeline:
    ops = sorted(spans, key=lambda op: (spans[op][0], job.place(op)))
    device = np.array([job.place(op) for op in ops])
    start, end = (np.array([spans[op][side] for op in ops]) for side in (0, 1))
    busy: Array = np.bincount(device, end - start, minlength=job.devices).astype(float)
    kinds = np.array([op.kind for op in ops])
    held = np.zeros(job.devices, np.int64)
    for at in range(job.devices):
        mine = device == at
        held[at] = _most_held(kinds[mine], start[mine], end[mine], job.split)
    return Timeline(tuple(ops), device, start, end, float(end.max()), busy, held)


def _most_held(kinds: NDArray[np.str_], start: Array, end: Array, split: bool) -> int:
    """The most inputs that one device kept at once: from the start of an F to the end of its B, or W."""
    kept, left = start[kinds == "F"], end[kinds == ("W" if split else "B")]
    times, change = np.concatenate([left, kept]), np.repeat([-1, 1], [len(left), len(kept)])
    return int(np.cumsum(change[np.lexsort((change, times))]).max())


def split_layers(costs: Sequence[float], stages: int, before: float = 0.0, after: float = 0.0) -> tuple[int, ...]:
    """How many consecutive layers each stage gets so that the slowest stage is as fast as it can be.

    ``costs`` are seconds per layer; ``before`` and ``after`` those of the embedding and of the head, pseudo-layers
    that stay on the first and the last stage. Dynamic programming over cut points; every stage has a layer.
    Raises `InfeasibleError` for more stages than layers.
    """
    if stages < 1:
        raise InputError.expected("at least 1", stages, where="the pipeline's stages")
    if stages > len(costs):
        text = f"Expected at most {len(costs)} pipeline stages, got {stages}, at a model of {len(costs)} layers"
        raise InfeasibleError(text, limit="a layer for every stage", nearest=f"{len(costs)} stages")
    ends = np.concatenate([[0.0], np.cumsum(costs)])
    layers = len(costs)
    worst = np.full((stages + 1, layers + 1), np.inf)
    cut = np.zeros((stages + 1, layers + 1), np.int64)
    worst[0, 0] = 0.0
    for stage in range(1, stages + 1):
        extra = (before if stage == 1 else 0.0) + (after if stage == stages else 0.0)
        for upto in range(stage, layers + 1):
            slowest = np.maximum(worst[stage - 1, :upto], ends[upto] - ends[:upto] + extra)
            cut[stage, upto] = int(np.argmin(slowest))
            worst[stage, upto] = slowest[cut[stage, upto]]
    counts, upto = list[int](), layers
    for stage in range(stages, 0, -1):
        counts.append(upto - int(cut[stage, upto]))
        upto = int(cut[stage, upto])
    return tuple(reversed(counts))
