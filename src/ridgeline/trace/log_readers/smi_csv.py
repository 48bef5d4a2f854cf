"""``nvidia-smi --query-gpu=timestamp,index,... --format=csv -l 1``: a header with units in brackets, a row a sample."""

import re
from datetime import UTC, datetime
from pathlib import Path

from ridgeline.core.errors import InputError
from ridgeline.trace.logs import NS, Log, LogReader, SampleRows, text_lines
from ridgeline.trace.salvage import Ledger

_COLUMNS = {
    "power.draw": "power_w", "power.limit": "power_limit_w", "enforced.power.limit": "power_limit_w",
    "power.draw.instant": "power_w", "power.draw.average": "power_w", "temperature.gpu": "temp_c",
    "temperature.memory": "mem_temp_c", "utilization.gpu": "sm_pct", "utilization.memory": "mem_pct",
    "clocks.sm": "sm_clock_mhz", "clocks.current.sm": "sm_clock_mhz", "clocks.mem": "mem_clock_mhz",
    "clocks.current.memory": "mem_clock_mhz", "memory.used": "fb_mib",
    "ecc.errors.corrected.volatile.total": "sbe_errors", "ecc.errors.uncorrected.volatile.total": "dbe_errors",
    "clocks_throttle_reasons.active": "clock_reasons", "clocks_event_reasons.active": "clock_reasons",
}  # fmt: skip
_UNIT = re.compile(r"\s*\[[^\]]*\]$")
_SNIFF = re.compile(rb"^(timestamp|index)\s*,.*(power\.draw|clocks\.|temperature\.|utilization\.gpu|clocks_)")
_FIRST = re.compile(r"^(0x[0-9a-fA-F]+|[+-]?[\d.]+)")


def _read(path: Path) -> tuple[Log, ...]:
    ledger, rows = Ledger(str(path)), SampleRows()
    lines = text_lines(path, ledger)
    header = [_UNIT.sub("", cell.strip()) for cell in next(lines, "").split(",")]
    if "index" not in header:
        raise InputError.expected("a column index", ", ".join(header), where=str(path))
    for line in lines:
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip() or cells[0] == header[0]:
            continue
        row = dict(zip(header, cells, strict=False))
        if len(cells) != len(header) or not row["index"].isdigit():
            ledger.add("row that is cut short or malformed")
            continue
        values = {_COLUMNS.get(name, name): _figure(text) for name, text in row.items()
                  if name not in ("timestamp", "index", "name", "uuid")}  # fmt: skip
        rows.add(int(row["index"]), values, _time(row.get("timestamp", "")))
    return (rows.build(ledger, "nvidia-smi query", str(path)),)


def _figure(text: str) -> float:
    """``345.2 W`` -> 345.2; ``0x0000000000000004`` -> 4.0; ``[N/A]`` -> NaN."""
    match = _FIRST.match(text)
    if match is None:
        return float("nan")
    try:
        return float(int(match[1], 16) if match[1].startswith("0x") else float(match[1]))
    except ValueError:
        return float("nan")


def _time(text: str) -> int | None:
    try:
        stamp = datetime.strptime(text, "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(stamp.timestamp()) * NS["s"] + stamp.microsecond * NS["us"]


READER = LogReader("nvidia-smi query", lambda head, _: _SNIFF.search(head) is not None, _read)
