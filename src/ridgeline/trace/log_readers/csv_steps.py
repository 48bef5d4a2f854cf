"""A table of step times as CSV or TSV: a step column, and a time per step or a clock.

Names are read without case and with their unit: ``step_time_ms``, ``step_time (ms)``, ``time [s]``. A time per step
without a unit is taken as seconds, a clock (``time``, ``timestamp``, ``elapsed``, ``wall_time``) as seconds or an
ISO date. Other columns with a unit of time are phases of the step; a ``rank`` column splits the table.
"""

import csv
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ridgeline.core.errors import InputError
from ridgeline.trace.logs import LINE_BYTES, NS, Log, LogReader, StepRows, number, text_lines
from ridgeline.trace.salvage import Ledger

_STEPS = ("step", "_step", "global_step", "iteration", "iter", "train_step", "trainer_global_step")
_DURATIONS = ("step_time", "time_per_step", "iter_time", "iteration_time", "step_duration", "duration", "dt",
              "elapsed_per_step")  # fmt: skip
_CLOCKS = ("time", "timestamp", "_timestamp", "_runtime", "wall_time", "elapsed", "elapsed_time", "t", "train_time")
_UNIT = re.compile(r"[ _.]?[(\[]?\b(seconds|secs?|millis(?:econds)?|s|ms|us|ns)\b[)\]]?$")
_LONG = {"seconds": "s", "sec": "s", "secs": "s", "millis": "ms", "milliseconds": "ms"}
_MARKS = ("evaluation", "eval", "checkpoint")


@dataclass(frozen=True)
class _Columns:
    """Where things are in a row: an index and a unit in ns."""

    step: int
    duration: tuple[int, int] | None
    clock: tuple[int, int] | None
    rank: int | None
    phases: tuple[tuple[str, int, int], ...]
    marks: tuple[tuple[str, int], ...]
    assumed: str


def _columns(header: list[str]) -> _Columns | None:
    step = duration = clock = rank = None
    phases, marks, assumed = [], [], ""
    for i, text in enumerate(header):
        name, unit = _split(text)
        if name in _STEPS and not unit and step is None:
            step = i
        elif name == "rank":
            rank = i
        elif (name in _DURATIONS or (name == "step" and unit)) and duration is None:
            duration, assumed = (i, NS[unit or "s"]), "" if unit else text.strip()
        elif name in _CLOCKS and clock is None:
            clock = (i, NS[unit or "s"])
        elif name in _MARKS and not unit:
            marks.append(("checkpoint" if name == "checkpoint" else "evaluation", i))
        elif unit:
            phases.append((name.removesuffix("_time").removeprefix("phase."), i, NS[unit]))
    if step is None or (duration is None and clock is None):
        return None
    return _Columns(step, duration, clock, rank, tuple(phases), tuple(marks), assumed)


def _split(text: str) -> tuple[str, str]:
    """A column's name and unit, both lower case."""
    name = text.strip().strip('"').lower().replace("/", "_").removeprefix("train_").removeprefix("perf_")
    if name in (*_STEPS, *_DURATIONS, *_CLOCKS):
        return name, ""
    match = _UNIT.search(name.replace("_", " ").replace("(", " (").replace("[", " ["))
    if match is None:
        return name.replace(" ", "_"), ""
    stem = name.replace("_", " ").replace("(", " (").replace("[", " [")[: match.start()].strip()
    return stem.replace(" ", "_"), _LONG.get(match[1], match[1])


def _separator(line: str) -> str:
    return max(",\t;", key=line.count)


def _sniff(head: bytes, path: Path) -> bool:
    first = head.split(b"\n", 1)[0].decode("utf-8", "replace").lstrip("\ufeff").rstrip("\r")
    if first.lstrip().startswith(("{", "[", "#")) or len(first) > LINE_BYTES:
        return False
    return _columns(first.split(_separator(first))) is not None


def _read(path: Path) -> tuple[Log, ...]:
    ledger = Ledger(str(path))
    lines = text_lines(path, ledger)
    header = next(lines, "").lstrip("\ufeff")
    separator = _separator(header)
    columns = _columns(next(csv.reader([header], delimiter=separator)))
    if columns is None:
        raise InputError.expected("a step column and a time column", header, where=str(path))
    ranks: dict[int | None, StepRows] = {}
    for line in lines:
        if not line.strip():
            continue
        cells = line.split(separator) if '"' not in line else _cells(line, separator)
        step = number(cells[columns.step]) if len(cells) > columns.step else float("nan")
        if not step.is_integer():
            ledger.add("row without a step number")
            continue
        rank = _rank(cells, columns)
        _add(ranks.setdefault(rank, StepRows(rank)), int(step), cells, columns)
    if not ranks:
        raise InputError.expected("rows with a step number", "none", where=str(path))
    notes = (f"column {columns.assumed!r} names no unit: read as seconds",) if columns.assumed else ()
    details = {"format": "CSV", "path": str(path), "notes": notes}
    return tuple(rows.build(ledger, **details) for _, rows in sorted(ranks.items(), key=lambda r: r[0] or 0))


def _cells(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator))
    except (csv.Error, StopIteration):
        return []


def _rank(cells: list[str], columns: _Columns) -> int | None:
    value = number(cells[columns.rank]) if columns.rank is not None and len(cells) > columns.rank else float("nan")
    return int(value) if value.is_integer() else None


def _add(rows: StepRows, step: int, cells: list[str], columns: _Columns) -> None:
    duration, clock = columns.duration, columns.clock
    per_step = number(cells[duration[0]]) * duration[1] if duration and len(cells) > duration[0] else None
    end = _instant(cells[clock[0]], clock[1]) if clock and len(cells) > clock[0] else None
    rows.add(step, per_step_ns=per_step, end_ns=end)
    for name, i, unit in columns.phases:
        if len(cells) > i:
            rows.phase(name, number(cells[i]) * unit)
    for name, i in columns.marks:
        if len(cells) > i and cells[i].strip().lower() in ("1", "true", "yes"):
            rows.mark(name)


def _instant(text: str, unit: int) -> int | None:
    """A clock's cell in ns: a number, or an ISO date (without a zone: UTC)."""
    value = number(text)
    if not math.isnan(value):
        return round(value * unit) if math.isfinite(value) else None
    try:
        stamp = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    stamp = stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)
    return int(stamp.timestamp()) * NS["s"] + stamp.microsecond * NS["us"]


READER = LogReader("CSV", _sniff, _read)
