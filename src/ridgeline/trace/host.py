"""What the host was doing, by the rules of ``core/data/names/host_ranges.toml``."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from ridgeline.trace.events import Category, Events, Ints
from ridgeline.trace.intervals import EMPTY, Spans, union


@dataclass(frozen=True)
class HostKind:
    """A kind of host range: what people call it, in which categories it occurs, and the pattern of its names."""

    label: str
    categories: tuple[int, ...]
    pattern: re.Pattern[str]

    def rows(self, events: Events) -> Ints:
        """The events of this kind."""
        names = np.array([bool(self.pattern.search(name)) for name in events.names], dtype=np.bool_)
        if not names.any():
            return np.empty(0, dtype=np.int64)
        rows = np.flatnonzero(names[events.name])
        return rows[np.isin(events.category[rows], self.categories)]

    def spans(self, events: Events, threads: Ints | None = None) -> Spans:
        """The time that such ranges cover, on some threads only where given."""
        rows = self.rows(events)
        if threads is not None:
            rows = rows[np.isin(events.thread[rows], threads)]
        return union(events.ts[rows], events.dur[rows]) if len(rows) else EMPTY


@cache
def host_kinds() -> dict[str, HostKind]:
    """The kinds by key, in the order in which they claim time."""
    text = files("ridgeline.core.data").joinpath("names").joinpath("host_ranges.toml").read_text("utf-8")
    return {
        key: HostKind(
            table["label"],
            tuple(int(Category[name]) for name in table["categories"]),
            re.compile("|".join(table["patterns"]), re.IGNORECASE),
        )
        for key, table in tomllib.loads(text).items()
    }
