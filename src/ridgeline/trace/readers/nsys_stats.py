"""``nsys stats --report cuda_gpu_kern_sum``: sums over kernels, as CSV or as the text table. Not events.

Columns: https://docs.nvidia.com/nsight-systems/UserGuide/index.html (statistical reports, cuda_gpu_kern_sum).
"""

import csv
import io
import math
import re
from dataclasses import dataclass
from pathlib import Path

from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.trace import salvage
from ridgeline.trace.logs import NS
from ridgeline.trace.salvage import Ledger

HINT = "nsys stats --report cuda_gpu_kern_sum --format csv PROFILE"

_LIMIT_BYTES = 64 << 20
_UNIT_NS = {**NS, "μs": NS["us"], **{f"{unit}ec": NS[unit] for unit in ("ns", "us", "ms", "s")}}
_DASHES = re.compile(r"-{2,}")
_COLUMN = re.compile(r"(?P<name>.*?)\s*(?:\((?P<unit>[^)]*)\))?")
_FIELDS = {
    "total time": "total", "instances": "instances", "avg": "mean", "average": "mean", "med": "median",
    "median": "median", "min": "least", "minimum": "least", "max": "most", "maximum": "most", "stddev": "deviation",
    "name": "name", "gridxyz": "grid", "blockxyz": "block",
}  # fmt: skip


@dataclass(frozen=True)
class KernelSum:
    """All runs of one kernel (of one launch shape, in the ``_gb_`` report). Times in ns; NaN where not given."""

    name: str
    instances: int
    total_ns: float
    mean_ns: float
    median_ns: float = math.nan
    min_ns: float = math.nan
    max_ns: float = math.nan
    stddev_ns: float = math.nan
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()


@dataclass(frozen=True)
class KernelSummary:
    """The kernels of one summary, longest total first, and what could not be read."""

    path: str
    kernels: tuple[KernelSum, ...]
    lost: tuple[Loss, ...] = ()

    @property
    def total_ns(self) -> float:
        """Sum over all kernels; kernels that ran at the same time count twice."""
        return math.fsum(kernel.total_ns for kernel in self.kernels)

    def share(self, kernel: KernelSum) -> float:
        """A kernel's part of `total_ns`, 0 to 1; 0 where the total is 0."""
        return kernel.total_ns / self.total_ns if self.total_ns else 0.0


def sniff(head: bytes, path: Path) -> bool:
    """A header line of the report within the first bytes."""
    return any(_is_header(line) for line in head.decode("utf-8", "replace").splitlines()[:200])


def read(path: str | Path) -> KernelSummary:
    """A file of ``nsys stats``. Raises `InputError` for a file that has no table of kernels, or an empty one."""
    ledger = Ledger(Path(path).name)
    text = salvage.whole(path, ledger, limit=_LIMIT_BYTES).decode("utf-8-sig", "replace")
    return parse(text, str(path), ledger)


def parse(text: str, path: str = "", ledger: Ledger | None = None) -> KernelSummary:
    """The first table of kernels in the output of ``nsys stats``."""
    ledger = ledger or Ledger(path)
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if _is_header(line)), None)
    where = path or "the summary"
    if start is None:
        seen = next((line.strip()[:60] for line in lines if line.strip()), "an empty file")
        raise InputError.expected("a kernel summary of nsys stats", seen, where=where, hint=HINT)
    header, rows = _csv(lines[start:]) if "," in lines[start] else _table(lines[start:])
    columns = [_column(cell) for cell in header]
    kernels = []
    for row in rows:
        kernel = _kernel(dict(zip([name for name, _ in columns], row, strict=False)), dict(columns))
        if kernel is None or len(row) != len(header):
            ledger.add("lines of the table that are not of its form")
        else:
            kernels.append(kernel)
    if not kernels:
        raise InputError.expected("at least one kernel in the summary", "none", where=where, hint=HINT)
    kernels.sort(key=lambda kernel: -kernel.total_ns)
    return KernelSummary(path, tuple(kernels), ledger.losses())


def _is_header(line: str) -> bool:
    plain = line.lower()
    return all(word in plain for word in ("time", "total time", "instances", "name")) and "operation" not in plain


def _column(cell: str) -> tuple[str, float]:
    """``Avg (ns)`` -> ("mean", 1.0): which field, and how many ns its unit is."""
    match = _COLUMN.fullmatch(" ".join(cell.split()))
    name, unit = (match["name"].lower(), (match["unit"] or "").lower()) if match else ("", "")
    return _FIELDS.get(name, name), _UNIT_NS.get(unit, 1.0)


def _csv(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    """Rows up to the first empty line; commas inside a kernel's name are quoted."""
    end = next((i for i, line in enumerate(lines) if not line.strip()), len(lines))
    rows = list(csv.reader(io.StringIO("\n".join(lines[:end]))))
    return rows[0], rows[1:]


def _table(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    """Columns as wide as the dashes below the header; the last one runs to the end of the line."""
    if len(lines) < 2 or not _DASHES.search(lines[1]):
        return lines[0].split("  "), []
    spans = [match.span() for match in _DASHES.finditer(lines[1])]
    ends = [*(b for _, b in spans[:-1]), None]
    cut = [[line[a:b].strip() for (a, _), b in zip(spans, ends, strict=True)] for line in lines if line.strip()]
    body = lines[2:]
    count = next((i for i, line in enumerate(body) if not line.strip()), len(body))
    return cut[0], cut[2 : 2 + count]


def _kernel(cells: dict[str, str], units: dict[str, float]) -> KernelSum | None:
    """One row; None where name, number or total is missing."""
    instances = _number(cells.get("instances", ""))
    values = {
        key: _number(cells.get(key, "")) * units.get(key, 1.0)
        for key in ("total", "mean", "median", "least", "most", "deviation")
    }
    name = cells.get("name", "")
    good = name and instances >= 1 and math.isfinite(instances) and 0 <= values["total"] < math.inf
    if not good:
        return None
    mean = values["total"] / instances if math.isnan(values["mean"]) else values["mean"]
    return KernelSum(
        name, int(instances), values["total"], mean, values["median"], values["least"], values["most"],
        values["deviation"], _dims(cells.get("grid", "")), _dims(cells.get("block", "")),
    )  # fmt: skip


def _number(text: str) -> float:
    """``1,831,281``; NaN for what is no number."""
    try:
        return float(text.replace(",", "").strip())
    except ValueError:
        return math.nan


def _dims(text: str) -> tuple[int, ...]:
    """A launch shape: three whole numbers, however separated."""
    return tuple(int(size[:9]) for size in re.findall(r"\d+", text))
