"""``dcgmi dmon -e ...``: samples under a repeated header ``#Entity  GPUTL  POWER``, in rows ``GPU 0  75  185.3``.

Short names are those of DCGM's field table. Violations and errors are counters since the driver was loaded.
"""

import re
from pathlib import Path

from ridgeline.trace.logs import Log, LogReader, SampleRows, number, text_lines
from ridgeline.trace.salvage import Ledger

_COLUMNS = {
    "GPUTL": ("sm_pct", 1), "MCUTL": ("mem_pct", 1), "POWER": ("power_w", 1), "POWINST": ("power_w", 1),
    "TMPTR": ("temp_c", 1), "MMTMP": ("mem_temp_c", 1), "SMCLK": ("sm_clock_mhz", 1), "MMCLK": ("mem_clock_mhz", 1),
    "EPLMT": ("power_limit_w", 1), "PMLMT": ("power_limit_w", 1), "DVCCTR": ("clock_reasons", 1),
    "PVIOL": ("power_violation_total", 1), "TVIOL": ("thermal_violation_total", 1), "FBUSD": ("fb_mib", 1),
    "ESVTL": ("sbe_errors", 1), "EDVTL": ("dbe_errors", 1), "XIDER": ("xid", 1), "RPCTR": ("pcie_errors", 1),
    "NFELT": ("nvlink_flit_errors", 1), "NDELT": ("nvlink_data_errors", 1), "NRELT": ("nvlink_replay_errors", 1),
    "NRCLT": ("nvlink_recovery_errors", 1), "SMACT": ("sm_active", 1), "TENSO": ("tensor_active", 1),
    "DRAMA": ("dram_active", 1), "PCITX": ("pcie_tx_mb_s", 1e-6), "PCIRX": ("pcie_rx_mb_s", 1e-6),
    "NVLTX": ("nvlink_tx_mb_s", 1e-6), "NVLRX": ("nvlink_rx_mb_s", 1e-6),
}  # fmt: skip
_HEADER = re.compile(r"^#\s*Entity\s+(\S.*)$")
_ROW = re.compile(r"^\s*GPU (\d{1,6})\s+(\S.*)$")
_OTHER = re.compile(r"^\s*(GPU \d+ LINK|GPU-I|GPU-CI|NvSwitch|SW|CPU|CORE|LINK|VGPU)\b", re.IGNORECASE)
_SNIFF = re.compile(rb"^#\s*Entity\s+\S", re.MULTILINE)


def _read(path: Path) -> tuple[Log, ...]:
    ledger, rows = Ledger(str(path)), SampleRows()
    names: list[str] = []
    for line in text_lines(path, ledger):
        if header := _HEADER.match(line):
            names = header[1].split()
        elif _OTHER.match(line):
            ledger.add("row of another entity than a GPU")
        elif row := _ROW.match(line):
            cells = row[2].split()
            if len(cells) != len(names):
                ledger.add("row with another number of columns than its header")
                continue
            rows.add(int(row[1]), dict(_value(name, text) for name, text in zip(names, cells, strict=True)))
    return (rows.build(ledger, "DCGM dmon", str(path)),)


def _value(name: str, text: str) -> tuple[str, float]:
    known, factor = _COLUMNS.get(name, (name.lower(), 1))
    return known, number(text) * factor


READER = LogReader("DCGM dmon", lambda head, _: _SNIFF.search(head) is not None, _read)
