"""Logs beside a trace: step times of a run (`StepLog`) and samples of its devices (`DeviceSamples`).

Readers are plug-ins in ``log_readers``, chosen by what the file holds. A file that is damaged is read as far as it
goes; what was lost is counted in ``lost``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ridgeline.core import plugins
from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.trace import salvage
from ridgeline.trace.events import NONE, Category, Events, Ints, Mask
from ridgeline.trace.salvage import Ledger

Floats = np.ndarray[Any, np.dtype[np.float64]]
HEAD_BYTES = 1 << 20  # programs print their whole configuration before the first step
LINE_BYTES = 1 << 20  # a longer line is cut: no log line is that long
NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
MOST_STEPS = 10**6  # between two rows; a larger jump is a restart or a damaged number
LONGEST_STEP_S = 1e6  # more than 11 days is no step


@dataclass(frozen=True, eq=False)
class StepLog:
    """Step times, a row for each line of the log; columns of equal length n.

    ``step``: number of the row's last step; ``count``: how many steps it covers; ``dur`` (ns): the time of all of
    them; ``end`` (ns): when it was written, from the log's first line, NONE where the log does not say.
    ``resolution_ns``: the rounding of ``dur``. ``phases``: ns of each row by name, NONE where absent. ``marks``: steps
    at which something was logged ("evaluation", "checkpoint"). ``values``: loss, mfu and the like, NaN where absent.
    """

    format: str
    path: str
    step: Ints
    count: Ints
    dur: Ints
    end: Ints
    resolution_ns: int = 1
    rank: int | None = None
    phases: Mapping[str, Ints] = field(default_factory=dict)
    marks: Mapping[str, Ints] = field(default_factory=dict)
    values: Mapping[str, Floats] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lost: tuple[Loss, ...] = ()

    def __len__(self) -> int:
        return len(self.step)

    @property
    def seconds(self) -> Floats:
        """Seconds per step of each row, (n,)."""
        return np.asarray(self.dur / self.count / NS["s"], dtype=np.float64)

    @property
    def label(self) -> str:
        """``rank3`` where the log names a rank, else ``run``."""
        return "run" if self.rank is None else f"rank{self.rank}"


@dataclass(frozen=True, eq=False)
class DeviceSamples:
    """Samples of the devices of one host; columns of equal length n.

    ``gpu``: index on the host; ``t`` (ns): from the first sample, NONE where the file has no times. ``values`` by
    name, NaN where absent; those the levels use: power_w, power_limit_w, temp_c, mem_temp_c, sm_pct, mem_pct,
    sm_clock_mhz, mem_clock_mhz, power_violation_pct, thermal_violation, clock_reasons (bits), sbe_errors, dbe_errors,
    pcie_errors, nvlink_errors, xid, pcie_rx_mb_s, pcie_tx_mb_s, nvlink_rx_mb_s, nvlink_tx_mb_s, sm_active,
    tensor_active, dram_active (shares). Columns that are not known keep the file's own name.
    """

    format: str
    path: str
    gpu: Ints
    t: Ints
    values: Mapping[str, Floats]
    host: str = ""
    lost: tuple[Loss, ...] = ()

    def __len__(self) -> int:
        return len(self.gpu)

    def of(self, name: str, mask: Mask) -> Floats:
        """The known values of a column in some rows; empty where there is no such column."""
        if name not in self.values:
            return np.empty(0)
        found = self.values[name][mask]
        return found[~np.isnan(found)]


Log = StepLog | DeviceSamples


@dataclass(frozen=True)
class LogReader:
    """A log format. ``sniff(head, path)`` looks at the first MiB; ``read(path)`` gives a log for each rank."""

    name: str
    sniff: Callable[[bytes, Path], bool]
    read: Callable[[Path], tuple[Log, ...]]


def log_readers() -> dict[str, LogReader]:
    """Every known format by name."""
    found = plugins.load("ridgeline.trace.log_readers", LogReader, kind="trace_log_reader")
    return {reader.name: reader for reader in found}


def sniff_log(path: str | Path) -> LogReader | None:
    """The reader whose format the file has, or None."""
    start = salvage.head(path, HEAD_BYTES)
    return next((reader for reader in log_readers().values() if reader.sniff(start, Path(path))), None)


def read_log(path: str | Path) -> tuple[Log, ...]:
    """The logs of a file: one, or one for each rank that writes to it.

    Raises `InputError` for a file that cannot be opened, is of no known format, or has no usable row.
    """
    reader = sniff_log(path)
    if reader is None:
        what, _ = salvage.looks_like(salvage.head(path))
        known = ", ".join(log_readers())
        raise InputError.expected("a step-time or device log", what, where=str(path), hint=f"formats: {known}")
    return reader.read(Path(path))


def text_lines(path: str | Path, ledger: Ledger) -> Iterator[str]:
    """The lines of a text file, plain or compressed, without line ends; bytes that are not UTF-8 are replaced."""
    rest = b""
    for block in salvage.blocks(path, ledger):
        pieces = (rest + block).split(b"\n")
        rest = pieces.pop()
        yield from (_text(piece, ledger) for piece in pieces)
        if len(rest) > LINE_BYTES:
            ledger.add("line of more than 1 MiB")
            rest = rest[:0]
    if rest:
        yield _text(rest, ledger)


def _text(line: bytes, ledger: Ledger) -> str:
    text = line.decode("utf-8", "replace").rstrip("\r")
    if "\ufffd" in text:
        ledger.add("line with bytes that are not UTF-8")
    return text


def number(text: str) -> float:
    """The number that a cell holds, NaN where it holds none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


class StepRows:
    """Rows of one rank's log as a reader meets them. ``build`` checks them and makes the table."""

    def __init__(self, rank: int | None = None) -> None:
        self.rank = rank
        self._rows: list[tuple[int, int | None, int | None]] = []
        self._phases: dict[str, dict[int, int]] = {}
        self._values: dict[str, dict[int, float]] = {}
        self._marks: dict[str, set[int]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, step: int, *, per_step_ns: float | None = None, end_ns: int | None = None) -> None:
        """A row: the number of its last step, its mean time per step or else the wall clock when it was written."""
        time = None if per_step_ns is None or not np.isfinite(per_step_ns) else per_step_ns
        if time is not None:
            time = round(time) if 0 < time < LONGEST_STEP_S * NS["s"] else 0
        self._rows.append((step, time, end_ns))

    def value(self, name: str, value: float) -> None:
        """A figure of the last row."""
        self._values.setdefault(name, {})[len(self._rows) - 1] = value

    def phase(self, name: str, per_step_ns: float) -> None:
        """The time per step of a phase of the last row."""
        if self._rows and np.isfinite(per_step_ns) and 0 <= per_step_ns < LONGEST_STEP_S * NS["s"]:
            self._phases.setdefault(name, {})[len(self._rows) - 1] = round(per_step_ns)

    def mark(self, name: str, step: int | None = None) -> None:
        """Something that was logged after a step, by default after the last row's."""
        if step is not None or self._rows:
            self._marks.setdefault(name, set()).add(self._rows[-1][0] if step is None else step)

    def build(self, ledger: Ledger, **details: Any) -> StepLog:
        """The table: ``details`` are fields of `StepLog`, among them format, path and resolution_ns.

        A row without a time of its own takes the wall clock between it and the row before. Rows that have no time, or
        none that is positive, are left out and counted; restarts, where the step number goes back, are noted.
        """
        step, time, end = (_column(column) for column in zip(*self._rows, strict=True)) if self._rows else _NOTHING
        count = np.diff(step, prepend=step[:1] - 1) if len(step) else step
        grows = (count > 0) & (count <= MOST_STEPS)
        usual = int(np.median(count[1:][grows[1:]])) if len(step) > 1 and grows[1:].any() else 1
        first = np.zeros(len(step), dtype=np.bool_)
        first[:1] = True
        count = np.where(first | ~grows, usual, count)
        clock = np.diff(end, prepend=end[:1])
        clock = np.where((end != NONE) & (np.roll(end, 1) != NONE) & grows & ~first, clock, NONE)
        dur = np.where(time != NONE, time * count, clock)
        keep = (dur > 0) & (dur / count < LONGEST_STEP_S * NS["s"])
        untimed = (time == NONE) & (first | ~grows)
        restarts = int((~grows & ~first).sum())
        if restarts:
            notes = (*details.get("notes", ()), f"the step number goes back, or far ahead, {restarts} times: restarts")
            details = {**details, "notes": notes}
        ledger.add("row whose start is not logged: the first, or the first after a restart", int(untimed.sum()))
        ledger.add("row without a positive step time", int((~keep & ~untimed).sum()))
        if not keep.any():
            raise InputError.expected("step times", f"{len(step)} rows without one", where=details["path"])
        index = np.flatnonzero(keep)
        if (time[index] == NONE).any():
            details = {**details, "resolution_ns": max(_rounding(dur[index]), details.get("resolution_ns", 1))}
        begin = end[index[0]]
        return StepLog(
            step=step[index], count=count[index], dur=dur[index],
            end=np.where(end[index] == NONE, NONE, end[index] - begin),
            rank=self.rank, phases={name: _spread_out(found, index, count) for name, found in self._phases.items()},
            values={name: _floats(found, index) for name, found in self._values.items()},
            marks={name: np.array(sorted(found), dtype=np.int64) for name, found in self._marks.items()},
            lost=ledger.losses(), **details,
        )  # fmt: skip


_NOTHING = (np.empty(0, np.int64),) * 3


def _rounding(dur: Ints) -> int:
    """The rounding of a clock (ns): the largest power of ten, up to a second, that divides all of its differences."""
    common = int(np.gcd.reduce(dur))
    powers: list[int] = [10**k for k in range(10)]
    return max(power for power in powers if common % power == 0)


def _column(values: Sequence[int | None]) -> Ints:
    limit = np.iinfo(np.int64).max // 4
    return np.array([NONE if v is None or not -limit < v < limit else v for v in values], dtype=np.int64)


def _spread_out(found: Mapping[int, int], index: Ints, count: Ints) -> Ints:
    full = np.full(len(count), NONE, dtype=np.int64)
    for row, value in found.items():
        full[row] = value * count[row]
    return full[index]


def _floats(found: Mapping[int, float], index: Ints) -> Floats:
    return np.array([found.get(int(row), np.nan) for row in index], dtype=np.float64)


def step_log_of(events: Events) -> StepLog | None:
    """Step times from the step markers of a trace: from one start to the next, so that gaps between steps count.

    None where there are fewer than three markers.
    """
    rows = np.flatnonzero(events.category == Category.STEP)
    if len(rows) < 3:
        return None
    dur = np.diff(events.ts[rows])
    dur = np.r_[dur, events.dur[rows[-1]]]
    keep = dur > 0
    step = np.arange(len(rows))
    end = np.cumsum(dur)
    return StepLog(
        format=f"steps of {events.info.format}", path=events.info.path, step=step[keep],
        count=np.ones(int(keep.sum()), dtype=np.int64), dur=dur[keep], end=end[keep], rank=events.info.rank,
    )  # fmt: skip


class SampleRows:
    """Rows of a device log as a reader meets them."""

    def __init__(self) -> None:
        self._gpu: list[int] = []
        self._time: list[int] = []
        self._values: dict[str, dict[int, float]] = {}

    def add(self, gpu: int, values: Mapping[str, float], t_ns: int | None = None) -> None:
        """A sample of one device."""
        row = len(self._gpu)
        self._gpu.append(gpu)
        self._time.append(NONE if t_ns is None else t_ns)
        for name, value in values.items():
            self._values.setdefault(name, {})[row] = value

    def build(self, ledger: Ledger, name: str, path: str) -> DeviceSamples:
        """The table, of the format ``name``. Raises `InputError` where there is no sample."""
        if not self._gpu:
            raise InputError.expected("samples of a device", "none", where=path)
        gpu, t = np.array(self._gpu, dtype=np.int64), np.array(self._time, dtype=np.int64)
        known = t != NONE
        t = np.where(known, t - (int(t[known].min()) if known.any() else 0), NONE)
        index = np.arange(len(gpu))
        values = {name: _floats(found, index) for name, found in self._values.items()}
        return DeviceSamples(name, path, gpu, t, values, lost=ledger.losses())
