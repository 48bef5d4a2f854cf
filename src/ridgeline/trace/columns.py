"""Columns that grow in pieces: a reader appends a piece per block, the table takes them one column at a time."""

import mmap
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from ridgeline.trace.events import NONE, Ints

_BLOCK_ROWS = 1 << 18
_INT64 = 2**63


class Intern(dict[Any, int]):
    """Number of each distinct key, in order of first sight: ``intern[key]``."""

    def __missing__(self, key: Hashable) -> int:
        self[key] = number = len(self)
        return number


class _Column:
    """Blocks of one column; each is as narrow as what is in it."""

    def __init__(self) -> None:
        self.full: list[Any] = []
        self.open: Any = np.empty(0, np.int8)
        self.used = 0

    def append(self, values: Any) -> None:
        while len(values):
            if self.used == len(self.open):
                self._next(values.dtype)
            elif values.dtype.itemsize > self.open.dtype.itemsize:
                self.open = self.open.astype(values.dtype)
            take = values[: len(self.open) - self.used]
            self.open[self.used : self.used + len(take)] = take
            self.used += len(take)
            values = values[len(take) :]

    def _next(self, dtype: Any) -> None:
        if self.used:
            self.full.append(self.open)
        # pages of their own: given back when the block goes, whatever else the heap holds; not touched, not resident
        self.open, self.used = np.frombuffer(mmap.mmap(-1, _BLOCK_ROWS * dtype.itemsize), dtype), 0

    def join(self) -> Ints:
        """All values; the blocks are given up on the way."""
        at = sum(map(len, self.full))
        joined = np.empty(at + self.used, np.int64)
        joined[at:] = self.open[: self.used]
        self.open = None
        while self.full:
            block = self.full.pop()
            joined[at - len(block) : at] = block
            at -= len(block)
        return joined


class Pieces(Mapping[str, Ints]):
    """A mapping from column to int64 array that joins the pieces on access and forgets them.

    A column can be read once: so a table of millions of rows is never held twice.
    """

    def __init__(self) -> None:
        self._columns: dict[str, _Column | Ints] = {}
        self.rows = 0

    def append(self, **columns: Any) -> None:
        """One more piece: every column, equal lengths."""
        self.rows += len(columns["ts"])
        for name, values in columns.items():
            column = self._columns.setdefault(name, _Column())
            assert isinstance(column, _Column)
            column.append(values)

    def put(self, name: str, values: Ints) -> None:
        """A column that has been worked on."""
        self._columns[name] = values

    def __getitem__(self, name: str) -> Ints:
        column = self._columns.pop(name)
        return column.join() if isinstance(column, _Column) else column

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def whole(values: list[Any], other: Intern | None = None) -> Ints:
    """Integers; text of digits is a number, other text gets a number of its own below -1 (or NONE)."""
    try:
        column = np.array(values)
        if column.dtype.kind == "i":
            return column.astype(np.int64, copy=False)
    except (ValueError, OverflowError):
        pass
    return np.array([v if type(v) is int and -_INT64 <= v < _INT64 else _one(v, other) for v in values], np.int64)


def _one(value: Any, other: Intern | None) -> int:
    number = integer(value)
    if number is None and other is not None and value is not None:
        return -2 - other[value]
    return NONE if number is None else number


def integer(value: Any) -> int | None:
    """The value as an int64, None for what is none."""
    if isinstance(value, str):
        value = int(value) if value.strip().lstrip("-").isdigit() and len(value) < 20 else None
    if isinstance(value, float):
        value = int(value) if abs(value) < _INT64 else None
    return value if isinstance(value, int) and -_INT64 <= value < _INT64 else None


def narrow(column: Ints) -> Any:
    """Half the memory while the table is built, where the values allow it."""
    if len(column) and column.min() >= -(2**31) and column.max() < 2**31:
        return column.astype(np.int32)
    return column
