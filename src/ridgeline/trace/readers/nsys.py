"""Nsight Systems: the SQLite export (``nsys export --type sqlite``).

Schema: https://docs.nvidia.com/nsight-systems/UserGuide/index.html (exporting, SQLite schema reference). Columns come
and go between versions: a table needs its start and end, everything else may be missing and is then not known.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.trace.events import DEVICE_WORK, NONE, Category, Events, Info, Ints
from ridgeline.trace.read import Reader
from ridgeline.trace.readers.nsys_db import HINT, Database, opened
from ridgeline.trace.rows import Table, mark_steps

MAGIC = b"SQLite format 3\0"
FORMAT = "nsys-sqlite"

_RANGES = "eventType IN (59, 60)"  # push/pop and start/end: the NVTX events that last
_THREAD_NAME, _DOMAIN_NAME = 39, 75
_COPIES = {
    1: "HtoD", 2: "DtoH", 3: "HtoD", 4: "DtoH", 5: "DtoD", 6: "DtoD", 7: "DtoD", 8: "DtoD", 9: "HtoH", 10: "PtoP",
    11: "HtoD", 12: "DtoH", 13: "DtoD",
}  # fmt: skip  # ENUM_CUDA_MEMCPY_OPER
_MEMORY = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device", "Managed")  # ENUM_CUDA_MEM_KIND
_SYNCS = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}  # ENUM_CUPTI_SYNC_TYPE
_VERSION = re.compile(r"_v\d+(_ptsz|_ptds)?$")  # cudaLaunchKernel_v7000
# PyTorch's emit_nvtx: "aten::mm, seq = 12, op_id = 34, sizes = [[8, 16], [16, 4]]"
_OPERATOR = re.compile(r"(.+?)(?:, seq = \d+)?, op_id = (\d+)(?:, sizes = (\[.*\]))?.*", re.DOTALL)
_RANK = re.compile(r"MPI Rank (\d+)", re.IGNORECASE)
_THREAD_BITS = 0xFFFFFF  # a globalTid is a globalPid with the thread in its low 24 bits
_SHAPE = "gridX gridY gridZ blockX blockY blockZ registersPerThread staticSharedMemory dynamicSharedMemory"
_EXPECTED = (
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS",
    "TARGET_INFO_GPU",
)  # fmt: skip
_DEVICE = "deviceId streamId correlationId globalPid"


def sniff(head: bytes, path: Path) -> bool:
    """An SQLite file; whether it is an export of Nsight Systems shows when it is read."""
    return head.startswith(MAGIC)


def read(path: Path) -> Events:
    """All events of the file; where several devices ran kernels, each is a rank (``info.extra["rank_per_device"]``).

    Host events carry the device of their process where it has one. Raises `InputError` for a file that is no export
    or holds no event. Damaged tables are read as far as they go; what was lost is in ``info.lost``.
    """
    with path.open("rb") as file:
        if file.read(2) == b"\x1f\x8b":
            raise InputError.expected("an SQLite file", "a gzip archive", where=str(path), hint="unpack it with gunzip")
    with opened(path) as db:
        source = _Source(db, path)
        source.device_work()
        source.host_work()
        source.ranges()
        source.leftovers()
        return source.finish()


class _Source:
    """The tables of one export on their way into columns."""

    def __init__(self, db: Database, path: Path) -> None:
        self.db, self.path = db, path
        self.table = Table()
        self.process: list[Ints] = []  # of each row of the table, NONE where the file does not say
        self.extra: dict[str, Any] = {}
        self.rank: int | None = None
        self.strings = {k: str(v) for k, v in db.rows("StringIds", "id value") if isinstance(k, int)}
        if not self.strings:
            db.lost.append(Loss("names: table StringIds is missing or empty", 1, "StringIds"))

    def device_work(self) -> None:
        """Kernels, whole CUDA graphs, copies, memsets and waits."""
        self._kernels()
        self._graphs()
        self._copies()
        if found := self.db.spans("CUPTI_ACTIVITY_KIND_MEMSET", f"{_DEVICE} bytes"):
            rows, _ = found
            self._device(rows, Category.MEMSET, self.table.name("Memset (Device)"), bytes=rows["bytes"])
        if found := self.db.spans("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", f"{_DEVICE} syncType"):
            rows, _ = found
            name = self._each(rows["syncType"], lambda kind: _SYNCS.get(kind, "Synchronization"))
            self._device(rows, Category.DEVICE_SYNC, name)

    def _kernels(self) -> None:
        """The demangled name comes before the short one: only it says the data types."""
        found = self.db.spans("CUPTI_ACTIVITY_KIND_KERNEL", f"{_DEVICE} demangledName shortName {_SHAPE}")
        if found is None:
            return
        rows, _ = found
        shapes = np.stack([rows[column] for column in _SHAPE.split()], axis=1)
        unique, inverse = np.unique(shapes, axis=0, return_inverse=True)
        metas = np.array([self.table.meta(_launch(row)) for row in unique.tolist()], np.int64)
        name = self._named(np.where(rows["demangledName"] >= 0, rows["demangledName"], rows["shortName"]), "kernel")
        self._device(rows, Category.KERNEL, name, meta=metas[inverse.reshape(-1)])

    def _graphs(self) -> None:
        """With ``--cuda-graph-trace=graph`` a graph is one record and its kernels are not in the file."""
        found = self.db.spans("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", f"{_DEVICE} graphId")
        if found is None:
            return
        rows, _ = found
        name = self._each(rows["graphId"], lambda graph: f"CUDA graph {graph}")
        self._device(rows, Category.KERNEL, name)
        what = "kernels inside CUDA graphs: each graph is one event (profile with --cuda-graph-trace=node)"
        self.db.lost.append(Loss(what, len(rows["start"]), "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"))

    def _copies(self) -> None:
        """Named as Kineto names them, with the two kinds of memory."""
        found = self.db.spans("CUPTI_ACTIVITY_KIND_MEMCPY", f"{_DEVICE} bytes copyKind srcKind dstKind")
        if found is None:
            return
        rows, _ = found
        kinds = np.stack([rows[column] for column in ("copyKind", "srcKind", "dstKind")], axis=1)
        unique, inverse = np.unique(kinds, axis=0, return_inverse=True)
        names, metas = [], []
        for kind, source, target in unique.tolist():
            way = _COPIES.get(kind, "Unknown")
            names.append(self.table.name(f"Memcpy {way} ({_memory(source)} -> {_memory(target)})"))
            metas.append(self.table.meta({"copy": way}))
        inverse = inverse.reshape(-1)
        meta = np.array(metas, np.int64)[inverse]
        self._device(rows, Category.MEMCPY, np.array(names, np.int64)[inverse], bytes=rows["bytes"], meta=meta)

    def host_work(self) -> None:
        """Calls of the runtime and driver, and the profiler's own time."""
        for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"):
            if found := self.db.spans(table, "globalTid correlationId nameId"):
                rows, _ = found
                self._host(rows, Category.RUNTIME, self._named(rows["nameId"], "call"), corr=rows["correlationId"])
        for table in ("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"):
            if found := self.db.spans(table, "globalTid nameId"):
                rows, _ = found
                self._host(rows, Category.OVERHEAD, self._named(rows["nameId"], "profiler overhead"))

    def ranges(self) -> None:
        """NVTX: PyTorch's operators (``emit_nvtx``) as HOST_OP, iterations as STEP, the rest as ANNOTATION."""
        domains = self._domains()
        where = _RANGES if "eventType" in self.db.columns("NVTX_EVENTS") else "1"
        found = self.db.spans(
            "NVTX_EVENTS", "globalTid textId domainId", text="text", where=f'{where} AND "end" NOT NULL'
        )
        if found is None:
            return
        rows, texts = found
        texts = [t or self.strings.get(i, "range") for t, i in zip(texts, rows["textId"].tolist(), strict=True)]
        pairs = list(zip(texts, rows["domainId"].tolist(), strict=True))
        parsed = {pair: self._range(*pair, domains) for pair in set(pairs)}
        category, name, ext, meta = np.array([parsed[pair] for pair in pairs], dtype=np.int64).T
        category = mark_steps(self.table.names, name, rows["end"] - rows["start"], category)
        self._host(rows, category, name, ext=ext, meta=meta)

    def _domains(self) -> dict[int, str]:
        """The names of NVTX domains; on the way, the rank where MPI's wrapper named its thread."""
        domains: dict[int, str] = {}
        named = self.db.columns("NVTX_EVENTS") >= {"eventType", "text", "domainId"}
        for kind, text, domain in self.db.rows("NVTX_EVENTS", "eventType text domainId") if named else ():
            if kind == _DOMAIN_NAME and text:
                domains[domain] = str(text)
            elif kind == _THREAD_NAME and (match := _RANK.fullmatch(str(text))):
                self.rank = int(match[1])
        return domains

    def _range(self, text: str, domain: int, domains: Mapping[int, str]) -> tuple[int, int, int, int]:
        """Category, name, operator id and detail of one range."""
        meta: dict[str, Any] = {"domain": domains[domain]} if domain in domains else {}
        if match := _OPERATOR.fullmatch(text):
            if shapes := _shapes(match[3]):
                meta = {**meta, "shapes": shapes}
            return Category.HOST_OP, self.table.name(match[1]), int(match[2][:18]), self.table.meta(meta)
        return Category.ANNOTATION, self.table.name(text), NONE, self.table.meta(meta)

    def leftovers(self) -> None:
        """Tables not read: device work among them is a loss, the rest is listed."""
        ignored: dict[str, int] = {}
        for name in self.db.tables:
            if name in self.db.used or name.startswith(("ENUM_", "TARGET_INFO_", "META_DATA_", "EXPORT_META")):
                continue
            have = self.db.columns(name)
            count = self.db.count(name) if {"start", "end"} <= have else 0
            if not count:
                continue
            if name.startswith("CUPTI_ACTIVITY_KIND_") or "deviceId" in have:
                self.db.lost.append(Loss("device activity in a table that is not read", count, name))
            else:
                ignored[name] = count
        if ignored:
            self.extra["ignored_tables"] = ignored

    def finish(self) -> Events:
        """One table: devices told apart by process where two processes count theirs from 0, correlations too."""
        columns = self.table.columns()
        if not len(columns["ts"]):
            raise InputError.expected("at least one event", "none", where=str(self.path), hint=HINT)
        process = np.concatenate(self.process)
        owned = _owned(columns, process)
        self._note_bystanders(columns, process, owned)
        gpus = {row[0]: row for row in self.db.rows("TARGET_INFO_GPU", "id name smCount")}
        gpu = gpus.get(owned[0][0] if owned else 0) or (next(iter(gpus.values())) if gpus else (None, "", None))
        if len(owned) > 1:
            self.extra |= {"rank_per_device": True, "devices": tuple(device for device, _ in owned)}
        columns["device"][:], columns["corr"][:] = _told_apart(columns, process, owned)
        epoch = self.db.rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs")
        if absent := [table for table in _EXPECTED if table not in self.db.tables]:
            self.extra["missing_tables"] = tuple(absent)
        info = Info(
            FORMAT, str(self.path), rank=self.rank, device=str(gpu[1] or ""),
            lost=tuple(self.db.lost), extra=self.extra,
            base_ns=epoch[0][0] if epoch and isinstance(epoch[0][0], int) else 0,
            sm_count=gpu[2] if isinstance(gpu[2], int) and gpu[2] > 0 else None,
        )  # fmt: skip
        return self.table.build(info)

    def _note_bystanders(self, columns: Mapping[str, Ints], process: Ints, owned: list[tuple[int, int]]) -> None:
        """Processes that copy or set memory on a device and run no kernel there; they stay with the device."""
        work = np.isin(columns["category"], (Category.MEMCPY, Category.MEMSET))
        pairs = np.unique(np.stack([columns["device"][work], process[work]], axis=1), axis=0).tolist()
        guests = [pair for pair in pairs if tuple(pair) not in owned]
        if guests and owned:
            self.extra["processes_without_kernels_on_their_device"] = len(guests)

    def _named(self, ids: Ints, otherwise: str) -> Ints:
        """Names by StringIds, without the version that the runtime's symbols carry."""
        return self._each(
            ids, lambda i: _VERSION.sub("", self.strings.get(i, f"{otherwise} {i}" if i >= 0 else otherwise))
        )

    def _each(self, values: Ints, text: Any) -> Ints:
        """The name of each value; ``text`` is asked once for each different one."""
        unique, inverse = np.unique(values, return_inverse=True)
        return np.array([self.table.name(text(int(v))) for v in unique], np.int64)[inverse.reshape(-1)]

    def _device(self, rows: Mapping[str, Ints], category: Category, name: Ints | int, **columns: Any) -> None:
        self.process.append(rows["globalPid"])
        self.table.add(
            ts=rows["start"], dur=rows["end"] - rows["start"], category=category, name=name, stream=rows["streamId"],
            device=rows["deviceId"], corr=rows["correlationId"], **columns,
        )  # fmt: skip

    def _host(self, rows: Mapping[str, Ints], category: Category | Ints, name: Ints, **columns: Any) -> None:
        thread = rows["globalTid"]
        self.process.append(np.where(thread >= 0, thread & ~_THREAD_BITS, NONE))
        self.table.add(
            ts=rows["start"], dur=rows["end"] - rows["start"], category=category, name=name,
            thread=np.where(thread >= 0, thread & _THREAD_BITS, NONE), **columns,
        )  # fmt: skip


def _owned(columns: Mapping[str, Ints], process: Ints) -> list[tuple[int, int]]:
    """(device, process) pairs that ran kernels, or any work where there are no kernels, by device."""
    category = columns["category"]
    wanted = category == Category.KERNEL
    if not wanted.any():
        wanted = np.isin(category, DEVICE_WORK)
    pairs = np.unique(np.stack([columns["device"][wanted], process[wanted]], axis=1), axis=0)
    return [(int(device), int(owner)) for device, owner in pairs.tolist()]


def _told_apart(columns: Mapping[str, Ints], process: Ints, owned: list[tuple[int, int]]) -> tuple[Ints, Ints]:
    """Devices and correlation ids that mean one thing each, whichever process counted them.

    Two processes that each see one device both call it 0: then devices are numbered by their place in ``owned``. Host
    rows get the device of their process if it has exactly one, as do waits, which some versions all put on device 0.
    """
    device, corr = columns["device"].copy(), columns["corr"].copy()
    devices = [index for index, _ in owned]
    shared = len(set(devices)) < len(devices)
    for place, (index, owner) in enumerate(owned):
        mine = process == owner
        if shared:
            device[mine & (columns["device"] == index)] = place
        if owner != NONE and [o for _, o in owned].count(owner) == 1:
            loose = (columns["device"] == NONE) | (columns["category"] == Category.DEVICE_SYNC)
            device[mine & loose] = place if shared else index
    known = corr != NONE
    if len(np.unique(process[known])) > 1:
        pairs = np.stack([process[known], corr[known]], axis=1)
        corr[known] = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    return device, corr


def _launch(row: list[int]) -> dict[str, Any]:
    """A kernel's launch shape; empty where the file has none."""
    grid, block, (registers, static, dynamic) = tuple(row[:3]), tuple(row[3:6]), row[6:]
    meta: dict[str, Any] = {}
    if min(grid) > 0:
        meta["grid"] = grid
    if min(block) > 0:
        meta["block"] = block
    if registers >= 0:
        meta["registers"] = registers
    if static >= 0 and dynamic >= 0:
        meta["shared"] = static + dynamic
    return meta


def _memory(kind: int) -> str:
    return _MEMORY[kind] if 0 <= kind < len(_MEMORY) else "Unknown"


def _shapes(text: str | None) -> tuple[tuple[int, ...], ...]:
    """``[[8, 16], []]`` as tuples; nothing where it is not that."""
    try:
        values = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return ()
    good = isinstance(values, list) and all(isinstance(v, list) and all(isinstance(n, int) for n in v) for v in values)
    return tuple(tuple(v) for v in values) if good else ()


READER = Reader("nsys", sniff, read)
