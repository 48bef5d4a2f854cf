"""A schedule in time, on every rank: host threads run ahead of their device, collectives start with the last rank.

All times are integer nanoseconds of one true clock. A rank is a generator that stops at each collective with the
time at which it could start and goes on with the time at which all have finished.
"""

import zlib
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from ridgeline.trace.drills.schedule import (
    COMPUTE,
    Collective,
    Copy,
    Hold,
    Host,
    Instruction,
    Item,
    Mark,
    Op,
    Schedule,
    Wait,
)

LAUNCH_NS, LATENCY_NS, BETWEEN_NS = 5_000, 4_000, 900  # a launch call; from call to start; between queued kernels
RANK_JITTER = 0.2  # of the jitter that all ranks share: each rank's own
MAIN, AUTOGRAD = 4100, 4101  # host threads
_SENT = {"_allgather_base": "AllGather_RING_LL", "_reduce_scatter_base": "ReduceScatter_Sum_bf16_RING_LL",
         "allreduce": "AllReduce_Sum_f32_TREE_LL", "all_to_all": "SendRecv"}  # fmt: skip


@dataclass
class Tape:
    """What a profiler would see of one rank: (category, name, start, duration, thread or stream, details)."""

    rank: int
    events: list[tuple[str, str, int, int, int, dict[str, Any]]] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)  # ranges of the profiled steps on the host


@dataclass
class _State:
    """Clocks of one rank."""

    schedule: Schedule
    tape: Tape
    host: int = 0
    corr: int = 0
    step: int = -1
    free: dict[int, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)

    def add(self, category: str, name: str, start: int, dur: int, lane: int, **details: Any) -> None:
        self.tape.events.append((category, name, start, dur, lane, details))

    def length(self, ns: float, key: str, *, compute: bool = True) -> int:
        """A duration with its jitter, which depends on what it is and not on what is planted beside it."""
        seed, own = self.schedule.job.seed, self.tape.rank
        factor = 1 + self.schedule.jitter * _uniform(f"{seed} {self.step} {key}")
        if compute:
            factor += RANK_JITTER * self.schedule.jitter * _uniform(f"{seed} {self.step} {key} {own}")
            factor *= self.schedule.slow.get(own, 1.0)
        return max(round(ns * factor), 300)

    def starts(self, stream: int, call: int, after: int = 0) -> int:
        """When work that is launched by a call can start."""
        return max(call + LATENCY_NS, self.free.get(stream, 0) + BETWEEN_NS, after)


def simulate(schedule: Schedule) -> list[Tape]:
    """Every rank, one step that the profiler missed first."""
    ranks = [_State(schedule, Tape(rank)) for rank in range(schedule.job.ranks)]
    running = [_run(state) for state in ranks]
    starts: list[Any] = [next(rank, None) for rank in running]
    while starts[0] is not None:
        end = max(start for start, _ in starts) + starts[0][1]
        starts = [_send(rank, end) for rank in running]
    return [state.tape for state in ranks]


def _send(rank: Generator[tuple[int, int], int, None], end: int) -> tuple[int, int] | None:
    try:
        return rank.send(end)
    except StopIteration:
        return None


def step_s(tapes: list[Tape]) -> float:
    """Mean step of the profiled ones, from start to start on the host (s)."""
    first = tapes[0].steps
    return (first[-1][1] - first[0][0]) / len(first) * 1e-9


def _run(state: _State) -> Generator[tuple[int, int], int, None]:
    for step in range(-1, state.schedule.job.steps):
        state.step = step
        begun = state.host
        if step == 0:
            state.tape.events = [e for e in state.tape.events if e[0] in _DEVICE and e[2] + e[3] > begun]
        for item in state.schedule.items:
            if isinstance(item, Collective):
                yield from _collective(state, item)
            else:
                _HANDLERS[type(item)](state, item)
        if step >= 0:
            state.tape.steps.append((begun, state.host))
            state.add("user_annotation", f"ProfilerStep#{step + 20}", begun, state.host - begun, MAIN)


_DEVICE = ("kernel", "gpu_memcpy")


def _op(state: _State, op: Op) -> None:
    thread = AUTOGRAD if op.inside and op.inside[0].startswith("autograd::") else MAIN
    begun = state.host
    for depth, name in enumerate(op.inside):
        state.add("cpu_op", name, begun + 400 * depth, op.host_ns - 800 * depth, thread)
    inner = begun + 400 * len(op.inside)
    own = op.host_ns - 800 * len(op.inside)
    types = [op.dtype if shape else "" for shape in op.shapes]
    details = {"Input Dims": [list(shape) for shape in op.shapes], "Input type": types}
    if op.concrete:
        details["Concrete Inputs"] = [*op.concrete]
    state.corr += 1
    state.add("cpu_op", op.name, inner, own, thread, **details, **{"External id": state.corr})
    call = inner + own - LAUNCH_NS - 500
    state.add("cuda_runtime", "cudaLaunchKernel", call, LAUNCH_NS, thread, correlation=state.corr)
    start = state.starts(op.stream, call)
    dur = state.length(op.ns, op.key)
    state.free[op.stream] = start + dur
    state.add("kernel", op.kernel, start, dur, op.stream, correlation=state.corr, grid=[132, 1, 1], block=[384, 1, 1],
              **{"External id": state.corr})  # fmt: skip
    state.host += op.host_ns


def _collective(state: _State, item: Collective) -> Generator[tuple[int, int], int, None]:
    state.corr += 1
    corr, begun = state.corr, state.host
    state.add("cpu_op", f"c10d::{item.kind}_", begun, 14_000, MAIN)
    state.add("cpu_op", "record_param_comms", begun + 1_000, 12_000, MAIN, **{"External id": corr})
    state.add("cuda_runtime", "cudaLaunchKernelExC", begun + 5_000, LAUNCH_NS, MAIN, correlation=corr)
    start = state.starts(item.stream, begun + 5_000, state.marks.get(item.after, 0))
    end = yield start, state.length(item.ns, item.key, compute=False)
    state.free[item.stream] = state.marks[item.key] = end
    size = item.group or state.schedule.job.ranks
    members = list(range(state.tape.rank // size * size, state.tape.rank // size * size + size))
    state.add(
        "kernel", f"ncclDevKernel_{_SENT[item.kind]}(ncclDevKernelArgsStorage<4096ul>)", start, end - start,
        item.stream, correlation=corr, grid=[16, 1, 1], block=[512, 1, 1],
        **{
            "External id": corr, "Collective name": item.kind, "dtype": item.dtype, "In msg nelems": item.in_numel,
            "Out msg nelems": item.out_numel, "Group size": size,
            "Process Group Name": str(1 + members[0] + item.group),
            "Process Group Description": f"mesh_{size}", "Process Group Ranks": str(members), "Seq": corr,
        },
    )  # fmt: skip
    state.host = begun + 14_000


def _wait(state: _State, item: Wait) -> None:
    state.free[COMPUTE] = max(state.free.get(COMPUTE, 0), state.marks.get(item.key, 0))
    state.host += 1_500


def _mark(state: _State, item: Mark) -> None:
    state.marks[item.key] = max(state.free.get(COMPUTE, 0), state.host)
    state.host += 1_500


def _copy(state: _State, item: Copy) -> None:
    state.corr += 1
    begun = state.host
    state.add("cpu_op", "aten::copy_", begun, HOST_COPY_NS, MAIN)
    state.add("cuda_runtime", "cudaMemcpyAsync", begun + 3_000, LAUNCH_NS, MAIN, correlation=state.corr)
    start = state.starts(item.stream, begun + 3_000)
    dur = state.length(item.ns, item.key, compute=False)
    state.free[item.stream] = start + dur
    state.add("gpu_memcpy", f"Memcpy HtoD ({item.memory} -> Device)", start, dur, item.stream, bytes=item.bytes,
              correlation=state.corr)  # fmt: skip
    state.host += HOST_COPY_NS


HOST_COPY_NS = 12_000


def _host(state: _State, item: Host) -> None:
    if item.ranks is not None and state.tape.rank not in item.ranks:
        return
    dur = state.length(item.ns, item.key, compute=False)
    if item.name:
        state.add("user_annotation", item.name, state.host, dur, MAIN)
    state.host += dur


def _item(state: _State, item: Item) -> None:
    begun = state.host
    state.corr += 1
    state.add("cuda_runtime", "cudaMemcpyAsync", begun + 2_000, 3_000, MAIN, correlation=state.corr)
    start = state.starts(COMPUTE, begun + 2_000)
    state.add("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", start, 1_400, COMPUTE, bytes=4, correlation=state.corr)
    state.free[COMPUTE] = start + 1_400
    until = max(begun + 8_000, start + 1_400 + 2_000)
    state.add("cuda_runtime", "cudaStreamSynchronize", begun + 6_000, until - begun - 6_000, MAIN)
    state.add("cpu_op", "aten::item", begun, until - begun + 500, MAIN)
    state.add("cpu_op", "aten::_local_scalar_dense", begun + 500, until - begun - 500, MAIN)
    state.host = until + 500 + state.length(item.host_ns, item.key, compute=False)


def _hold(state: _State, item: Hold) -> None:
    state.free[COMPUTE] = state.free.get(COMPUTE, 0) + state.length(item.ns, item.key, compute=False)


_HANDLERS: dict[type[Instruction], Any] = {
    Op: _op, Wait: _wait, Mark: _mark, Copy: _copy, Host: _host, Item: _item, Hold: _hold,
}  # fmt: skip


def _uniform(text: str) -> float:
    """A number in [-1, 1) that depends on the text alone."""
    return zlib.crc32(text.encode()) / 2**31 - 1
