"""Which plans are worth showing: simplicity counted, the Pareto front of three aims, one best plan a mesh."""

import numpy as np
from numpy.typing import NDArray

from ridgeline.plan.steps.layout import RECOMPUTES, Ints, Layout
from ridgeline.plan.steps.machine import Array
from ridgeline.plan.steps.pipeline import SCHEDULES

Rows = NDArray[np.int64]
_ROOM = 0.05  # of the memory: less is no difference in headroom
_SAME = 1e-3  # of a step: less is no difference in time
MESH = ("tp", "cp", "pp", "dp", "ep", "etp")


def knobs(layouts: Layout) -> Ints:
    """How much of a plan has to be understood, set and debugged: parallel axes above one, and switches turned on.

    Axes: tp, cp, pp, dp, ep. Switches: model chunks, a schedule that splits the backward pass, recompute, sequence
    parallelism, full sharding, sharding that is not over the whole group, experts split otherwise than dense layers.
    """
    axes = sum((getattr(layouts, name) > 1).astype(np.int64) for name in ("tp", "cp", "pp", "dp", "ep"))
    plain = np.isin(layouts.schedule, [SCHEDULES.index(name) for name in ("gpipe", "1f1b", "interleaved")])
    switches = (
        layouts.chunks > 1,
        ~plain,
        layouts.recompute > RECOMPUTES.index("none"),
        layouts.sequence_parallel > 0,
        layouts.zero >= 3,
        layouts.shard != layouts.dp * layouts.cp,
        (layouts.ep > 1) & (layouts.etp > 1),
    )
    return np.asarray(axes + np.sum(switches, axis=0), np.int64)


def order(step_s: Array, simple: Ints) -> Rows:
    """Positions from the fastest plan on; of plans as fast as each other to a part in a thousand, the simpler first."""
    steps = np.floor(np.log(step_s) / _SAME)
    return np.lexsort((step_s, simple, steps))


def front(step_s: Array, headroom: Array, simple: Ints) -> Rows:
    """The plans that none beats in all of step time, headroom (a share of memory) and simplicity, fastest first.

    Headroom counts in steps of a twentieth of the memory, time in parts in a thousand: smaller gains are no reason.
    """
    rooms = np.floor(headroom / _ROOM).astype(np.int64)
    rows = order(step_s, simple)
    rows = rows[np.lexsort((-rooms[rows], simple[rows], np.floor(np.log(step_s[rows]) / _SAME)))]
    most = np.full(int(simple.max(initial=0)) + 1, -(2**62), np.int64)  # headroom reached by plans at most that complex
    kept = []
    for row, room, level in zip(rows.tolist(), rooms[rows].tolist(), simple[rows].tolist(), strict=True):
        if room > most[level]:
            kept.append(row)
            most[level:] = np.maximum(most[level:], room)
    return np.array(kept, np.int64)


def best_of_each_mesh(layouts: Layout, rows: Rows) -> Rows:
    """Of positions in order, the first of every mesh: what differs in switches alone is one plan to its reader."""
    code = np.zeros(len(rows), np.int64)
    for name in MESH:
        _, small = np.unique(getattr(layouts, name)[rows], return_inverse=True)
        code = code * (small.max(initial=0) + 1) + small
    _, first = np.unique(code, return_index=True)
    return rows[np.sort(first)]


def without_twins(rows: Rows, step_s: Array, headroom: Array, simple: Ints) -> Rows:
    """Of positions in order, those without an earlier one that is as fast, leaves as much memory, and is as simple.

    Context parallelism with a larger micro-batch computes what data parallelism does: a runner-up that is the same
    plan with one more knob tells its reader nothing.
    """
    kept: list[int] = []
    for row in rows.tolist():
        near = [one for one in reversed(kept) if step_s[row] < step_s[one] * (1 + _SAME)]
        same = any(simple[one] <= simple[row] and headroom[one] >= headroom[row] - _SAME for one in near)
        if not same:
            kept.append(row)
    return np.array(kept, np.int64)
