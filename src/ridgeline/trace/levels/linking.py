"""Which host operator launched which device work: sorted arrays, no tree and no loop over events.

Host ranges of one thread nest. The depth of a range is the number of ranges open where it starts; its parent is the
last range before it that is one level shallower. Device work is linked to its launch call by correlation id, the
call to the innermost operator around it; work without a launch call in the file goes by the external id.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgeline.trace.events import NONE, Category, Events, Ints, Mask
from ridgeline.trace.steps import launch_rows

HOST = (Category.HOST_OP, Category.RUNTIME)


@dataclass(frozen=True, eq=False)
class Links:
    """Rows of the table, NONE where there is none; each array has one entry per event.

    ``parent``: the innermost host range around a host event; ``launch``: the call that launched a device event;
    ``op``: the innermost operator around that call, for host events the innermost operator around them.
    """

    parent: Ints
    launch: Ints
    op: Ints


def link(events: Events) -> Links:
    """Link every event of the table. O(n log n)."""
    parent = parents(events, np.isin(events.category, HOST))
    launch = launch_rows(events)
    above = _operator_above(events, parent)
    op = np.full(len(events), NONE, np.int64)
    host = np.flatnonzero(parent != NONE)
    op[host] = above[host]
    linked = np.flatnonzero(launch != NONE)
    op[linked] = above[launch[linked]]
    return Links(parent, launch, _by_external(events, launch, op))


def parents(events: Events, mask: Mask) -> Ints:
    """The innermost range of ``mask`` around each range of ``mask``, on its own thread."""
    found = np.full(len(events), NONE, np.int64)
    rows = np.flatnonzero(mask)
    if not len(rows):
        return found
    for thread in np.unique(events.thread[rows]):  # one at a time keeps the working memory small
        mine = rows[events.thread[rows] == thread]
        depth = _depths(events.ts[mine], events.dur[mine])
        order = np.argsort(depth, kind="stable").astype(np.int32)
        border = np.r_[0, np.cumsum(np.bincount(depth))]
        for level in range(1, len(border) - 1):
            above = order[border[level - 1] : border[level]]
            own = order[border[level] : border[level + 1]]
            found[mine[own]] = mine[above[np.searchsorted(above, own) - 1]]
    return found


def _depths(start: Ints, dur: Ints) -> np.ndarray[Any, np.dtype[np.int32]]:
    """How many ranges are open where each starts; sorted by start, the longest first."""
    end = start + np.maximum(dur, 1)  # an instant is open at its own start
    end.sort()
    closed = np.searchsorted(end, start, side="right").astype(np.int32)
    return np.arange(len(start), dtype=np.int32) - closed


def _operator_above(events: Events, parent: Ints) -> Ints:
    """The nearest operator above each host event: runtime calls that nest in others are passed over."""
    nearest = ancestor_among(parent, events.category == Category.HOST_OP)
    return np.where(parent == NONE, NONE, nearest[parent])


def _by_external(events: Events, launch: Ints, op: Ints) -> Ints:
    """Fill in operators by external id, for device work that has no launch call or no operator around it."""
    lacking = np.flatnonzero(events.on_device & (op == NONE) & (events.ext != NONE))
    named = np.flatnonzero((events.category == Category.HOST_OP) & (events.ext != NONE))
    if not len(lacking) or not len(named):
        return op
    named = named[np.argsort(events.ext[named], kind="stable")]
    wanted = events.ext[lacking]
    at = np.minimum(np.searchsorted(events.ext[named], wanted), len(named) - 1)
    op[lacking] = np.where(events.ext[named[at]] == wanted, named[at], NONE)
    return op


def ancestor_among(parent: Ints, wanted: Mask) -> Ints:
    """For each event the innermost ancestor (or itself) in ``wanted``; NONE where there is none.

    Pointer doubling: as many passes as the depth has binary digits.
    """
    n = len(parent)
    jump = np.append(np.where(wanted, np.arange(n), parent), n).astype(np.int32)
    jump[jump == NONE] = n  # one place behind the table stands for nothing
    while True:
        further = jump[jump]
        if np.array_equal(further, jump):
            break
        jump = further
    return np.where(jump[:n] == n, NONE, jump[:n].astype(np.int64))
