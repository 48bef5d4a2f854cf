"""XProf's trace viewer JSON (``trace.json.gz``): Chrome events whose processes are ``/device:TPU:0`` or ``/host:CPU``.

The viewer repeats operations on rows of its own (framework names, source lines) and keeps at most a million events;
the ``.xplane.pb`` beside it has everything.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from ridgeline.trace import salvage
from ridgeline.trace.chrome import Stream
from ridgeline.trace.events import Events, Info
from ridgeline.trace.read import Reader
from ridgeline.trace.readers.xprof_rows import DEVICE, Role, XprofRows, role
from ridgeline.trace.salvage import Ledger

FORMAT = "xprof-json"

_PROCESS = re.compile(rb'"name"\s*:\s*"/(device|host):')
_VIEWER_LIMIT = 1_000_000  # events that the trace viewer keeps
_LATEST_US = float(10**15)  # later is damage: times count from the start of the profile
_Number = int | float | str | None


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    name: str = ""
    pid: _Number = None
    tid: _Number = None
    ts: float = math.nan
    dur: float = 0.0
    args: dict[str, Any] | None = None


@dataclass
class _Labels:
    """Names of processes and of their rows."""

    processes: dict[_Number, str] = field(default_factory=dict)
    threads: dict[tuple[_Number, _Number], str] = field(default_factory=dict)

    @cached_property
    def with_streams(self) -> set[_Number]:
        """Processes with GPU streams."""
        return {pid for (pid, _), name in self.threads.items() if name.startswith("Stream #")}

    @cached_property
    def no_devices(self) -> bool:
        """No process is a device: what ran on the host is the work."""
        return not any(DEVICE.fullmatch(name) for name in self.processes.values())


_DECODER = msgspec.json.Decoder(list[_Event])


def sniff(head: bytes, path: Path) -> bool:
    """JSON in whose first events a process is named ``/device:...`` or ``/host:...``."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n\0")[:1] in (b"{", b"[") and _PROCESS.search(head) is not None


def read(path: Path) -> Events:
    """The events of all rows but the viewer's own; where several devices worked, each is a rank.

    The file is read twice: names of processes and rows may come behind their events. Raises `InputError` for a file
    with no event in it.
    """
    labels = _Labels()
    for event in _events(path, Ledger(path.name)):
        if event.ph == "M" and event.args:
            label = str(event.args.get("name", ""))
            if event.name == "process_name":
                labels.processes[event.pid] = label
            elif event.name == "thread_name":
                labels.threads[event.pid, event.tid] = label
    ledger = Ledger(path.name)
    rows, count = XprofRows(), 0
    for event in _events(path, ledger):
        if event.ph == "X":
            count += 1
            _add(rows, event, labels, ledger)
    if count >= _VIEWER_LIMIT:
        ledger.add("events above the trace viewer's limit of a million: read the .xplane.pb instead")
    return rows.finish(Info(FORMAT, str(path)), ledger.losses())


def _events(path: Path, ledger: Ledger) -> Iterator[_Event]:
    stream = Stream(salvage.blocks(path, ledger), _DECODER.decode, _lenient, ledger)
    for batch in stream:
        yield from batch


def _lenient(text: bytes) -> _Event | None:
    try:
        return msgspec.json.decode(text, type=_Event, strict=False)
    except msgspec.MsgspecError:
        return None


def _add(rows: XprofRows, event: _Event, labels: _Labels, ledger: Ledger) -> None:
    process = labels.processes.get(event.pid, "")
    line = labels.threads.get((event.pid, event.tid), f"row {event.tid}")
    if not (0 <= event.ts < _LATEST_US and 0 <= event.dur < _LATEST_US):  # false for NaN
        ledger.add("events whose times cannot be")
        return
    first_ps, last_ps = round(event.ts * 1e6), round((event.ts + event.dur) * 1e6)
    span = first_ps // 1000, last_ps // 1000
    stats = event.args or {}
    if str(stats.get("long_name", "")).startswith("%"):
        stats["hlo"] = stats["long_name"]
    match = DEVICE.fullmatch(process)
    if match is None:
        thread = rows.stream(f"{process} {event.pid}", f"{line} {event.tid}")
        rows.on_host(thread, span, event.name, stats, work=labels.no_devices)
        return
    place = role(line, event.pid in labels.with_streams)
    if place is Role.DERIVED:
        rows.skip(f"events of line {line}")
        return
    rows.devices.setdefault(int(match[2]), {"type": match[1]})
    what = rows.resolve(place, event.name, stats)
    rows.on_device(int(match[2]), rows.stream(process, line), span, what, stats.get("correlation_id"))


READER = Reader("xprof_json", sniff, read, priority=10)
