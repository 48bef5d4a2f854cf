"""The one table: every event of one rank as typed NumPy columns, whatever format it came from.

Times are integer nanoseconds relative to ``info.base_ns``: epoch microseconds in float64 lose a quarter of a
microsecond. Names and details are interned: a column holds an index. Rows are sorted by start time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from typing import Any

import numpy as np

from ridgeline.core.lost import Loss

Ints = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
NONE = -1  # in every integer column: not known


class Category(IntEnum):
    """What an event is, whatever the format called it."""

    OTHER = 0
    HOST_OP = 1  # framework operator on a host thread (aten::mm, HLO op dispatch, Triton launcher)
    RUNTIME = 2  # driver or runtime call (cudaLaunchKernel, hipMemcpyAsync, cudaStreamSynchronize)
    KERNEL = 3  # on the device, from here on
    MEMCPY = 4
    MEMSET = 5
    DEVICE_SYNC = 6  # a wait recorded on the device
    ANNOTATION = 7  # a range of the user on the host (record_function, NVTX, module)
    DEVICE_ANNOTATION = 8  # the same, drawn on the device's timeline: never work
    STEP = 9  # one training step on the host (ProfilerStep#3, an NVTX iteration range, a jit_train_step run)
    PYTHON = 10  # a Python stack frame
    OVERHEAD = 11  # the profiler's own time


DEVICE_WORK = (Category.KERNEL, Category.MEMCPY, Category.MEMSET)


class Kind(IntEnum):
    """What device work is for. Decided by rules in ``core/data/names/kernels.toml``, not by one substring."""

    NONE = 0  # not device work
    COMPUTE = 1
    COMM = 2  # collectives and point to point, whatever library
    H2D = 3
    D2H = 4
    P2P = 5  # device to device of another chip
    D2D = 6  # inside one device: counts as compute traffic, not as a copy over a link
    MEMSET = 7
    SYNC = 8
    UNCLASSIFIED = 9


COPIES = (Kind.H2D, Kind.D2H, Kind.P2P)


@dataclass(frozen=True)
class Info:
    """What is known of a trace beside its events.

    ``groups`` maps a process-group name to its ranks. ``rank`` and ``world`` are None where the file does not say.
    """

    format: str
    path: str
    rank: int | None = None
    world: int | None = None
    device: str = ""  # as the file names it: "NVIDIA H100 80GB HBM3"
    framework: str = ""
    base_ns: int = 0
    sm_count: int | None = None
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    lost: tuple[Loss, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Events:
    """Columns of equal length n, all int64. ``NONE`` (-1) means not known.

    ``ts``, ``dur`` (ns); ``category``, ``kind``; ``name`` -> ``names``; ``stream`` (device stream, NONE on the
    host); ``device`` (index on its host); ``thread`` (host thread, NONE on the device); ``corr`` (links a runtime
    call with the device work it launched), ``ext`` (links a host operator with the runtime calls under it, and a
    device event with its operator), ``bytes``; ``meta`` -> ``metas``: interned details such as a collective's
    {"collective", "dtype", "group", "group_size", "in_numel", "out_numel", "seq"} or an operator's {"shapes",
    "dtypes", "strides", "concrete"} or a kernel's {"grid", "block", "registers", "shared"}; ``step`` (0, 1, ...; NONE
    outside).
    """

    ts: Ints
    dur: Ints
    category: Ints
    kind: Ints
    name: Ints
    stream: Ints
    device: Ints
    thread: Ints
    corr: Ints
    ext: Ints
    bytes: Ints
    meta: Ints
    step: Ints
    names: tuple[str, ...]
    metas: tuple[Mapping[str, Any], ...]
    info: Info

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def end(self) -> Ints:
        """Where each event ends, ns."""
        return self.ts + self.dur

    @property
    def on_device(self) -> Mask:
        """Kernels, copies and memsets: what occupies the device."""
        return np.isin(self.category, DEVICE_WORK)

    def where(self, mask: Mask) -> "Events":
        """The rows of a mask, with the same names and details."""
        return replace(self, **{name: getattr(self, name)[mask] for name in COLUMNS})

    def name_of(self, row: int) -> str:
        """The name of one row."""
        return self.names[int(self.name[row])]

    def names_matching(self, wanted: Sequence[str] | set[str]) -> Ints:
        """Indices of these exact names."""
        inside = set(wanted)
        return np.array([i for i, name in enumerate(self.names) if name in inside], dtype=np.int64)

    def with_columns(self, **columns: Ints) -> "Events":
        """The same rows with some columns replaced."""
        return replace(self, **columns)  # type: ignore[arg-type]


COLUMNS: tuple[str, ...] = tuple(f.name for f in fields(Events) if f.name not in ("names", "metas", "info"))


def events(columns: Mapping[str, Any], names: Sequence[str], metas: Sequence[Mapping[str, Any]], info: Info) -> Events:
    """Build the table: columns as int64, missing ones filled with NONE (``kind`` with 0), rows sorted by start.

    At equal starts the longer event comes first, so that a parent precedes its children.
    """
    ts, dur = np.asarray(columns["ts"], dtype=np.int64), np.asarray(columns["dur"], dtype=np.int64)
    order = np.lexsort((-dur, ts))
    full = {"ts": ts[order], "dur": dur[order]}
    del ts, dur
    for name in COLUMNS[2:]:  # one by one: a table of millions of rows is not held twice
        column = np.asarray(columns[name], dtype=np.int64)[order] if name in columns else _missing(name, len(order))
        full[name] = column
    return Events(**full, names=tuple(names), metas=tuple(metas), info=info)


def _missing(name: str, n: int) -> Ints:
    return np.full(n, 0 if name in ("kind", "category") else NONE, dtype=np.int64)


@dataclass(frozen=True)
class Run:
    """The ranks of one job, each on its own clock; ``offset_ns[i]`` is added to rank i to put it on rank 0's clock.

    ``spread_ns`` says how well the offsets are known (the residual of collectives that end together); None for a
    single rank.
    """

    ranks: tuple[Events, ...]
    offset_ns: tuple[int, ...] = ()
    spread_ns: int | None = None

    def __iter__(self) -> Iterator[Events]:
        return iter(self.ranks)

    def __len__(self) -> int:
        return len(self.ranks)

    def labels(self) -> list[str]:
        """``rank0``, ``rank1``: by the file's own rank, else by order."""
        return [f"rank{e.info.rank if e.info.rank is not None else i}" for i, e in enumerate(self.ranks)]
