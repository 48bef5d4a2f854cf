"""What readers of small formats share: rows by columns, names and details interned, steps told by their names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ridgeline.trace.columns import Intern
from ridgeline.trace.events import COLUMNS, NONE, Category, Events, Info, Ints, events

_STEP = re.compile(
    r"(profiler[ _-]?step|(train(ing)?|global)[ _-]?(step|iter(ation)?|batch)|step|iter(ation)?|batch)"
    r"[ _#:=/-]*\d*",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"[\W_]*\d+$")


class Table:
    """Rows by blocks of columns, with names and details interned, that become one `Events`."""

    def __init__(self) -> None:
        self._names, self._metas = Intern(), Intern()
        self._blocks: list[dict[str, Ints]] = []

    def name(self, text: str) -> int:
        """The index of a name."""
        return self._names[text]

    def meta(self, details: Mapping[str, Any]) -> int:
        """The index of details, whose values are hashable; NONE for none."""
        return self._metas[tuple(details.items())] if details else NONE

    @property
    def names(self) -> list[str]:
        """The names so far."""
        return list(self._names)

    @property
    def metas(self) -> list[dict[str, Any]]:
        """The details so far."""
        return [dict(items) for items in self._metas]

    def add(self, **columns: Any) -> None:
        """Append rows: arrays or sequences of equal length, ``ts`` among them; a single value fills its column."""
        n = len(columns["ts"])
        block = {name: np.full(n, 0 if name in ("kind", "category") else NONE, np.int64) for name in COLUMNS}
        for name, values in columns.items():
            block[name][:] = values
        self._blocks.append(block)

    def columns(self) -> dict[str, Ints]:
        """All rows so far as whole columns."""
        if not self._blocks:
            return {name: np.empty(0, np.int64) for name in COLUMNS}
        self._blocks = [{name: np.concatenate([block[name] for block in self._blocks]) for name in COLUMNS}]
        return self._blocks[0]

    def build(self, info: Info) -> Events:
        """The table; ``ts`` is shifted so that the first event is at 0, and ``info.base_ns`` moves along."""
        columns = dict(self.columns())
        first = int(columns["ts"].min()) if len(columns["ts"]) else 0
        columns["ts"] = columns["ts"] - first
        return events(columns, self.names, self.metas, replace(info, base_ns=info.base_ns + first))


def is_step_name(name: str) -> bool:
    """Whether a range of the user is one training step by its whole name: ``step 12``, ``iteration_3``.

    ``optimizer.step`` is not: it is a part of one.
    """
    return _STEP.fullmatch(name.strip()) is not None


def mark_steps(names: Sequence[str], name: Ints, dur: Ints, category: Ints) -> Ints:
    """Categories in which the annotations that are steps become STEP.

    Ranges nest (a batch inside an iteration): of the families of names that look like steps, the one that covers
    most time is taken.
    """
    families: dict[str, list[int]] = {}
    for i, text in enumerate(names):
        if is_step_name(text):
            families.setdefault(_DIGITS.sub("", text.strip()).lower(), []).append(i)
    annotation = category == Category.ANNOTATION
    masks = [annotation & np.isin(name, indices) for indices in families.values()]
    masks = [mask for mask in masks if mask.any()]
    if not masks:
        return category
    best = max(masks, key=lambda mask: int(dur[mask].sum()))
    return np.where(best, np.int64(Category.STEP), category)
