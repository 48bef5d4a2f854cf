"""L2: every operation with what it computes, what it reaches, and what limits it.

Device work is grouped by the host operator that launched it, its recorded shapes and its phase; where no operator is
known, by kernel. Communication and copies over links are not operations here (they are L0 and L1). Rates are those of
the device: FLOPs or bytes over the summed durations of the kernels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ridgeline.arithmetic.hlo import HloModule
from ridgeline.core.device import Device
from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.trace import intervals
from ridgeline.trace.events import COPIES, NONE, Category, Events, Ints, Kind, Mask, Run
from ridgeline.trace.levels import fusion, l0
from ridgeline.trace.levels.families import device_named
from ridgeline.trace.levels.linking import link
from ridgeline.trace.levels.operation import Groups, Limit, Operation, Phase, group_rows, judged, phases, unfused
from ridgeline.trace.levels.recompute import Recompute, by_paths, recompute
from ridgeline.trace.levels.xla_work import index
from ridgeline.trace.readers.ncu import KernelCounters
from ridgeline.trace.steps import Steps

__all__ = ["FamilyTotal", "Limit", "Operation", "Operations", "Phase", "operations", "operations_of_run"]


@dataclass(frozen=True)
class FamilyTotal:
    """One family: kernels, device time, and FLOPs where known."""

    family: str
    kernels: int
    device_ns: int
    flops: int


@dataclass(frozen=True, eq=False)
class Operations:
    """The operations of one rank over ``steps`` steps, longest first.

    ``work_ns`` is the device time of everything here; ``unlinked_ns`` the part whose operator is not known. ``small``
    counts kernels shorter than ``SMALL_NS``: their number, their time, and the launch and framework gaps right before
    them, in ns. ``hlo`` and ``ncu`` are what was given beside the trace.
    """

    rank: str
    device: Device | None
    sm_count: int | None
    steps: int
    rows: tuple[Operation, ...]
    work_ns: int
    unlinked_ns: int
    kernels: int
    small: tuple[int, int, int]
    recompute: Recompute | None
    chains: tuple[fusion.Chain, ...] = ()
    hlo: tuple[HloModule, ...] = ()
    ncu: tuple[KernelCounters, ...] = ()

    @cached_property
    def families(self) -> tuple[FamilyTotal, ...]:
        """Totals by family, longest first."""
        keys = dict.fromkeys(row.family for row in self.rows)
        mine = {key: [row for row in self.rows if row.family == key] for key in keys}
        totals = [
            FamilyTotal(k, sum(r.kernels for r in v), sum(r.device_ns for r in v), sum(r.flops or 0 for r in v))
            for k, v in mine.items()
        ]
        return tuple(sorted(totals, key=lambda total: -total.device_ns))

    def of(self, family: str) -> tuple[Operation, ...]:
        """The rows of one family."""
        return tuple(row for row in self.rows if row.family == family)

    def per_step(self, name: str, ns: float, label: str = "") -> Quantity:
        """Time as seconds per step, a measured quantity ``<name>``."""
        source = Source("the trace", f"{self.rank}, mean over {self.steps} step{'s' if self.steps != 1 else ''}")
        return leaf(name, ns * 1e-9 / self.steps, "s", "measured", source).titled(label)


SMALL_NS = 5_000  # a launch takes the host about this long, so shorter kernels cannot keep a device busy


def operations_of_run(run: Run, device: Device | None = None, steps: Sequence[Steps] | None = None) -> Operations:
    """The operations of the rank whose device computes longest: the others wait for it."""
    busy = [int(rank.dur[_selected(rank, None)].sum()) for rank in run.ranks]
    at = int(np.argmax(busy))
    return operations(run.ranks[at], device, steps=steps[at] if steps else None, rank=run.labels()[at])


def operations(
    events: Events,
    device: Device | None = None,
    *,
    steps: Steps | None = None,
    rank: str = "",
    hlo: Sequence[HloModule] = (),
    ncu: Sequence[KernelCounters] = (),
) -> Operations:
    """The operations of one rank. ``device``: the catalog's; None takes the one that the trace names.

    With ``steps`` (and the table's ``step`` column filled by `ridgeline.trace.steps.assign`) only steady steps count.
    """
    device = device or (device_named(events.info.device) if events.info.device else None)
    known = device.sm_count if device else None
    units = events.info.sm_count or (int(known.value) if known else None)
    links = link(events)
    chosen = _selected(events, steps)
    groups = Groups.of(events, links, np.flatnonzero(chosen))
    again = recompute(events, links)
    idle = _idle_before(events, groups.rows)
    phase = phases(events, groups, links, again)
    if again.method == "none" and groups.xla.any():
        again = by_paths(events, groups.rows, phase)
    rows = judged(group_rows(events, groups, (phase, idle, index(hlo))), device, units)
    return Operations(
        rank=rank or f"rank{events.info.rank or 0}",
        device=device,
        sm_count=units,
        steps=_count(events, steps),
        rows=tuple(sorted(rows, key=lambda row: -row.device_ns)),
        work_ns=int(events.dur[groups.rows].sum()),
        unlinked_ns=int(events.dur[groups.rows[groups.holder == NONE]].sum()),
        kernels=int((events.category[groups.rows] == Category.KERNEL).sum()),
        small=_small(events, groups.rows, idle),
        recompute=again if steps is None else _within(events, again, chosen),
        chains=tuple(unfused(events, links, groups)),
        hlo=tuple(hlo),
        ncu=tuple(ncu),
    )


def _selected(events: Events, steps: Steps | None) -> Mask:
    """Device work that is neither communication nor a copy over a link, of the steady steps where they are known."""
    mask: Mask = events.on_device & ~np.isin(events.kind, (*COPIES, Kind.COMM))
    if steps is not None:
        mask &= np.isin(events.step, np.flatnonzero(steps.steady))
    return mask


def _count(events: Events, steps: Steps | None) -> int:
    if steps is not None:
        return max(1, int(steps.steady.sum()))
    return max(1, len(np.unique(events.step[events.on_device & (events.step != NONE)])))


def _small(events: Events, rows: Ints, idle: Ints) -> tuple[int, int, int]:
    """Of kernels shorter than ``SMALL_NS``: how many, how long, and the launch and framework gaps right before them.

    Other idle time before a kernel is not the price of its launch.
    """
    mine = (events.dur[rows] < SMALL_NS) & (events.category[rows] == Category.KERNEL)
    rows, idle = rows[mine], idle[mine]
    waited = 0
    if idle.any():
        parts = l0.partition(events)
        late = intervals.either(parts["launch_gap"], parts["framework_gap"])
        waited = int(intervals.covered(late, events.ts[rows] - idle, events.ts[rows]).sum())
    return len(rows), int(events.dur[rows].sum()), waited


def _within(events: Events, found: Recompute, chosen: Mask) -> Recompute:
    """The same, of the chosen rows only."""
    rows = found.rows & chosen
    kernels = rows & (events.category == Category.KERNEL)
    return replace(found, rows=rows, kernels=int(kernels.sum()), kernel_ns=int(events.dur[kernels].sum()))


def _idle_before(events: Events, rows: Ints) -> Ints:
    """How long the device had nothing to do right before each of some device rows."""
    work = np.flatnonzero(events.on_device)
    idle = np.zeros(len(work), np.int64)
    for device in np.unique(events.device[work]):
        mine = np.flatnonzero(events.device[work] == device)
        reach = np.maximum.accumulate(events.end[work[mine]])
        idle[mine[1:]] = np.maximum(events.ts[work[mine[1:]]] - reach[:-1], 0)
    found: Ints = idle[np.searchsorted(work, rows)]
    return found
