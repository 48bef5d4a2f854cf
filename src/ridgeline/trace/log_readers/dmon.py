"""``nvidia-smi dmon``: a table of samples under header lines that start with ``#`` and are repeated.

The first header line names the columns, the second gives their units. Options add a time, a date, and columns.
"""

import re
from datetime import UTC, datetime
from pathlib import Path

from ridgeline.trace.logs import NS, Log, LogReader, SampleRows, number, text_lines
from ridgeline.trace.salvage import Ledger

COLUMNS = {
    "pwr": "power_w", "gtemp": "temp_c", "mtemp": "mem_temp_c", "sm": "sm_pct", "mem": "mem_pct",
    "mclk": "mem_clock_mhz", "pclk": "sm_clock_mhz", "pviol": "power_violation_pct", "tviol": "thermal_violation",
    "rxpci": "pcie_rx_mb_s", "txpci": "pcie_tx_mb_s", "sbecc": "sbe_errors", "dbecc": "dbe_errors",
    "pci": "pcie_errors", "fb": "fb_mib",
}  # fmt: skip
_CELL = re.compile(r"[,\s]+")
_SNIFF = re.compile(rb"^#\s*(date[,\s]+)?(time[,\s]+)?gpu[,\s]", re.MULTILINE | re.IGNORECASE)
_DAY_NS = 86_400 * NS["s"]


def _read(path: Path) -> tuple[Log, ...]:
    ledger, rows = Ledger(str(path)), SampleRows()
    header: list[str] = []
    days, before = 0, 0
    for line in text_lines(path, ledger):
        cells = [cell for cell in _CELL.split(line.lstrip("# \t")) if cell]
        if line.lstrip().startswith("#"):
            header = [cell.lower() for cell in cells] if "gpu" in map(str.lower, cells) else header
            continue
        if not cells:
            continue
        if len(cells) != len(header):
            ledger.add("row with another number of columns than its header")
            continue
        row = dict(zip(header, cells, strict=True))
        if not row["gpu"].isdigit():
            ledger.add("row without a GPU index")
            continue
        when = _time(row)
        if when is not None and "date" not in row:
            days += when < before - _DAY_NS // 2  # the clock has no date: midnight went by
            before = when
        values = {COLUMNS.get(name, name): number(text) for name, text in row.items()
                  if name not in ("gpu", "time", "date")}  # fmt: skip
        rows.add(int(row["gpu"]), values, None if when is None else when + days * _DAY_NS)
    return (rows.build(ledger, "nvidia-smi dmon", str(path)),)


def _time(row: dict[str, str]) -> int | None:
    if "time" not in row:
        return None
    try:
        stamp = datetime.strptime(f"{row.get('date', '19700101')} {row['time']}", "%Y%m%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(stamp.timestamp()) * NS["s"]


READER = LogReader("nvidia-smi dmon", lambda head, _: _SNIFF.search(head) is not None, _read)
