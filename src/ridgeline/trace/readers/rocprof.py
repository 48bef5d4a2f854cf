"""rocprofv3 JSON (``--output-format json``): kernel dispatches, copies and API calls of one or several processes.

Schema: the JSON output of ROCprofiler-SDK's tool, https://rocm.docs.amd.com/projects/rocprofiler-sdk. Kinds and
operations are indices into ``strings.buffer_records``, kernels into ``kernel_symbols``, devices are handles of
``agents``; times are nanoseconds.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.trace import salvage
from ridgeline.trace.columns import Intern
from ridgeline.trace.events import NONE, Category, Events, Info
from ridgeline.trace.read import Reader
from ridgeline.trace.rows import Table, mark_steps
from ridgeline.trace.salvage import Ledger

FORMAT = "rocprofv3-json"

_KEY = "rocprofiler-sdk-tool"
_GPU = 2  # rocprofiler_agent_type_t
_PROCESS_BITS = 40  # correlation ids count per process
_LAST_NS = 1 << 61
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_WAYS = {"HOST_TO_DEVICE": "HtoD", "DEVICE_TO_HOST": "DtoH", "DEVICE_TO_DEVICE": "DtoD", "HOST_TO_HOST": "HtoH"}
_CALLS = ("hip_api", "hsa_api", "rccl_api")
_READ = ("kernel_dispatch", "memory_copy", "marker_api", *_CALLS)


class _Handle(msgspec.Struct, frozen=True):
    handle: int = NONE


class _Correlation(msgspec.Struct, frozen=True):
    internal: int = NONE
    external: Any = None


class _Size(msgspec.Struct, frozen=True):
    x: int = 0
    y: int = 0
    z: int = 0


class _Dispatch(msgspec.Struct, frozen=True):
    agent_id: _Handle = _Handle()
    queue_id: _Handle = _Handle()
    kernel_id: int = NONE
    group_segment_size: int = NONE
    workgroup_size: _Size = _Size()
    grid_size: _Size = _Size()


class _Record(msgspec.Struct, frozen=True):
    """A row of any buffer: what it lacks keeps its default."""

    start_timestamp: int = NONE
    end_timestamp: int = NONE
    kind: int = NONE
    operation: int = NONE
    thread_id: int = NONE
    bytes: int = NONE
    correlation_id: _Correlation = _Correlation()
    dispatch_info: _Dispatch | None = None
    stream_id: _Handle | None = None
    src_agent_id: _Handle = _Handle()
    dst_agent_id: _Handle = _Handle()


class _Agent(msgspec.Struct, frozen=True):
    id: _Handle = _Handle()
    type: int = 0
    name: str = ""
    product_name: str = ""
    cu_count: int = 0
    logical_node_type_id: int = NONE


class _Symbol(msgspec.Struct, frozen=True):
    kernel_id: int = NONE
    kernel_name: str = ""
    formatted_kernel_name: str = ""
    demangled_kernel_name: str = ""
    arch_vgpr_count: int = NONE


class _Kind(msgspec.Struct, frozen=True):
    kind: str = ""
    operations: list[str] = []


class _Marker(msgspec.Struct, frozen=True):
    key: int = NONE
    value: str = ""


class _Strings(msgspec.Struct, frozen=True):
    buffer_records: list[_Kind] = []
    marker_api: list[_Marker] = []


class _Process(msgspec.Struct, frozen=True):
    agents: list[_Agent] = []
    strings: _Strings = _Strings()
    kernel_symbols: list[_Symbol] = []
    buffer_records: dict[str, list[_Record]] = {}


class _Document(msgspec.Struct, frozen=True):
    processes: list[_Process] = msgspec.field(name=_KEY)


def sniff(head: bytes, path: Path) -> bool:
    """A JSON object whose key is the tool's name."""
    return re.match(rb'[\s\xef\xbb\xbf]*\{\s*"' + _KEY.encode() + rb'"\s*:', head) is not None


def read(path: Path) -> Events:
    """The records of all processes; where several devices worked, each is a rank.

    A file that was cut off is read up to the last whole record. Raises `InputError` for a file that is not of this
    schema or holds no record.
    """
    ledger = Ledger(path.name)
    document = _decode(salvage.whole(path, ledger), path, ledger)
    rows = _Rows(ledger)
    for number, process in enumerate(document.processes):
        rows.process(number, process)
    return rows.finish(path)


def _decode(text: bytes, path: Path, ledger: Ledger) -> _Document:
    message = ""
    for mend in (lambda whole, _: whole, _closed, lambda whole, _: salvage.repair(whole)):
        try:
            return msgspec.json.decode(mend(text, ledger), type=_Document, strict=False)
        except msgspec.ValidationError as error:
            raise InputError(f"Expected rocprofv3's JSON, got other types: {error},", where=str(path)) from error
        except msgspec.DecodeError as error:
            message = message or str(error)
    raise InputError(f"Expected JSON of rocprofv3, got text that is not JSON ({message}),", where=str(path))


def _closed(text: bytes, ledger: Ledger) -> bytes:
    """A document that was cut off, closed behind its last whole object."""
    stack: list[bytes] = []
    end, still_open = 0, b""
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in (b"{", b"["):
            stack.append(b"}" if token == b"{" else b"]")
        elif token in (b"}", b"]") and stack:
            stack.pop()
            if token == b"}":
                end, still_open = match.end(), b"".join(reversed(stack))
    if still_open:
        ledger.add("records behind the cut: the file was cut off")
    return text[:end] + still_open


class _Rows:
    """The records of all processes on their way into one table."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.table = Table()
        self.gpus: list[_Agent] = []  # by device number
        self.queues = Intern()
        self.skipped: dict[str, int] = {}
        self._columns: list[tuple[int, ...]] = []

    def process(self, number: int, process: _Process) -> None:
        """All buffers of one process; its host rows carry its device if it used one."""
        self.kinds = process.strings.buffer_records
        self.markers = {marker.key: marker.value for marker in process.strings.marker_api}
        self.symbols = {symbol.kernel_id: symbol for symbol in process.kernel_symbols}
        self.base = number << _PROCESS_BITS
        gpus = [agent for agent in process.agents if agent.type == _GPU]
        gpus.sort(key=lambda agent: agent.logical_node_type_id)
        self.device_of = {agent.id.handle: len(self.gpus) + i for i, agent in enumerate(gpus)}
        self.gpus += gpus
        buffers = process.buffer_records
        used = {self._dispatch(record) for record in self._valid(buffers, "kernel_dispatch")}
        used |= {self._copy(record) for record in self._valid(buffers, "memory_copy")}
        device = used.pop() if len(used) == 1 else NONE
        for buffer in _CALLS:
            for record in self._valid(buffers, buffer):
                self._host(record, Category.RUNTIME, self._operation(record, buffer), device)
        for record in self._valid(buffers, "marker_api"):
            text = self.markers.get(record.correlation_id.internal) or self._operation(record, "range")
            self._host(record, Category.ANNOTATION, text, device)
        for name, records in buffers.items():
            if name not in _READ and records:
                self.skipped[name] = self.skipped.get(name, 0) + len(records)

    def _valid(self, buffers: Mapping[str, list[_Record]], name: str) -> list[_Record]:
        """The records of a buffer with times that can be; the others are counted."""
        records = buffers.get(name, [])
        good = [r for r in records if 0 <= r.start_timestamp <= r.end_timestamp < _LAST_NS]
        self.ledger.add(f"records of {name} without valid times", len(records) - len(good))
        return good

    def _operation(self, record: _Record, otherwise: str) -> str:
        """The name of what a record records."""
        if 0 <= record.kind < len(self.kinds) and 0 <= record.operation < len(self.kinds[record.kind].operations):
            return self.kinds[record.kind].operations[record.operation] or otherwise
        return otherwise

    def _dispatch(self, record: _Record) -> int:
        info = record.dispatch_info or _Dispatch()
        symbol = self.symbols.get(info.kernel_id, _Symbol())
        name = symbol.formatted_kernel_name or symbol.demangled_kernel_name or symbol.kernel_name
        if not name:
            self.ledger.add("kernels without a symbol: named by their id")
        meta: dict[str, Any] = {}
        threads, block = info.grid_size, info.workgroup_size
        if min(threads.x, block.x, threads.y, block.y, threads.z, block.z) > 0:
            meta["grid"] = (-(-threads.x // block.x), -(-threads.y // block.y), -(-threads.z // block.z))
            meta["block"] = (block.x, block.y, block.z)
        if symbol.arch_vgpr_count >= 0:
            meta["registers"] = symbol.arch_vgpr_count
        if info.group_segment_size >= 0:
            meta["shared"] = info.group_segment_size
        device = self._device(info.agent_id)
        stream = record.stream_id.handle if record.stream_id else self.queues[self.base, info.queue_id.handle]
        self._add(record, Category.KERNEL, name or f"kernel {info.kernel_id}", device, stream=stream, meta=meta)
        return device

    def _copy(self, record: _Record) -> int:
        """A copy belongs to its device; between two devices to the one that receives."""
        text = self._operation(record, "")
        way = next((short for long, short in _WAYS.items() if long in text), "")
        source, target = self._device(record.src_agent_id), self._device(record.dst_agent_id)
        if NONE not in (source, target):
            way = "DtoD" if source == target else "PtoP"
        way = way or ("HtoD" if target != NONE else "DtoH" if source != NONE else "Unknown")
        device = target if target != NONE else source
        stream = record.stream_id.handle if record.stream_id else self.queues[self.base, "copies"]
        self._add(record, Category.MEMCPY, f"Memcpy {way}", device, stream=stream, meta={"copy": way})
        return device

    def _device(self, agent: _Handle) -> int:
        return self.device_of.get(agent.handle, NONE)

    def _host(self, record: _Record, category: Category, name: str, device: int) -> None:
        self._add(record, category, name, device, thread=record.thread_id)

    def _add(self, record: _Record, category: Category, name: str, device: int, **more: Any) -> None:
        corr = record.correlation_id.internal
        known = 0 < corr < 1 << _PROCESS_BITS
        meta = self.table.meta(more.pop("meta", {}))
        self._columns.append(
            (
                record.start_timestamp, record.end_timestamp - record.start_timestamp, category, self.table.name(name),
                device, corr + self.base if known else NONE, _small(record.bytes), meta,
                _small(more.get("stream", NONE)), _small(more.get("thread", NONE)),
            )
        )  # fmt: skip

    def finish(self, path: Path) -> Events:
        """The table, with steps told by their names."""
        if not self._columns:
            hint = "profile with --kernel-trace --memory-copy-trace --hip-runtime-trace"
            raise InputError.expected("at least one record", "none", where=str(path), hint=hint)
        values = np.array(self._columns, dtype=np.int64)
        names = ("ts", "dur", "category", "name", "device", "corr", "bytes", "meta", "stream", "thread")
        columns = {name: values[:, i].copy() for i, name in enumerate(names)}
        columns["category"] = mark_steps(self.table.names, columns["name"], columns["dur"], columns["category"])
        self.table.add(**columns)
        work = columns["category"]
        devices = np.unique(columns["device"][(work == Category.KERNEL) | (work == Category.MEMCPY)]).tolist()
        devices = [device for device in devices if device != NONE]
        extra: dict[str, Any] = {"skipped": self.skipped} if self.skipped else {}
        if len(devices) > 1:
            extra |= {"rank_per_device": True, "devices": tuple(devices)}
        gpu = self.gpus[devices[0]] if devices else _Agent()
        info = Info(
            FORMAT, str(path), device=gpu.product_name or gpu.name, sm_count=gpu.cu_count or None,
            lost=self.ledger.losses(), extra=extra,
        )  # fmt: skip
        return self.table.build(info)


def _small(value: int) -> int:
    """A value as it is, or NONE for what no column holds."""
    return value if 0 <= value < _LAST_NS else NONE


READER = Reader("rocprof", sniff, read, priority=10)
