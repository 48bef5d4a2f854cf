"""Bytes to a table of cells: CSV (any separator, any common encoding), JSON, Parquet. Nothing is interpreted here."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError, MissingExtraError, located

MOST_BYTES = 2**26  # a ladder has thousands of runs; more than this is a log, or the wrong file
_SEPARATORS = ",\t;|"
_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_LISTS = ("points", "runs", "rows", "data", "records")  # where a JSON object keeps its table


@dataclass(frozen=True)
class RawTable:
    """Columns of cells as the file holds them. ``lines`` is where each row is, counted in ``word`` (line or row)."""

    columns: Mapping[str, Sequence[Any]]
    lines: NDArray[np.int64]
    word: str
    separator: str = ""
    lost: tuple[str, ...] = ()
    file: InputFile | None = None

    @property
    def path(self) -> str:
        """The file as the user named it."""
        return self.file.path if self.file else "the columns"

    def place(self, row: int | np.intp) -> str:
        """Where a row is, for people."""
        return f"{self.word} {self.lines[row]}"


def read_table(path: str | Path) -> RawTable:
    """The table of a file, by its content and its suffix.

    Raises `InputError` for a file that is absent, empty, huge or not a table, `MissingExtraError` for Parquet without
    Polars.
    """
    file = Path(path)
    content = _bytes(file)
    is_parquet = content.startswith(b"PAR1")
    if is_parquet:
        _need_polars()
    with located(str(file)):
        if is_parquet:
            table = _parquet(file)
        else:
            text = _text(content)
            is_json = text.lstrip()[:1] in ("{", "[")
            table = _json(text) if is_json else _csv(text)
        if not len(table.lines):
            raise InputError.expected("runs below the header", "none", where="the file")
    return RawTable(table.columns, table.lines, table.word, table.separator, table.lost, InputFile.of(file, content))


def _bytes(file: Path) -> bytes:
    try:
        size = file.stat().st_size
        if file.is_file() and size > MOST_BYTES:
            hint = "keep one row per run, at the step whose loss counts"
            most = f"a ladder of at most {MOST_BYTES // 2**20} MiB"
            raise InputError.expected(most, f"{size} bytes", where=str(file), hint=hint)
        content = file.read_bytes()
    except OSError as error:
        raise InputError.expected("a readable file", error.strerror or "an error", where=str(file)) from error
    if not content.strip():
        raise InputError.expected("a table with a header", "an empty file", where=str(file))
    return content


def _text(content: bytes) -> str:
    encoding = next((name for mark, name in _BOMS.items() if content.startswith(mark)), "")
    if not encoding and b"\x00" in content[:64]:
        encoding = "utf-16-le" if content[1:2] == b"\x00" else "utf-16-be"  # written without its mark
    try:
        text = content.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    if "\x00" in text:
        raise InputError.expected("CSV, JSON or Parquet", "binary data", where="byte 1")
    return text


def _csv(text: str) -> RawTable:
    lines = text.splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    separator = max(_SEPARATORS, key=first.count)
    if not first.count(separator):
        separator = " " if len(first.split()) > 1 else ","
    records = _records(lines, separator)
    at, header = next(records, (0, []))
    names = _names(header, f"line {at}")
    kept: list[list[str]] = []
    places: list[int] = []
    lost: list[str] = []
    for line, cells in records:
        extra = "".join(cells[len(names) :]).strip()
        if len(cells) < len(names) or extra:
            lost.append(f"line {line}: {len(cells)} cells, where the header has {len(names)}")
            continue
        kept.append(cells[: len(names)])
        places.append(line)
    if not kept and lost:
        raise InputError.expected(f"rows of {len(names)} cells", lost[0], where=f"line {at + 1}")
    columns = dict(zip(names, zip(*kept, strict=True), strict=True)) if kept else dict.fromkeys(names, ())
    return RawTable(columns, np.array(places, np.int64), "line", separator, tuple(lost))


def _records(lines: list[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Every record that is neither blank nor a comment, with the line on which it starts."""
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator, skipinitialspace=True)
    start = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells) and not cells[0].startswith("#"):
                yield start, cells
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError.expected("CSV", str(error), where=f"line {start}") from error


def _names(header: Sequence[Any], where: str) -> list[str]:
    names = [str(name).strip().strip('"').strip() for name in header]
    while names and not names[-1]:
        names.pop()  # a separator at the end of every line
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError.expected("one column of each name", f"{twice[0]!r} twice", where=where)
    if not names:
        raise InputError.expected("a header with column names", "none", where=where)
    return names


def _json(text: str) -> RawTable:
    data = _decoded(text)
    if isinstance(data, dict):
        data = next((data[key] for key in _LISTS if isinstance(data.get(key), list | dict)), data)
    if isinstance(data, dict):
        return _of_columns(data)
    if not isinstance(data, list) or not data:
        raise InputError.expected("a list of runs, or an object of columns", type(data).__name__, where="$")
    for i, item in enumerate(data):
        if not isinstance(item, dict):
            raise InputError.expected("an object per run", item, where=f"$[{i}]")
    names = list(dict.fromkeys(str(name) for item in data for name in item))
    columns = {name: [item.get(name) for item in data] for name in names}
    return RawTable(columns, np.arange(1, len(data) + 1), "row")


def _decoded(text: str) -> Any:
    import msgspec

    body = text.lstrip("\ufeff")
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        pass
    try:  # Python's own reader takes NaN and numbers beyond float64; the checks of the columns meet them
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        lines = [line for line in body.splitlines() if line.strip()]
        if len(lines) > 1 and all(line.lstrip().startswith("{") for line in lines):
            return [_line(line, i) for i, line in enumerate(lines, start=1)]
        raise InputError.expected("JSON", str(error), where="$") from error


def _line(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError.expected("a JSON object per line", str(error), where=f"line {number}") from error


def _of_columns(data: Mapping[str, Any]) -> RawTable:
    lists = {str(name): value for name, value in data.items() if isinstance(value, list)}
    lengths = {name: len(value) for name, value in lists.items()}
    if not lists:
        raise InputError.expected("a list of runs, or an object of columns", sorted(data), where="$")
    most = max(lengths.values())
    short = [name for name, length in lengths.items() if length != most]
    if short:
        raise InputError.expected(f"columns of {most} values", f"{lengths[short[0]]}", where=f"$.{short[0]}")
    return RawTable(lists, np.arange(1, most + 1), "row")


def _need_polars() -> None:
    if find_spec("polars") is None:
        raise MissingExtraError("polars", "tables")


def _parquet(file: Path) -> RawTable:
    import polars as pl

    try:
        frame = pl.read_parquet(file)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError.expected("Parquet", str(error), where="the file") from error
    columns = {name: frame.get_column(name).to_list() for name in frame.columns}
    return RawTable(columns, np.arange(1, frame.height + 1), "row")
