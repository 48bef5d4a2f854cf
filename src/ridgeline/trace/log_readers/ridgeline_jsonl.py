"""Ridgeline's own always-on timer: a JSON object a line with ``step``, ``t`` (s, clock), ``step_s``, ``phases`` (s).

Lines without a step (a header, an event) are context: ``rank`` holds for the lines after it, and
``{"event": "checkpoint", "step": 500}`` marks a step.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ridgeline.core.errors import InputError
from ridgeline.core.parse import ABSURD
from ridgeline.trace.logs import NS, Log, LogReader, StepRows, text_lines
from ridgeline.trace.salvage import Ledger

_DURATIONS = ("step_s", "dur_s", "seconds")
_OWN = {"step", "t", "rank", "phases", "event", *_DURATIONS}


def _sniff(head: bytes, path: Path) -> bool:
    for line in head.split(b"\n")[:3]:
        row = _object(line.decode("utf-8", "replace"))
        if row is not None and "step" in row and ("t" in row or any(name in row for name in _DURATIONS)):
            return True
    return False


def _object(line: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _read(path: Path) -> tuple[Log, ...]:
    ledger, ranks = Ledger(str(path)), dict[int | None, StepRows]()
    rank: int | None = None
    for line in text_lines(path, ledger):
        if not line.strip():
            continue
        row = _object(line)
        if row is None:
            ledger.add("line that is not a JSON object")
            continue
        given = row.get("rank", rank)
        rank = given if isinstance(given, int) else rank
        step = row.get("step")
        if isinstance(step, bool) or not isinstance(step, int):
            continue
        rows = ranks.setdefault(rank, StepRows(rank))
        if isinstance(row.get("event"), str):
            rows.mark(row["event"], step)
            continue
        _add(rows, step, row)
    if not ranks:
        raise InputError.expected("lines with a step", "none", where=str(path))
    details = {"format": "Ridgeline JSONL", "path": str(path)}
    return tuple(rows.build(ledger, **details) for _, rows in sorted(ranks.items(), key=lambda r: r[0] or 0))


def _add(rows: StepRows, step: int, row: Mapping[str, Any]) -> None:
    own = next((value for name in _DURATIONS if (value := _seconds(row.get(name))) is not None), None)
    clock = _seconds(row.get("t"))
    end = None if clock is None else round(clock * NS["s"])
    rows.add(step, per_step_ns=None if own is None else own * NS["s"], end_ns=end)
    phases = row.get("phases")
    for name, value in phases.items() if isinstance(phases, dict) else ():
        if (length := _seconds(value)) is not None:
            rows.phase(name, length * NS["s"])
    for name, value in row.items():
        if name not in _OWN and (figure := _seconds(value)) is not None:
            rows.value(name, figure)


def _seconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) and abs(found) < ABSURD else None


READER = LogReader("Ridgeline JSONL", _sniff, _read)
