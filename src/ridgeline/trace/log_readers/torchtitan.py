"""torchtitan: ``[rank0]:[titan] 2025-06-04 08:51:48,074 - root - INFO - step: 10  loss: 8.1  tps: 7,034  mfu: 41%``.

The line has no step time: it is the time between two lines, which holds evaluation and checkpoints too.
"""

import re
from datetime import UTC, datetime
from pathlib import Path

from ridgeline.core.errors import InputError
from ridgeline.trace.logs import NS, Log, LogReader, StepRows, number, text_lines
from ridgeline.trace.salvage import Ledger

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RANK = re.compile(r"\[rank(\d{1,9})\]")
_WHEN = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[,.](\d{1,9}))?")
_STEP = re.compile(r"(?<!validate )\bstep:\s*(\d{1,15})\s+loss:\s*(\S+)")
_RATE = re.compile(r"\b(tps|wps|mfu|tflops|grad_norm):\s*([\d,.]+)")
_CHECKPOINT = re.compile(r"Saving the checkpoint|Finished saving the checkpoint|Saving a full checkpoint")
_EVALUATION = re.compile(r"\bvalidate step:\s*(\d{1,15})")
_SNIFF = re.compile(rb"step:\s*\d+\s.*?loss:.*?(tps|wps):")


def _read(path: Path) -> tuple[Log, ...]:
    ledger, ranks = Ledger(str(path)), dict[int | None, StepRows]()
    fraction = 0
    for raw in text_lines(path, ledger):
        line = _COLOUR.sub("", raw)
        owner = _RANK.search(line)
        rank = int(owner[1]) if owner else None
        rows = ranks.get(rank)
        if rows is not None and _CHECKPOINT.search(line):
            rows.mark("checkpoint")
        if rows is not None and (found := _EVALUATION.search(line)):
            rows.mark("evaluation", int(found[1]))
        match, when = _STEP.search(line), _WHEN.search(line)
        if match is None:
            continue
        if when is None:
            ledger.add("step line without a time stamp")
            continue
        fraction = max(fraction, len(when[2] or ""))
        rows = ranks.setdefault(rank, StepRows(rank))
        _add(rows, match, when, line)
    if not ranks:
        hint = "torchtitan prints no step time: its lines need the time stamps of Python's logging"
        raise InputError.expected("lines with a time stamp", "none", where=str(path), hint=hint)
    resolution = NS["s"] // 10**fraction if fraction <= 9 else 1
    notes = ("step time is the time between two log lines: evaluation and checkpoints are in it",)
    details = {"format": "torchtitan", "path": str(path), "resolution_ns": max(resolution, 1), "notes": notes}
    return tuple(rows.build(ledger, **details) for _, rows in sorted(ranks.items(), key=lambda r: r[0] or 0))


def _add(rows: StepRows, match: re.Match[str], when: re.Match[str], line: str) -> None:
    try:
        stamp = datetime.fromisoformat(when[1]).replace(tzinfo=UTC)
    except ValueError:
        return
    nanoseconds = int((when[2] or "0").ljust(9, "0"))
    rows.add(int(match[1]), end_ns=int(stamp.timestamp()) * NS["s"] + nanoseconds)
    for name, text in [("loss", match[2]), *_RATE.findall(line)]:
        rows.value(name, number(text.replace(",", "")))


READER = LogReader("torchtitan", lambda head, _: _SNIFF.search(head) is not None, _read)
