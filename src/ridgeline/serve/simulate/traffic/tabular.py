"""What readers of request traces share: CSV with named columns, and one JSON object a line."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.traffic.requests import Floats, Reader, Rows

NAN = float("nan")
_LOOK_AT = 20  # lines of a JSON Lines file in which its keys must show


@dataclass(frozen=True)
class Names:
    """The headers under which a format keeps its columns, in lower case; the first of each that is there is read.

    ``arrival`` says how a cell becomes seconds. Times and ``blocks`` (hashes of the prompt) may be absent.
    """

    input: tuple[str, ...]
    output: tuple[str, ...]
    arrival: Mapping[str, Callable[[Any], float]]
    blocks: tuple[str, ...] = ()

    def held(self, keys: Sequence[str]) -> bool:
        """Whether a header, or the keys of an object, are of this format."""
        low = {key.strip().lower() for key in keys}
        return bool(low & set(self.input) and low & set(self.output))


def number(cell: Any) -> float:
    """A cell as a number; NaN where it holds none."""
    if isinstance(cell, bool) or cell is None:
        return NAN
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return NAN


def in_ms(cell: Any) -> float:
    """A cell in milliseconds, as seconds."""
    return number(cell) / 1e3


def in_ns(cell: Any) -> float:
    """A cell in nanoseconds, as seconds."""
    return number(cell) * 1e-9


def clock(cell: Any) -> float:
    """An ISO date and time, as seconds from 1970; UTC unless it names a zone. NaN for anything else."""
    try:
        moment = datetime.fromisoformat(str(cell).strip())
    except ValueError:
        return NAN
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Every line that is not blank, with its number from one; bytes that are not UTF-8 are replaced."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        for at, line in enumerate(file, 1):
            if line.strip():
                yield at, line.replace("\x00", "\ufffd")


def csv_reader(name: str, names: Names) -> Reader:
    """A reader of CSV whose first line holds those headers."""

    def is_ours(head: bytes, _: Path) -> bool:
        return names.held(_header(head.decode("utf-8-sig", "replace").lstrip().partition("\n")[0]))

    return Reader(name, "CSV with " + _said(names), is_ours, lambda path: _csv(path, name, names))


def jsonl_reader(name: str, names: Names) -> Reader:
    """A reader of one JSON object a line with those keys."""

    def is_ours(head: bytes, _: Path) -> bool:
        first = next(_objects(head), None)
        return first is not None and names.held(list(first))

    return Reader(name, "JSON Lines with " + _said(names), is_ours, lambda path: _jsonl(path, name, names))


def _said(names: Names) -> str:
    return ", ".join(found[0] for found in (tuple(names.arrival), names.input, names.output, names.blocks) if found)


def _header(line: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line]), [])]
    except csv.Error:
        return []


def _objects(head: bytes) -> Iterator[dict[str, Any]]:
    for line in head.split(b"\n")[:_LOOK_AT]:
        item = _object(line.decode("utf-8-sig", "replace"))
        if item is not None:
            yield item


def _object(line: str) -> dict[str, Any] | None:
    try:
        item = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return item if isinstance(item, dict) else None


def _csv(path: Path, name: str, names: Names) -> Rows:
    records, lost = [], dict[str, int]()
    header: list[str] = []
    for at, line in lines(path):
        cells = _header(line)
        if not header:
            header = [cell.lower() for cell in cells]
            twice = sorted({cell for cell in header if cell and header.count(cell) > 1})
            if twice:
                raise InputError.expected("one column of each name", f"{twice[0]!r} twice", where=f"{path}, line {at}")
        elif [cell.lower() for cell in cells] == header:
            _count(lost, "lines that repeat the header")
        elif len(cells) != len(header):
            _count(lost, "lines with another number of columns than the header")
        else:
            records.append((at, dict(zip(header, cells, strict=True))))
    return rows_of(name, names, records, lost)


def _jsonl(path: Path, name: str, names: Names) -> Rows:
    records, lost = [], dict[str, int]()
    for at, line in lines(path):
        item = _object(line)
        if item is None:
            _count(lost, "lines that are not JSON objects")
        elif not names.held(list(item)):
            _count(lost, "lines of another schema")
        else:
            records.append((at, {key.lower(): value for key, value in item.items()}))
    return rows_of(name, names, records, lost)


def rows_of(name: str, names: Names, records: Sequence[tuple[int, Mapping[str, Any]]], lost: Mapping[str, int]) -> Rows:
    """The columns of records with their line numbers. Times that no record has give a file of lengths only."""
    seen = records[0][1] if records else {}
    key = {field: next((n for n in getattr(names, field) if n in seen), "")
           for field in ("arrival", "input", "output", "blocks")}  # fmt: skip

    def column(field: str, read: Callable[[Any], float]) -> Floats:
        return np.array([read(item.get(key[field])) for _, item in records], dtype=np.float64)

    return Rows(
        name,
        column("arrival", names.arrival[key["arrival"]]) if key["arrival"] else None,
        column("input", number),
        column("output", number),
        np.array([at for at, _ in records], dtype=np.int64),
        blocks=[hashes(item.get(key["blocks"])) for _, item in records] if key["blocks"] else None,
        lost=lost,
    )


def hashes(cell: Any) -> list[int]:
    """The block hashes of one prompt; a text holds them between spaces, commas or brackets. None for anything else."""
    if isinstance(cell, str):
        cell = cell.replace(",", " ").strip("[] ").split()
    if not isinstance(cell, Sequence):
        return []
    try:
        return [int(item) for item in cell]
    except (TypeError, ValueError, OverflowError):
        return []


def _count(lost: dict[str, int], what: str) -> None:
    lost[what] = lost.get(what, 0) + 1
