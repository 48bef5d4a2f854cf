"""Nsight Compute's CSV: counters of single kernels, as ``ncu --csv`` prints them (details page or raw page).

The details page has one line per metric and per rule of a kernel; the raw page one line per kernel, with units in
the second line. Text that the profiler or the program printed before the table is passed over.
"""

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss

Bound = Literal["compute bound", "memory bound", "latency bound", "balanced", "unknown"]
_TIME = {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e3**3, "second": 1e3**3}
_MAX_BYTES = 512 * 2**20
# What a counter is called on the details page and on the raw page.
_NAMES: Mapping[str, tuple[str, str]] = {
    "duration": ("Duration", "gpu__time_duration.sum"),
    "sm": ("Compute (SM) Throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
    "memory": ("Memory Throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
    "dram": ("DRAM Throughput", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
    "l1": ("L1/TEX Cache Throughput", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
    "l2": ("L2 Cache Throughput", "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
    "achieved": ("Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    "theoretical": ("Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct"),
    "waves": ("Waves Per SM", "launch__waves_per_multiprocessor"),
    "registers": ("Registers Per Thread", "launch__registers_per_thread"),
    "sms": ("# SMs", "launch__sm_count"),
}


@dataclass(frozen=True)
class NcuRule:
    """Advice of the profiler: name, type (OPT, INF, WRN), text, and its estimate of the speed-up in percent.

    ``scope`` of the estimate is ``global`` (of the kernel) or ``local`` (of the limited resource alone).
    """

    section: str
    name: str
    kind: str
    text: str
    scope: str = ""
    speedup_percent: float | None = None


@dataclass(frozen=True)
class KernelCounters:
    """One profiled launch. Percentages are of the peak that can be sustained; None where it was not collected.

    ``sm_percent`` and ``memory_percent`` are the speed of light of compute and of the memory system as a whole.
    ``metrics`` has every figure as (section, name) -> (value, unit); the raw page has no sections.
    """

    ident: str
    kernel: str
    device: str
    stream: str
    compute_capability: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    duration_ns: float | None = None
    sm_percent: float | None = None
    memory_percent: float | None = None
    dram_percent: float | None = None
    l1_percent: float | None = None
    l2_percent: float | None = None
    achieved_occupancy_percent: float | None = None
    theoretical_occupancy_percent: float | None = None
    waves_per_sm: float | None = None
    registers: float | None = None
    sm_count: float | None = None
    rules: tuple[NcuRule, ...] = ()
    metrics: Mapping[tuple[str, str], tuple[float, str]] = field(default_factory=dict)

    def bound(self, busy_percent: float = 60.0) -> Bound:
        """What limits the kernel, speed of light first.

        Below ``busy_percent`` of both it waits: latency. The figure is the one Nsight Compute's own speed-of-light
        rule uses. Within a tenth of each other above it, compute and memory are balanced.
        """
        if self.sm_percent is None or self.memory_percent is None:
            return "unknown"
        if max(self.sm_percent, self.memory_percent) < busy_percent:
            return "latency bound"
        if abs(self.sm_percent - self.memory_percent) <= 0.1 * max(self.sm_percent, self.memory_percent):
            return "balanced"
        return "compute bound" if self.sm_percent > self.memory_percent else "memory bound"


@dataclass(frozen=True)
class NcuReport:
    """The launches of one file, in its order, and what could not be read."""

    kernels: tuple[KernelCounters, ...]
    path: str = ""
    lost: tuple[Loss, ...] = ()


def is_ncu(head: str) -> bool:
    """Whether a text holds the header of an Nsight Compute table."""
    return any(_is_header(line) for line in head.splitlines())


def read(path: str | Path) -> NcuReport:
    """Read a CSV of Nsight Compute. Raises `InputError` for a file without its table."""
    file = Path(path)
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise InputError.expected("at most 512 MiB of CSV", f"{file.stat().st_size} bytes", where=str(path))
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError.expected("a readable Nsight Compute CSV", error.strerror, where=str(path)) from None
    return parse(text, str(path))


def parse(text: str, path: str = "") -> NcuReport:
    """The report of a text. Raises `InputError` where there is no table."""
    lines = text.lstrip("\ufeff").splitlines()
    start = next((i for i, line in enumerate(lines) if _is_header(line)), None)
    if start is None:
        hint = "write it with: ncu --csv --page details"
        raise InputError("Expected the CSV table of Nsight Compute, got none,", where=path or "the CSV", hint=hint)
    header = next(csv.reader([lines[start]]))
    least = header.index("Metric Value") + 1 if "Metric Value" in header else len(header)
    rows, bad = _rows(lines[start + 1 :], least, len(header))
    build = _details if "Metric Name" in header else _raw
    kernels = tuple(build(header, rows))
    lost = (Loss("lines that do not fit the table's columns", bad, path),) if bad else ()
    return NcuReport(kernels, path, lost)


def _is_header(line: str) -> bool:
    return line.startswith('"ID"') and '"Kernel Name"' in line


def _rows(lines: list[str], least: int, width: int) -> tuple[list[list[str]], int]:
    """Lines as lists of ``width`` texts, and how many are bad. Those of metrics end before the columns of rules."""
    rows: list[list[str]] = []
    bad = 0
    source = csv.reader(lines)
    while True:
        try:
            row = next(source)
        except StopIteration:
            return rows, bad
        except csv.Error:
            bad += 1
            continue
        if least <= len(row) <= width:
            rows.append(row + [""] * (width - len(row)))
        elif row and not row[0].startswith("=="):
            bad += 1


def _number(text: str) -> float | None:
    """``12,319,469`` and ``1.30``; None for anything else."""
    if len(text) > 40 or not re.fullmatch(r"[+-]?[\d,]*\.?\d*(e[+-]?\d{1,3})?", text.strip().lower()):
        return None
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _dims(text: str) -> tuple[int, ...]:
    """``(256, 1, 1)``."""
    return tuple(int(part) for part in re.findall(r"\d{1,10}", text)[:3])


def _details(header: list[str], rows: list[list[str]]) -> Iterator[KernelCounters]:
    """One kernel per ID, from its lines of metrics and rules."""
    launches: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        named = dict(zip(header, row, strict=True))
        launches.setdefault(named["ID"], []).append(named)
    for lines in launches.values():
        metrics: dict[tuple[str, str], tuple[float, str]] = {}
        for line in lines:
            value = _number(line.get("Metric Value", "")) if line.get("Metric Name") else None
            if value is not None:
                metrics[line.get("Section Name", ""), line["Metric Name"]] = (value, line.get("Metric Unit", ""))
        rules = tuple(_rule(line) for line in lines if line.get("Rule Name"))
        yield _kernel(lines[0], metrics, rules, 0)


def _rule(line: Mapping[str, str]) -> NcuRule:
    return NcuRule(
        line.get("Section Name", ""), line["Rule Name"], line.get("Rule Type", ""), line.get("Rule Description", ""),
        line.get("Estimated Speedup Type", ""), _number(line.get("Estimated Speedup", "")),
    )  # fmt: skip


def _raw(header: list[str], rows: list[list[str]]) -> Iterator[KernelCounters]:
    """One kernel per line; the first line, without an ID, has the units."""
    units: dict[str, str] = {}
    for row in rows:
        named = dict(zip(header, row, strict=True))
        if not named["ID"]:
            units = named
            continue
        values = {name: _number(text) for name, text in named.items() if "__" in name}
        metrics = {("", name): (v, units.get(name, "")) for name, v in values.items() if v is not None}
        yield _kernel(named, metrics, (), 1)


def _kernel(
    line: Mapping[str, str],
    metrics: Mapping[tuple[str, str], tuple[float, str]],
    rules: tuple[NcuRule, ...],
    page: int,
) -> KernelCounters:
    get = _getter(metrics, page)
    duration = get("duration", *_TIME)
    return KernelCounters(
        ident=line["ID"], kernel=line["Kernel Name"], device=line.get("Device", ""), stream=line.get("Stream", ""),
        compute_capability=line.get("CC", ""), grid=_dims(line.get("Grid Size", "")),
        block=_dims(line.get("Block Size", "")),
        duration_ns=None if duration is None else duration[0] * _TIME[duration[1]],
        sm_percent=_value(get("sm", "%")), memory_percent=_value(get("memory", "%")),
        dram_percent=_value(get("dram", "%")), l1_percent=_value(get("l1", "%")), l2_percent=_value(get("l2", "%")),
        achieved_occupancy_percent=_value(get("achieved", "%")),
        theoretical_occupancy_percent=_value(get("theoretical", "%")),
        waves_per_sm=_value(get("waves")), registers=_value(get("registers")), sm_count=_value(get("sms")),
        rules=rules, metrics=metrics,
    )  # fmt: skip


def _value(found: tuple[float, str] | None) -> float | None:
    return None if found is None else found[0]


def _getter(metrics: Mapping[tuple[str, str], tuple[float, str]], page: int) -> Callable[..., tuple[float, str] | None]:
    """Find a counter by our name; where units are given, only in one of them ("Memory Throughput" has two)."""

    def get(key: str, *units: str) -> tuple[float, str] | None:
        name = _NAMES[key][page]
        found = (item for (_, metric), item in metrics.items() if metric == name)
        return next((item for item in found if not units or item[1] in units), None)

    return get
