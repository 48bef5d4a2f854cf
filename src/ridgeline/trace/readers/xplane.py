"""XProf and JAX: ``.xplane.pb`` (XSpace protobuf), with or without devices of its own.

Where no device has a plane (JAX on CPU) the operations that carry ``device_ordinal`` and ``hlo_op`` on the host's
threads are the devices' work.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ridgeline.core.errors import InputError
from ridgeline.trace import salvage, wire
from ridgeline.trace.events import Events, Info
from ridgeline.trace.read import Reader
from ridgeline.trace.readers.xprof_ops import USED
from ridgeline.trace.readers.xprof_rows import DEVICE, Resolved, Role, XprofRows, role
from ridgeline.trace.readers.xspace import Event, Line, Meta, Plane, planes
from ridgeline.trace.salvage import Ledger
from ridgeline.trace.wire import WireError

FORMAT = "xplane"

_FIRST = 0x0A  # field 1, length-delimited: the first plane
_IN_PLANE = (0x08, 0x12, 0x1A, 0x22, 0x2A, 0x32)  # its fields 1 to 6
_NOT_UTF8 = b"\xef\xbf\xbd"
_PLANES = (b"/host:", b"/device:", b"Task Environment")
_EPOCH_NS = 10**17  # line times below it count from the start of the profile
_LIMIT_NS = 1 << 61


def sniff(head: bytes, path: Path) -> bool:
    """The start of an XSpace message: a plane whose first field is one of a plane's, or a plane's name."""
    if head[:1] != bytes([_FIRST]):
        return False
    if any(name in head for name in _PLANES):
        return True
    try:
        _, at = wire.varint(head, 1, len(head))
    except WireError:
        return False
    return ".xplane" in path.name and head[at : at + 1] != b"" and head[at] in _IN_PLANE


def read(path: Path) -> Events:
    """The events of all planes; where several devices worked, each is a rank (``info.extra["rank_per_device"]``).

    A file that was cut off is read up to the cut; what was lost is in ``info.lost``. Raises `InputError` for a file
    that is no XSpace or holds no event.
    """
    ledger = Ledger(path.name)
    data = salvage.whole(path, ledger)
    if data[:64].count(_NOT_UTF8) > 1:  # the usual damage: a copy that took the file for text
        raise InputError.expected(
            "an XSpace protobuf", "one rewritten as text: bytes above 127 became replacement marks",
            where=str(path), hint="copy the file again, in binary mode",
        )  # fmt: skip
    rows = XprofRows()
    host: list[Plane] = []
    facts: dict[str, dict[str, Any]] = {}
    try:
        for plane in planes(data, ledger):
            if match := DEVICE.fullmatch(plane.name):
                _device(rows, plane, match[1], int(match[2]), ledger)
            elif plane.name.startswith("/host:CPU"):
                host.append(plane)
            else:
                facts[plane.name] = {k: v for k, v in plane.stats.items() if isinstance(v, int | float | str)}
                _count_other(rows, plane)
    except WireError as error:
        raise InputError(f"Expected an XSpace protobuf, got {error},", where=str(path)) from error
    for plane in host:
        _host(rows, plane, ledger)
    task = facts.get("Task Environment", {})
    start = task.get("profile_start_time", 0)
    host_facts = facts.get("/host:metadata", {})
    framework = f"JAX {host_facts['jax_version']}" if "jax_version" in host_facts else ""
    base = start if isinstance(start, int) and _EPOCH_NS < start < _LIMIT_NS and not rows.epoch else 0
    return rows.finish(Info(FORMAT, str(path), base_ns=base, framework=framework), ledger.losses())


def _count_other(rows: XprofRows, plane: Plane) -> None:
    count = sum(len(line.spans) for line in plane.lines)
    if count:
        rows.skip(f"events of plane {plane.name[:100]}", count)


def _device(rows: XprofRows, plane: Plane, kind: str, device: int, ledger: Ledger) -> None:
    """The lines of one device; operations of its second core (SparseCore) stand on streams of their own."""
    scalars = {k: v for k, v in plane.stats.items() if isinstance(v, int | float | str)}
    rows.devices.setdefault(device, {"type": kind, **scalars})
    if plane.cut and not plane.metas and any(line.spans for line in plane.lines):
        ledger.add("names of events: they stood behind the cut", sum(len(line.spans) for line in plane.lines))
    streams = any(line.name.startswith("Stream #") for line in plane.lines)
    known: dict[Any, Resolved] = {}
    for line in plane.lines:
        place = role(line.name, streams)
        if place is Role.DERIVED:
            rows.skip(f"events of line {line.name}", len(line.spans))
            continue
        stream = rows.stream(plane.name, line.name)
        for event, span in _spans(rows, plane, line, ledger):
            key = id(event.meta), place, *[item for item in event.stats.items() if item[0] in USED]
            what = known.get(key)
            if what is None:
                what = known[key] = rows.resolve(place, _short(event.meta), _stats(event))
            rows.on_device(device, stream, span, what, event.stats.get("correlation_id"))


def _host(rows: XprofRows, plane: Plane, ledger: Ledger) -> None:
    """Host threads; without any device, operations that say on which device they ran are that device's work."""
    no_devices = not rows.has_work
    for line in plane.lines:
        thread = rows.stream(plane.name, line.name)
        for event, span in _spans(rows, plane, line, ledger):
            rows.on_host(thread, span, _short(event.meta), _stats(event), work=no_devices)


def _spans(rows: XprofRows, plane: Plane, line: Line, ledger: Ledger) -> Iterator[tuple[Event, tuple[int, int]]]:
    """Events of a line with start and end in ns, both rounded down so that what touches still touches."""
    rows.epoch |= line.start_ns >= _EPOCH_NS
    for event in plane.events(line, ledger):
        start = line.start_ns + event.start_ps // 1000
        end = line.start_ns + (event.start_ps + event.dur_ps) // 1000
        if event.dur_ps < 0 or not 0 <= start <= end < _LIMIT_NS:
            ledger.add("events whose times cannot be")
        else:
            yield event, (start, end)


def _stats(event: Event) -> Mapping[str, Any]:
    """An event's own stats and those of its kind; with the HLO text as "hlo"."""
    text = {"hlo": event.meta.name} if event.meta.name.startswith("%") else {}
    return {**event.meta.stats, **text, **event.stats} if event.meta.stats or text else event.stats


def _short(meta: Meta) -> str:
    """``fusion.12``: the name to show, or the result of the HLO text."""
    return meta.display or meta.name.partition(" = ")[0].removeprefix("%")


READER = Reader("xplane", sniff, read)
