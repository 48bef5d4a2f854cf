"""Chrome trace JSON as the PyTorch profiler writes it (Kineto): all its schemas, plain, gzip or zip.

Times in the file are microseconds with decimals; they are turned into integer nanoseconds without loss. Flow events
(``ac2g``, ``async_cpu_to_gpu``) are used only where no event carries a correlation id: elsewhere they repeat it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw, Struct, field

from ridgeline.core.errors import InputError
from ridgeline.trace import clock, flows, salvage
from ridgeline.trace.chrome import Stream
from ridgeline.trace.columns import Intern, Pieces, integer, narrow, whole
from ridgeline.trace.events import NONE, Category, Events, Info, Ints, events
from ridgeline.trace.read import Reader
from ridgeline.trace.salvage import Ledger

_CATEGORIES = {
    "cpu_op": Category.HOST_OP,
    "operator": Category.HOST_OP,
    "op": Category.HOST_OP,
    "runtime": Category.RUNTIME,
    "driver": Category.RUNTIME,
    "kernel": Category.KERNEL,
    "concurrent_kernel": Category.KERNEL,
    "gpu_memcpy": Category.MEMCPY,
    "memcpy": Category.MEMCPY,
    "gpu_memset": Category.MEMSET,
    "memset": Category.MEMSET,
    "cuda_sync": Category.DEVICE_SYNC,
    "user_annotation": Category.ANNOTATION,
    "gpu_user_annotation": Category.DEVICE_ANNOTATION,
    "python_function": Category.PYTHON,
    "python": Category.PYTHON,
    "overhead": Category.OVERHEAD,
}
_STEP = re.compile(r"^ProfilerStep\s*#?\s*(\d*)")
_MTIA = len(Category)  # device queue of an accelerator whose events carry waits and work under one category
_ON_DEVICE = np.zeros(len(Category) + 1, np.bool_)
_DEVICE = (Category.KERNEL, Category.MEMCPY, Category.MEMSET, Category.DEVICE_SYNC, Category.DEVICE_ANNOTATION, _MTIA)
_ON_DEVICE[list(_DEVICE)] = True
_LATE_NS = 3600 * 10**9  # a clock that reads more than an hour has no events at zero
_DAY_NS = 24 * 3600 * 10**9
_SAMPLE = 31  # once a block has had no such times, every so many events are looked at
_WAITS = re.compile(r"wait|sync|event_record", re.IGNORECASE)

_Number = int | float | str | None
_ABSENT = Raw()  # a field without a value


class _Args(Struct, gc=False):
    """The details that are kept; ``Raw`` ones are interned as text and parsed once per distinct text."""

    corr: _Number = field(default=NONE, name="correlation")
    ext: _Number = field(default=NONE, name="External id")
    ext_old: _Number = field(default=NONE, name="external id")
    stream: _Number = NONE
    device: _Number = NONE
    bytes: _Number = NONE
    grid: Raw = _ABSENT
    block: Raw = _ABSENT
    registers: Raw = field(default=_ABSENT, name="registers per thread")
    shared: Raw = field(default=_ABSENT, name="shared memory")
    copy: Raw = field(default=_ABSENT, name="kind")
    shapes: Raw = field(default=_ABSENT, name="Input Dims")
    shapes_old: Raw = field(default=_ABSENT, name="Input dims")
    dtypes: Raw = field(default=_ABSENT, name="Input type")
    strides: Raw = field(default=_ABSENT, name="Input Strides")
    concrete: Raw = field(default=_ABSENT, name="Concrete Inputs")
    fwd_thread: Raw = field(default=_ABSENT, name="Fwd thread id")
    collective: Raw = field(default=_ABSENT, name="Collective name")
    dtype: Raw = _ABSENT
    group: Raw = field(default=_ABSENT, name="Process Group Name")
    group_desc: Raw = field(default=_ABSENT, name="Process Group Description")
    group_ranks: Raw = field(default=_ABSENT, name="Process Group Ranks")
    group_size: Raw = field(default=_ABSENT, name="Group size")
    in_numel: Raw = field(default=_ABSENT, name="In msg nelems")
    out_numel: Raw = field(default=_ABSENT, name="Out msg nelems")
    seq: Raw = field(default=_ABSENT, name="Seq")
    src: Raw = field(default=_ABSENT, name="Src Rank")
    dst: Raw = field(default=_ABSENT, name="Dst Rank")


class _Event(Struct, gc=False):
    ph: str = ""
    cat: str | None = ""
    name: _Number = ""
    pid: _Number = NONE
    tid: _Number = NONE
    ts: _Number = None
    dur: _Number = None
    args: _Args | None = None


class _ExactEvent(Struct, gc=False):
    """The same with times as text: for epoch microseconds with decimals, which float64 cannot hold."""

    ph: str = ""
    cat: str | None = ""
    name: _Number = ""
    pid: _Number = NONE
    tid: _Number = NONE
    ts: Raw = _ABSENT
    dur: Raw = _ABSENT
    args: _Args | None = None


_LAUNCH = ("grid", "block", "registers", "shared", "copy")
_OP = ("shapes", "shapes_old", "dtypes", "strides", "concrete", "fwd_thread")
_COLLECTIVE = (
    "collective", "dtype", "group", "group_desc", "group_ranks", "group_size", "in_numel", "out_numel", "seq", "src",
    "dst",
)  # fmt: skip
_FIELDS = {b"L": _LAUNCH, b"O": _OP, b"C": _COLLECTIVE}
# tag, its fields, and which events have them; a later line wins: a collective's kernel has a launch geometry as well
_DETAILS: tuple[tuple[bytes, Callable[[_Args], tuple[Raw, ...]], Callable[[_Args], bool]], ...] = (
    (b"L", attrgetter(*_LAUNCH), lambda a: a.grid is not _ABSENT or a.copy is not _ABSENT),
    (b"O", attrgetter(*_OP), lambda a: a.shapes is not _ABSENT or a.fwd_thread is not _ABSENT),
    (b"C", attrgetter(*_COLLECTIVE), lambda a: a.collective is not _ABSENT),
)
_NO_ARGS = _Args()


def _sniff(start: bytes, path: Path) -> bool:
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n\0")
    if text[:1] not in (b"{", b"["):
        return False
    if text[:1] == b"[":
        return re.search(rb'"ph"\s*:', text) is not None or text[1:].strip() == b""
    return re.search(rb'"(traceEvents|schemaVersion|deviceProperties|ph)"\s*:', text) is not None


def read(path: Path) -> Events:
    """One trace file as the one table. Raises `InputError` for a file with no event in it."""
    ledger = Ledger(path.name)
    table = _Table(ledger)
    stream = Stream(salvage.blocks(path, ledger), table.decode, table.lenient, ledger)
    for batch in stream:
        table.add(batch)
    found = table.finish(path, {**stream.tail, **stream.head}, stream.documents)
    unlinked = table.flows and not (found.corr[found.on_device] != NONE).any()
    return flows.link(path, found) if unlinked else found


class _Table:
    """Columns under construction."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.pieces = Pieces()
        self.names, self.metas, self.threads = Intern(), Intern(), Intern()
        self.category = _Categories()
        self.exact = self.flows = False
        self.open: dict[Any, list[Any]] = {}
        self._typed = msgspec.json.Decoder(list[_Event])
        self._typed_exact = msgspec.json.Decoder(list[_ExactEvent])
        self._one = msgspec.json.Decoder(_Event)
        self._one_exact = msgspec.json.Decoder(_ExactEvent)

    def decode(self, text: Any) -> list[Any]:
        """A JSON list as events; switches to exact times for good once float64 is too coarse."""
        if not self.exact:
            batch = self._typed.decode(text)
            look_at = batch[::_SAMPLE] if self.pieces.rows else batch
            self.exact = any(type(e.ts) is float and abs(e.ts) >= clock.EXACT_BELOW_US for e in look_at)
            if not self.exact:
                return batch
        return self._typed_exact.decode(text)

    def lenient(self, text: bytes) -> Any:
        """One event whose fields have unexpected types: what can be used of it, or None."""
        one = self._one_exact if self.exact else self._one
        try:
            return one.decode(text)
        except msgspec.DecodeError:
            pass
        try:
            loose = json.loads(text)  # numbers of any size
        except (ValueError, RecursionError):
            return None
        if not isinstance(loose, dict):
            return None
        plain: dict[str, Any] = {
            k: v if isinstance(v, int | float | str) else None for k, v in loose.items() if k != "args"
        }
        args = loose.get("args")
        plain["args"] = {k: v for k, v in args.items() if not _odd(k, v)} if isinstance(args, dict) else None
        plain["ph"], plain["cat"] = str(plain.get("ph") or ""), str(plain.get("cat") or "")
        try:
            return one.decode(msgspec.json.encode(plain))
        except msgspec.DecodeError:
            return None

    def add(self, batch: list[Any]) -> None:
        """Append the complete events of a batch; keep what begins one until its end is seen."""
        rows = [e for e in batch if e.ph == "X"]
        if len(rows) < len(batch):
            rows += self._pairs([e for e in batch if e.ph in ("B", "E")])
            self.flows = self.flows or any(e.ph == "f" for e in batch)
        if not rows:
            return
        ts = clock.nanoseconds([e.ts for e in rows])
        dur = clock.nanoseconds([e.dur for e in rows])
        unreadable, zero = ts == clock.UNREADABLE, (ts == 0) & (ts.max() > _LATE_NS)
        if (bad := unreadable | zero).any():
            self.ledger.add("events without a readable time: dropped", int(unreadable.sum()))
            self.ledger.add("events at time zero, long before all others: dropped", int(zero.sum()))
            rows = [e for e, drop in zip(rows, bad.tolist(), strict=True) if not drop]
            ts, dur = ts[~bad], dur[~bad]
            if not rows:
                return
        unreadable = dur == clock.UNREADABLE
        self.ledger.add("events without a readable duration: counted as instants", int(unreadable.sum()))
        self.ledger.add("events of negative duration: counted as instants", int(((dur < 0) & ~unreadable).sum()))
        self.ledger.add("events longer than a day: counted as instants", int((dur > _DAY_NS).sum()))
        dur = np.where(dur > _DAY_NS, 0, np.maximum(dur, 0))
        args = [e.args or _NO_ARGS for e in rows]
        category = np.array([self.category[e.cat] for e in rows], np.int8)
        on_device = _ON_DEVICE[category]
        self.pieces.append(
            ts=ts,
            dur=dur,
            category=category,
            name=np.array([self.names[e.name] for e in rows], np.int32),
            thread=narrow(np.where(on_device, NONE, whole([e.tid for e in rows], self.threads))),
            corr=narrow(whole([a.corr for a in args])),
            ext=narrow(self._external(args)),
            bytes=narrow(whole([a.bytes for a in args])),
            meta=self._meta(args),
            stream=self._stream(rows, args, on_device),
            device=self._device(rows, args, on_device),
        )

    @staticmethod
    def _external(args: list[_Args]) -> Ints:
        """The id that ties an event to its operator; the first schema writes it in small letters on the device."""
        ext = whole([a.ext for a in args])
        rest = np.flatnonzero(ext == NONE)
        ext[rest] = whole([args[i].ext_old for i in rest.tolist()])
        return ext

    def _stream(self, rows: list[Any], args: list[_Args], on_device: Any) -> Any:
        stream = np.full(len(rows), NONE, np.int64)
        where = np.flatnonzero(on_device).tolist()
        found = whole([args[i].stream for i in where])
        lanes = whole([_digits(rows[i].tid) for i in where], self.threads)
        stream[where] = np.where(found == NONE, lanes, found)
        return narrow(stream)

    def _device(self, rows: list[Any], args: list[_Args], on_device: Any) -> Any:
        device = np.full(len(rows), NONE, np.int64)
        where = np.flatnonzero(on_device).tolist()
        found = whole([args[i].device for i in where])
        device[where] = np.where(found == NONE, whole([rows[i].pid for i in where], self.threads), found)
        return narrow(device)

    def _meta(self, args: list[_Args]) -> Any:
        """Index of the interned details: launch geometry, operator inputs, collective."""
        meta = np.full(len(args), NONE, np.int32)
        for tag, fields, there in _DETAILS:
            rows = [i for i, a in enumerate(args) if there(a)]
            texts = map(fields, map(args.__getitem__, rows))
            # text of JSON values holds no zero byte, so the joint is unambiguous
            meta[rows] = [self.metas[tag + b"\0".join(text)] for text in texts]
        return meta

    def _pairs(self, edges: list[Any]) -> Iterator[Any]:
        """Events written as a begin and an end on the same thread."""
        for edge in edges:
            stack = self.open.setdefault((edge.pid, edge.tid), [])
            if edge.ph == "B":
                stack.append(edge)
            elif stack:
                begin = stack.pop()
                first, last = clock.nanoseconds([begin.ts, edge.ts]).tolist()
                begin.dur = Raw(b"%d.%03d" % divmod(last - first, 1000)) if self.exact else (last - first) / 1000
                begin.args = begin.args or edge.args
                yield begin
            else:
                self.ledger.add("ends of events without a begin: dropped")

    def finish(self, path: Path, document: Mapping[str, Any], documents: int) -> Events:
        """Sort, number the names, and put what the header says beside the table."""
        self.ledger.add("begins of events without an end: dropped", sum(map(len, self.open.values())))
        if documents > 1:
            self.ledger.add("further documents in the same file: read as one trace", documents - 1)
        if not self.pieces.rows:
            what = "a trace with metadata only" if documents else "JSON without a list of events"
            if lost := self.ledger.losses():
                what = f"a damaged file ({lost[0].what})"
            hint = "record at least one step: profiler.step() must be called while it is active"
            raise InputError.expected("events", what, where=str(path), hint=hint)
        names = [str(name) for name in self.names]
        category = self.pieces["category"]
        steps = np.array([_STEP.match(name) is not None for name in names])
        name = self.pieces["name"]
        ranges = np.isin(category, (Category.HOST_OP, Category.ANNOTATION, Category.OTHER))
        category[steps[name] & ranges] = Category.STEP
        waits = np.array([_WAITS.search(text) is not None for text in names])
        category[(category == _MTIA) & waits[name]] = Category.DEVICE_SYNC
        category[category == _MTIA] = Category.KERNEL
        ts = self.pieces["ts"]
        base = int(ts.min())
        ts -= base
        for column, values in (("ts", ts), ("name", name), ("category", category)):
            self.pieces.put(column, values)
        del ts, name, category, values
        base += integer(document.get("baseTimeNanoseconds")) or 0
        return events(self.pieces, names, [_details(key) for key in self.metas], self._info(path, document, base))

    def _info(self, path: Path, document: Mapping[str, Any], base_ns: int) -> Info:
        job = document.get("distributedInfo")
        job = job if isinstance(job, dict) else {}
        devices = [d for d in document.get("deviceProperties") or () if isinstance(d, dict)]
        groups = {
            str(g.get("pg_name")): tuple(g["ranks"])
            for g in job.get("pg_config") or ()
            if isinstance(g, dict) and isinstance(g.get("ranks"), list) and all(type(r) is int for r in g["ranks"])
        }
        skip = ("deviceProperties", "distributedInfo", "traceEvents", "stackFrames", "INFO", "ERROR")
        return Info(
            format="kineto",
            path=str(path),
            rank=integer(job.get("rank")),
            world=integer(job.get("world_size")),
            device=str(devices[0].get("name") or "") if devices else "",
            framework="PyTorch" if "schemaVersion" in document else "",
            base_ns=base_ns,
            sm_count=integer(devices[0].get("numSms")) if devices else None,
            groups=groups,
            lost=self.ledger.losses(),
            extra={k: v for k, v in document.items() if k not in skip and isinstance(v, str | int | float)},
        )


class _Categories(dict[Any, int]):
    """Category of a ``cat`` string; unknown ones are decided once, by what they contain."""

    def __missing__(self, text: Any) -> int:
        low = str(text or "").lower()
        if low in _CATEGORIES:
            found = int(_CATEGORIES[low])
        elif low.endswith(("_runtime", "_driver")):
            found = Category.RUNTIME
        elif low.endswith("_ccp_events"):
            found = _MTIA
        elif low.endswith("kernel"):
            found = Category.KERNEL
        else:
            found = Category.OTHER
        self[text] = found
        return found


def _odd(key: str, value: Any) -> bool:
    numbers = ("correlation", "External id", "external id", "stream", "device", "bytes")
    return key in numbers and not (value is None or isinstance(value, int | float | str))


def _digits(lane: Any) -> Any:
    """``stream 7`` -> 7, as the first schema wrote it."""
    if isinstance(lane, str):
        digits = lane.removeprefix("stream").strip()
        return int(digits) if digits.isdigit() else lane
    return lane


def _details(key: bytes) -> dict[str, Any]:
    texts = zip(_FIELDS[key[:1]], key[1:].split(b"\0"), strict=True)
    found = {field.removesuffix("_old"): _value(text) for field, text in texts if text}
    if isinstance(ranks := found.get("group_ranks"), str):
        found["group_ranks"] = [int(r) for r in re.findall(r"\d+", ranks)]
    return found


def _value(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return raw.decode("utf-8", "replace")


READER = Reader("kineto", _sniff, read)
