"""Request logs and arrival traces: what readers give, and the one place that checks it.

A reader is a file of ``traces`` with a `Reader`, found by walking. It turns its format into `Rows`; `read_requests`
refuses what would change the answer in silence (times that run backwards, times below zero) and lists, with counts,
every row that is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ridgeline.core import plugins
from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
HEAD_BYTES = 1 << 20
MOST_TOKENS = 2**31  # of one request: more is a damaged number
MOST_LOST = 0.5  # of the rows: beyond it the file is of another format, or of several
LATE_S = 86_400.0  # a first arrival later than this is a clock, not a time from the start


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns of n rows as a file holds them: NaN where a cell is no number.

    ``arrival_s`` is None where the format has no times. ``blocks`` are the hashes of each prompt's blocks in order.
    ``line`` is where each row is, counted in ``word``. ``lost``: sentence -> count.
    """

    format: str
    arrival_s: Floats | None
    input_tokens: Floats
    output_tokens: Floats
    line: Ints
    word: str = "line"
    blocks: Sequence[Sequence[int]] | None = None
    lost: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Reader:
    """A format. ``sniff(head, path)`` looks at the first MiB; ``holds`` names its columns for people."""

    name: str
    holds: str
    sniff: Callable[[bytes, Path], bool]
    read: Callable[[Path], Rows]


@dataclass(frozen=True, eq=False)
class Requests:
    """Checked requests, (n,): whole tokens above zero, times in order from zero up.

    ``arrival_s`` is None for a file of lengths only. ``blocks`` are of ``block_tokens`` tokens each. ``lost`` are rows
    that were left out, ``notes`` what was changed.
    """

    format: str
    file: InputFile
    arrival_s: Floats | None
    input_tokens: Ints
    output_tokens: Ints
    blocks: Sequence[Sequence[int]] | None = None
    block_tokens: int = 0
    lost: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.input_tokens)


def readers() -> dict[str, Reader]:
    """Every known format by name."""
    found = plugins.load("ridgeline.serve.simulate.traces", Reader, kind="traffic_reader")
    return {reader.name: reader for reader in found}


def sniff(path: str | Path) -> Reader | None:
    """The reader whose format the file has, or None. Raises `InputError` for a file that cannot be opened."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise InputError.expected("a readable file", error.strerror or str(error), where=str(path)) from error
    return next((reader for reader in readers().values() if reader.sniff(head, Path(path))), None)


def read_requests(path: str | Path, *, sort: bool = False) -> Requests:
    """The requests of a file of any known format.

    Raises `InputError` for no known format, no usable row, more rows lost than kept, times below zero, and times out
    of order unless ``sort`` is set; `MissingExtraError` for Parquet without Polars.
    """
    reader = sniff(path)
    if reader is None:
        known = "; ".join(f"{r.name} ({r.holds})" for r in readers().values())
        raise InputError.expected(
            "a request trace", "a file of another format", where=str(path), hint=f"known: {known}"
        )
    return checked(reader.read(Path(path)), InputFile.of(path), sort=sort)


def checked(rows: Rows, file: InputFile, *, sort: bool = False) -> Requests:
    """The rows that can be used, and an account of the others. Raises `InputError` as `read_requests` does."""
    keep, lost = _usable(rows)
    total = len(keep) + sum(rows.lost.values())
    counts = {**rows.lost, **lost}
    if not keep.any() or keep.sum() < MOST_LOST * total:
        said = ", ".join(f"{count:,} {what}" for what, count in counts.items()) or "none"
        hint = f"read as {rows.format}; rows of one format only, with whole token counts above zero"
        raise InputError(f"Expected requests, got {total:,} rows of which {int(keep.sum()):,} can be used ({said}),",
                         where=file.path, hint=hint)  # fmt: skip
    index = np.flatnonzero(keep)
    notes: list[str] = []
    times = None
    if rows.arrival_s is not None:
        index, notes = _ordered(rows, index, file.path, sort=sort)
        times = rows.arrival_s[index]
        if times[0] > LATE_S:
            notes.append("arrivals are clock times: they are counted from the first one")
            times = times - times[0]
    tokens = rows.input_tokens[index].astype(np.int64)
    blocks = None if rows.blocks is None else [rows.blocks[row] for row in index.tolist()]
    size = _block_tokens(tokens, blocks or ())
    if blocks is not None and not size:
        notes.append("the block hashes fit no block size: they are not used")
        blocks = None
    return Requests(
        rows.format, file, times, tokens, rows.output_tokens[index].astype(np.int64), blocks, size,
        tuple(Loss(what, count, file.path) for what, count in counts.items() if count), tuple(notes),
    )  # fmt: skip


def _usable(rows: Rows) -> tuple[Mask, dict[str, int]]:
    """Which rows can be simulated, and why the others cannot: each is counted once, under its first fault."""
    keep = np.ones(len(rows.line), dtype=np.bool_)
    lost: dict[str, int] = {}

    def drop(bad: Mask, what: str) -> None:
        count = int((bad & keep).sum())
        if count:
            lost[what] = count
        keep[bad] = False

    if rows.arrival_s is not None:
        drop(~np.isfinite(rows.arrival_s), f"{rows.word}s without an arrival time that is a number")
    for name, tokens in (("input", rows.input_tokens), ("output", rows.output_tokens)):
        drop(~np.isfinite(tokens), f"{rows.word}s without a number of {name} tokens")
        with np.errstate(invalid="ignore"):
            drop(tokens != np.floor(tokens), f"{rows.word}s whose {name} tokens are not whole")
            drop((tokens < 0) | (tokens > MOST_TOKENS), f"{rows.word}s whose {name} tokens are out of range")
            drop(tokens == 0, f"{rows.word}s with zero {name} tokens")
    return keep, lost


def _ordered(rows: Rows, index: Ints, path: str, *, sort: bool) -> tuple[Ints, list[str]]:
    """The rows in order of arrival. Raises `InputError` for times below zero, and for times that go back."""
    assert rows.arrival_s is not None
    times = rows.arrival_s[index]
    below = times < 0
    if below.any():
        first = index[np.flatnonzero(below)[0]]
        raise InputError(
            f"Expected arrival times from zero up, got {int(below.sum()):,} of {len(times):,} below zero "
            f"(the first, {rows.arrival_s[first]:g} s, in {rows.word} {rows.line[first]}),",
            where=path, hint="count the times from the first arrival",
        )  # fmt: skip
    back = np.flatnonzero(np.diff(times) < 0)
    if not len(back):
        return index, []
    if not sort:
        first = index[back[0] + 1]
        raise InputError(
            f"Expected arrival times in order, got {len(back):,} of {len(times):,} rows earlier than the row before "
            f"(the first in {rows.word} {rows.line[first]}),",
            where=path, hint="sort the file, or put sort = true under [traffic] of a --spec file",
        )  # fmt: skip
    return index[np.argsort(times, kind="stable")], [f"{len(back):,} rows were out of order and have been sorted"]


def _block_tokens(tokens: Ints, blocks: Sequence[Sequence[int]]) -> int:
    """The power of two for which every prompt has as many hashes as blocks, or as whole blocks; 0 where there is none.

    The largest, where several fit.
    """
    counts = np.array([len(row) for row in blocks], dtype=np.int64)
    if not counts.any():
        return 0
    held, length = counts[counts > 0], tokens[counts > 0]
    for size in (1 << power for power in range(14, -1, -1)):
        if ((held == -(-length // size)) | (held == length // size)).all():
            return size
    return 0
