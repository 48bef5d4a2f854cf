"""One row of L2: an operator with its shapes in one phase, what it reaches and what limits it; how rows are made."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ridgeline.arithmetic import roofline
from ridgeline.core.device import DTYPES, Device
from ridgeline.core.quantity import Source, leaf
from ridgeline.trace.events import NONE, Category, Events, Ints, Mask
from ridgeline.trace.levels import fusion
from ridgeline.trace.levels.families import family_of
from ridgeline.trace.levels.gemm import Quantization, quantization
from ridgeline.trace.levels.linking import Links
from ridgeline.trace.levels.op_call import Call
from ridgeline.trace.levels.op_flops import Work, work
from ridgeline.trace.levels.recompute import Recompute, backward_rows
from ridgeline.trace.levels.xla_work import RECOMPUTE, Index, identity, is_xla, operation, phase, xla_rows, xla_work

Limit = Literal["compute bound", "memory bound", "launch bound", "unknown"]
Phase = Literal["forward", "backward", "recompute"]
_PHASES: tuple[Phase, ...] = ("forward", "backward", "recompute")


@dataclass(frozen=True)
class Operation:
    """All calls of one operator with the same shapes in one phase.

    ``name`` is empty where no operator is known. ``kernel`` is the one that takes most time. ``device_ns`` is the
    time of all kernels, ``idle_ns`` how long the device waited right before them. ``bound_ns`` is the roofline's lower
    bound of all calls, None where it is not known. ``work`` is that of one call. ``dtype`` is what the matrix unit
    computes in: ``tf32`` for fp32 operands in a TF32 kernel.
    """

    name: str
    kernel: str
    family: str
    phase: Phase
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    work: Work | None
    calls: int
    kernels: int
    device_ns: int
    idle_ns: int
    limit: Limit = "unknown"
    bound_ns: float | None = None
    quantization: Quantization | None = None

    @property
    def label(self) -> str:
        """The operator, else the kernel."""
        return self.name or self.kernel

    @property
    def flops(self) -> int | None:
        """Of all calls."""
        return None if self.work is None or self.work.flops is None else self.work.flops * self.calls

    @property
    def bytes(self) -> int | None:
        """Of all calls, each operand and result once."""
        return None if self.work is None or self.work.bytes is None else self.work.bytes * self.calls

    @property
    def flops_per_s(self) -> float | None:
        """Achieved FLOP/s while its kernels run."""
        return self.flops / (self.device_ns * 1e-9) if self.flops and self.device_ns else None

    @property
    def bytes_per_s(self) -> float | None:
        """Achieved B/s while its kernels run, by the least traffic there can be."""
        return self.bytes / (self.device_ns * 1e-9) if self.bytes and self.device_ns else None

    @property
    def intensity(self) -> float | None:
        """FLOP per byte."""
        return self.flops / self.bytes if self.flops and self.bytes else None

    @property
    def efficiency(self) -> float | None:
        """The roofline's bound over the time taken."""
        return self.bound_ns / self.device_ns if self.bound_ns is not None and self.device_ns else None


_UNKNOWN: tuple[float | None, Limit] = (None, "unknown")
_TF32 = ("tf32", "s1688gemm", "s16816gemm_f32")


@dataclass(frozen=True, eq=False)
class Groups:
    """Device rows, and for each the group of equal operations: by operator and details, else by kernel name.

    ``holder`` is the event that has the details: the operator, or the kernel itself where XLA made it; NONE if none.
    """

    rows: Ints
    holder: Ints
    xla: Mask
    index: Ints
    first: Ints
    name: Ints
    meta: Ints

    @classmethod
    def of(cls, events: Events, links: Links, rows: Ints) -> "Groups":
        """Group some device rows."""
        xla = xla_rows(events, rows)
        op = np.where(xla, rows, links.op[rows])
        width = len(events.metas) + 1
        same = _same_details(events, op)
        by_op = events.name[op] * width + same[events.meta[op] + 1]
        key = np.where(op != NONE, by_op, len(events.names) * width + events.name[rows])
        _, first, index = np.unique(key, return_index=True, return_inverse=True)
        name = np.where(op[first] != NONE, events.name[op[first]], NONE)
        meta = np.where(op[first] != NONE, events.meta[op[first]], NONE)
        return cls(rows, op, xla, index.astype(np.int64), first, name, meta)


def _same_details(events: Events, op: Ints) -> Ints:
    """For each detail (shifted by one: 0 is none) the first with equal shapes, types, flags and whole numbers.

    Scalars with a fraction (a learning rate) change what is computed, not how much.
    """
    first: dict[Hashable, int] = {}
    same = np.zeros(len(events.metas) + 1, np.int64)
    for index in np.unique(events.meta[op[op != NONE]]):
        if index != NONE:
            call = Call.of(events.metas[index])
            scalars = tuple(text for text in call.concrete if "." not in text)
            key = (call.shapes, call.dtypes, scalars, identity(events.metas[index]))
            same[index + 1] = first.setdefault(key, int(index) + 1)
    return same


def phases(events: Events, groups: Groups, links: Links, again: Recompute) -> Ints:
    """For each device row an index into the phases: by backward nodes, or by the paths of JAX."""
    found = backward_rows(events, links)[groups.rows].astype(np.int64)
    found[again.rows[groups.rows]] = RECOMPUTE
    if groups.xla.any():
        of_group = np.array([phase(events.metas[meta]) if meta != NONE else 0 for meta in groups.meta], np.int64)
        found[groups.xla] = of_group[groups.index[groups.xla]]
    return found


def group_rows(events: Events, groups: Groups, found: tuple[Ints, Ints, Index]) -> list[Operation]:
    """One row per group and phase, without a verdict yet. ``found``: phases, idle times, and the HLO by name."""
    phase, idle, known = found
    if not len(groups.rows):
        return []
    key = groups.index * len(_PHASES) + phase
    _, first, index = np.unique(key, return_index=True, return_inverse=True)
    main = _main_kernels(events, groups.rows, index)
    sums = [np.bincount(index, weights=values) for values in (events.dur[groups.rows], idle)]
    kernels = np.bincount(index)
    calls = _calls(groups.holder, index, kernels)
    rows = []
    for i, at in enumerate(first):
        group = int(groups.index[at])
        numbers = {"calls": calls[i], "kernels": kernels[i], "device_ns": sums[0][i], "idle_ns": sums[1][i]}
        plain = {key: int(value) for key, value in numbers.items()}
        kernel = events.names[main[i]]
        rows.append(_row(events, groups, (group, kernel, known), {"phase": _PHASES[phase[at]], **plain}))
    return rows


def _row(events: Events, groups: Groups, place: tuple[int, str, Index], numbers: Mapping[str, Any]) -> Operation:
    group, kernel, known = place
    name = events.names[groups.name[group]] if groups.name[group] != NONE else ""
    meta = events.metas[groups.meta[group]] if groups.meta[group] != NONE else {}
    if is_xla(meta):
        does = xla_work(name, meta, known)
        family = family_of(operation(meta), kernel)
        return Operation(name, kernel, family, shapes=(), dtype=does.dtype if does else "", work=does, **numbers)
    does = work(name, meta) if name and meta else None
    dtype = does.dtype if does else ""
    if dtype == "fp32" and any(mark in kernel.lower() for mark in _TF32):
        dtype = "tf32"
    shapes = Call.of(meta).shapes if meta else ()
    return Operation(name, kernel, family_of(name, kernel), shapes=shapes, dtype=dtype, work=does, **numbers)


def _main_kernels(events: Events, rows: Ints, index: Ints) -> Ints:
    """For each group the name of the kernel that takes most time."""
    width = len(events.names)
    pair, inverse = np.unique(index * width + events.name[rows], return_inverse=True)
    time = np.bincount(inverse, weights=events.dur[rows])
    order = np.lexsort((time, pair // width))
    last = np.r_[np.flatnonzero(np.diff(pair[order] // width)), len(order) - 1]
    found: Ints = pair[order[last]] % width
    return found


def _calls(op: Ints, index: Ints, kernels: Ints) -> Ints:
    """Distinct operators per group; where none is known every kernel is a call."""
    linked = op != NONE
    pairs = np.unique(np.stack([index[linked], op[linked]]), axis=1) if linked.any() else np.empty((2, 0), np.int64)
    counts = np.bincount(pairs[0], minlength=len(kernels))
    found: Ints = np.where(counts > 0, counts, kernels)
    return found


def judged(rows: list[Operation], device: Device | None, units: int | None) -> list[Operation]:
    """The rows with the roofline's verdict and, for matmuls, their quantization."""
    bounds = _bounds(rows, device)
    gemms = [i for i, row in enumerate(rows) if row.work is not None and row.work.gemm is not None]
    tile = int(device.tile.value) if device and device.tile else None
    shapes = [w.gemm for i in gemms if (w := rows[i].work) is not None and w.gemm is not None]
    waste = dict(zip(gemms, quantization(shapes, [rows[i].kernel for i in gemms], units, tile), strict=True))
    judged = []
    for i, row in enumerate(rows):
        bound, limit = bounds.get(i, _UNKNOWN)
        limit = "launch bound" if row.idle_ns > row.device_ns else limit
        judged.append(replace(row, limit=limit, bound_ns=bound, quantization=waste.get(i)))
    return judged


def _bounds(rows: list[Operation], device: Device | None) -> dict[int, tuple[float, Limit]]:
    """Row -> lower bound of all its calls (ns) and what sets it, where FLOPs or bytes and the device's rates are known.

    An operator without matmuls is judged by its bytes alone.
    """
    if device is None or device.hbm_bandwidth is None:
        return {}
    at, flops, moved, peaks = [], [], [], []
    for i, row in enumerate(rows):
        peak = device.peak(row.dtype) if row.dtype in DTYPES else None
        if row.bytes and (not row.flops or peak is not None):
            at.append(i)
            flops.append(float(row.flops or 0))
            moved.append(float(row.bytes))
            peaks.append(float(peak.value) if peak is not None else 1.0)
    if not at:
        return {}
    source = Source("the trace", "shapes of operators")
    amount = roofline.Work(
        leaf("l2.flops", np.array(flops), "FLOP", "measured", source),
        leaf("l2.bytes", np.array(moved), "B", "measured", source),
    )
    rates = roofline.Rates(
        leaf("l2.peak", np.array(peaks), "FLOP/s/chip", "measured", source), device.hbm_bandwidth
    )  # fmt: skip
    found = roofline.bounds(amount, rates, "l2")
    lower, names = np.asarray(found.lower.base) / 1e-9, np.atleast_1d(found.binding)
    return {i: (float(lower[j]), _limit(str(names[j]))) for j, i in enumerate(at)}


def _limit(resource: str) -> Limit:
    return "compute bound" if resource == "compute" else "memory bound"


def unfused(events: Events, links: Links, groups: Groups) -> list[fusion.Chain]:
    """Unfused chains: kernels whose operator launches one kernel and is fusible."""
    if not len(groups.rows):
        return []
    facts = [_fusible(events, groups, group) for group in range(len(groups.first))]
    table = np.array(facts, dtype=np.int64).reshape(-1, 3)
    order = np.lexsort((events.ts[groups.rows], events.stream[groups.rows], events.device[groups.rows]))
    rows, index = groups.rows[order], groups.index[order]
    op = links.op[rows]
    alone = np.bincount(op[op != NONE], minlength=len(events))[op] == 1
    moved, elements, item = (table[index, column] for column in range(3))
    usable = alone & (op != NONE) & (events.category[rows] == Category.KERNEL)
    elements = np.where(usable, elements, NONE)
    names = [events.names[name] if name != NONE else "" for name in groups.name]
    distinct = list(dict.fromkeys(names))
    label = np.array([distinct.index(name) for name in names], dtype=np.int64)[index]
    return fusion.chains(events, fusion.Kernels(rows, label, moved, elements, item, distinct))


def _fusible(events: Events, groups: Groups, group: int) -> tuple[int, int, int]:
    """Bytes, elements of the largest array and bytes of an element of one group; NONE where it does not fuse."""
    if groups.name[group] == NONE or groups.meta[group] == NONE:
        return NONE, NONE, 0
    name, meta = events.names[groups.name[group]], events.metas[groups.meta[group]]
    call = Call.of(meta)
    does = work(name, meta)
    if family_of(name, "") not in fusion.FUSIBLE or name.startswith("triton_") or does is None or not does.bytes:
        return NONE, NONE, 0
    largest = max(call.tensors, key=call.size)
    return does.bytes, int(np.prod(call.shapes[largest], dtype=object)), call.item(largest)
