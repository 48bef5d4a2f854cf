"""The ranks of a job on one clock."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TypeVar

import numpy as np

from ridgeline.trace.events import NONE, Category, Events, Ints, Kind, Run
from ridgeline.trace.matching import paired

_TOGETHER = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all", re.IGNORECASE)
_Key = tuple[str, str, str, str, int]
_T = TypeVar("_T")


def aligned(ranks: list[Events]) -> Run:
    """Offsets from collectives that end together: they cannot end on one rank before the last has given its part.

    ``offset_ns[i]`` puts a time of rank i's table on the clock of the first rank's table: the difference of their bases
    and the median over matched collectives of the difference of their ends. Each rank is compared with the one, of
    those already placed, that it shares most with. Devices of one file share its clock.
    """
    if len(ranks) == 1:
        return Run(tuple(ranks), (0,), None)
    marks = [_ends(rank) for rank in ranks]
    near = _Neighbours(marks)
    beside = _groups((rank.info.path or str(i), i) for i, rank in enumerate(ranks))
    bases = [rank.info.base_ns - ranks[0].info.base_ns for rank in ranks]
    offsets, residuals = list(bases), list[Ints]()
    while near.open.any():
        i, j = near.closest()
        if j is not None:
            both = sorted(marks[i].keys() & marks[j].keys())
            differences = np.array([marks[j][key] - marks[i][key] for key in both], np.int64)
            middle = int(np.median(differences))
            offsets[i] = middle + offsets[j]
            residuals.append(np.abs(differences - middle))
        for k in beside[ranks[i].info.path or str(i)]:  # the profiler has put them on one clock
            offsets[k] = offsets[i] + bases[k] - bases[i]
            residuals += [np.zeros(1, np.int64)] if k != i else []
            near.place(k)
    spread = int(np.median(np.concatenate(residuals))) if residuals else None
    return Run(tuple(ranks), tuple(offsets), spread)


class _Neighbours:
    """For each rank that is still ``open`` the placed one with which it shares most collectives.

    A placed rank is looked up by its collectives: each costs as much as it has members, in one pass of NumPy.
    """

    def __init__(self, marks: list[dict[_Key, int]]) -> None:
        members = _groups((key, i) for i, mine in enumerate(marks) for key in mine)
        as_arrays = {key: np.array(found, np.int64) for key, found in members.items()}
        self._members = [[as_arrays[key] for key in mine] for mine in marks]
        self.open = np.ones(len(marks), np.bool_)
        self._shared, self._partner = np.zeros((2, len(marks)), np.int64)

    def closest(self) -> tuple[int, int | None]:
        """The open rank that shares most, and with whom; None where no open rank shares anything."""
        i = int(np.argmax(np.where(self.open, self._shared, -1)))
        return i, int(self._partner[i]) if self._shared[i] else None

    def place(self, k: int) -> None:
        """Rank k is placed: others may now be compared with it."""
        self.open[k] = False
        found = np.concatenate([np.empty(0, np.int64), *self._members[k]])
        counts = np.bincount(found, minlength=len(self.open))
        better = (counts > self._shared) | ((counts == self._shared) & (k < self._partner))
        self._shared[better], self._partner[better] = counts[better], k


def _groups(pairs: Iterable[tuple[_T, int]]) -> dict[_T, list[int]]:
    """What belongs to each key, in order."""
    found: dict[_T, list[int]] = defaultdict(list)
    for key, member in pairs:
        found[key].append(member)
    return found


def _ends(events: Events) -> dict[_Key, int]:
    """End of every collective in which all ranks wait for each other: by what it is and its place in the order."""
    rows = np.flatnonzero((events.kind == Kind.COMM) & (events.category == Category.KERNEL))
    seen: Counter[tuple[str, str, str, str]] = Counter()
    found: dict[_Key, int] = {}
    for row, closed in zip(*(rows.tolist() for rows in paired(events, rows)), strict=True):
        meta = events.metas[int(events.meta[row])] if events.meta[row] != NONE else {}
        name = str(meta.get("collective") or events.name_of(row))
        if not _TOGETHER.search(name):
            continue
        key = (name, str(meta.get("group", "")), str(meta.get("dtype", "")), str(meta.get("in_numel", "")))
        found[*key, seen[key]] = int(events.end[closed])
        seen[key] += 1
    return found
