"""XSpace: the messages of an XProf ``.xplane.pb`` file, parsed lazily, plane by plane and event by event.

Field numbers: ``tsl/profiler/protobuf/xplane.proto`` of OpenXLA. A file that was cut off is read up to the cut.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ridgeline.trace import wire
from ridgeline.trace.salvage import Ledger
from ridgeline.trace.wire import Field, WireError

_EVENT_NUMBERS = (0x08, 0x10, 0x18)  # fields 1 to 3 of an event: kind, start, duration
_EVENT_STAT = 0x22  # field 4
_CACHED_STATS = 200_000  # most stats repeat; correlation ids do not


@dataclass(frozen=True)
class Meta:
    """What all events of one kind share. ``name`` is the HLO text on a TPU, ``display`` then the short name."""

    name: str
    display: str
    stats: Mapping[str, Any]


@dataclass(slots=True)
class Event:
    """One event; times in picoseconds, ``start_ps`` since the line's own start. ``stats`` without the shared ones."""

    meta: Meta
    start_ps: int
    dur_ps: int
    stats: Mapping[str, Any]


@dataclass
class Line:
    """A row of the timeline. ``start_ns`` is since the epoch or since the start of the profile."""

    name: str
    start_ns: int
    spans: list[tuple[int, int]]


@dataclass
class Plane:
    """A device, a host or metadata."""

    data: bytes
    name: str = ""
    lines: list[Line] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)
    metas: dict[int, Meta] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    cut: bool = False
    _cache: dict[bytes, tuple[str, Any]] = field(default_factory=dict)

    def events(self, line: Line, ledger: Ledger) -> Iterator[Event]:
        """The events of a line, in the order of the file; what cannot be read is counted."""
        for start, end in line.spans:
            try:
                event = self._event(start, end)
            except (WireError, IndexError):
                ledger.add("events with damaged bytes")
                continue
            if event is None:
                ledger.add("counters without a time")
            else:
                yield event

    def _event(self, at: int, end: int) -> Event | None:
        """One event. The tags of its four fields are one byte each: the quick way; the rest goes through `wire`."""
        data, found = self.data, [0, 0, 0, 0]
        stats: dict[str, Any] = {}
        while at < end:
            tag = data[at]
            if tag in _EVENT_NUMBERS:
                found[tag >> 3], at = wire.varint(data, at + 1, end)
            elif tag == _EVENT_STAT:
                size, at = wire.varint(data, at + 1, end)
                name, value = self._stat(data[at : at + size])
                stats[name] = value
                at += size
            else:
                item = wire.field(data, at, end)
                if item.number == 5:
                    return None  # an aggregate: occurrences instead of a start
                at = item.end
        if at > end:
            raise WireError("an event without an end", at)
        kind = wire.signed(found[1])
        meta = self.metas.get(kind) or self.metas.setdefault(kind, Meta(f"event {kind}", "", {}))
        return Event(meta, wire.signed(found[2]), wire.signed(found[3]), stats)

    def _stat(self, raw: bytes) -> tuple[str, Any]:
        known = self._cache.get(raw)
        if known is None:
            known = self.parse_stat(raw)
            if len(self._cache) < _CACHED_STATS:
                self._cache[raw] = known
        return known

    def parse_stat(self, raw: bytes) -> tuple[str, Any]:
        """One statistic of an event: its name and its value."""
        key = 0
        value: Any = None
        for item in wire.fields(raw, 0, len(raw)):
            if item.end > len(raw):
                raise WireError("a value without an end", item.start)
            if item.number == 1:
                key = wire.signed(item.value)
            elif item.number == 2 and item.wire == wire.FIXED64:
                value = wire.double(raw, item)
            elif item.number == 3:
                value = item.value
            elif item.number == 4:
                value = wire.signed(item.value)
            elif item.number == 5 and item.wire == wire.LENGTH:
                value = wire.text(raw, item)
            elif item.number == 7:
                value = self.stat_names.get(item.value, "")
        return self.stat_names.get(key, f"stat {key}"), value


def planes(buf: wire.Buffer, ledger: Ledger) -> Iterator[Plane]:
    """The planes of a file. Raises `WireError` where not even the first can be told from noise."""
    size, seen = len(buf), False
    try:
        for item in wire.fields(buf, 0, size):
            if item.number != 1 or item.wire != wire.LENGTH:
                continue
            plane = _plane(bytes(buf[item.start : min(item.end, size)]), item.end > size, ledger)
            seen = True
            yield plane
    except WireError:
        if not seen:
            raise
        ledger.add("the rest of the file is damaged: planes behind the damage are missing")


def _plane(data: bytes, cut: bool, ledger: Ledger) -> Plane:
    """Names come behind the lines in the file: a plane that was cut off has its events without them."""
    plane = Plane(data, cut=cut)
    found: dict[int, list[Field]] = {2: [], 3: [], 4: [], 5: [], 6: []}
    try:
        for item in wire.fields(data, 0, len(data)):
            if item.number in found and item.wire == wire.LENGTH and (item.number == 3 or item.end <= len(data)):
                found[item.number].append(item)
    except WireError:
        plane.cut = True
    plane.name = wire.text(data, found[2][-1]) if found[2] else ""
    if plane.cut:
        ledger.add(f"the end of plane {plane.name[:100] or '(without a name)'}: the file was cut off")
    plane.lines = [_line(data, item, ledger) for item in found[3]]
    for item in found[5]:
        _add_stat_name(plane, item, ledger)
    for item in found[4]:
        _add_meta(plane, item, ledger)
    for item in found[6]:
        _add_stat(plane, item, plane.stats)
    return plane


def _line(data: bytes, whole: Field, ledger: Ledger) -> Line:
    """Name, start and where the events lie; a line that runs behind the end of its plane is cut off there."""
    line = Line("", 0, [])
    name = ""
    end = min(whole.end, len(data))
    try:
        for item in wire.fields(data, whole.start, end):
            if item.end > end:
                ledger.add("events cut off in the middle")
                break
            if item.number == 2 and item.wire == wire.LENGTH:
                name = wire.text(data, item)
            elif item.number == 11 and item.wire == wire.LENGTH:
                line.name = wire.text(data, item)
            elif item.number == 3:
                line.start_ns = wire.signed(item.value)
            elif item.number == 4 and item.wire == wire.LENGTH:
                line.spans.append((item.start, item.end))
    except WireError:
        ledger.add("lines with damaged bytes: their rest is missing")
    line.name = name or line.name
    return line


def _entry(data: bytes, item: Field) -> Field | None:
    """The value of one entry of a map."""
    for part in wire.fields(data, item.start, item.end):
        if part.number == 2 and part.wire == wire.LENGTH and part.end <= item.end:
            return part
    return None


def _add_stat_name(plane: Plane, item: Field, ledger: Ledger) -> None:
    key, name = 0, ""
    try:
        value = _entry(plane.data, item)
        for part in wire.fields(plane.data, value.start, value.end) if value else ():
            if part.number == 1:
                key = wire.signed(part.value)
            elif part.number == 2 and part.wire == wire.LENGTH:
                name = wire.text(plane.data, part)
    except WireError:
        ledger.add("kinds of detail whose name is damaged")
    plane.stat_names[key] = name


def _add_meta(plane: Plane, item: Field, ledger: Ledger) -> None:
    key, name, display = 0, "", ""
    stats: dict[str, Any] = {}
    try:
        value = _entry(plane.data, item)
        for part in wire.fields(plane.data, value.start, value.end) if value else ():
            if part.number == 1:
                key = wire.signed(part.value)
            elif part.number == 2 and part.wire == wire.LENGTH:
                name = wire.text(plane.data, part)
            elif part.number == 4 and part.wire == wire.LENGTH:
                display = wire.text(plane.data, part)
            elif part.number == 5 and part.wire == wire.LENGTH:
                _add_stat(plane, part, stats)
    except WireError:
        ledger.add("kinds of events whose name is damaged")
    plane.metas[key] = Meta(name, display, stats)


def _add_stat(plane: Plane, item: Field, into: dict[str, Any]) -> None:
    try:
        name, value = plane.parse_stat(plane.data[item.start : item.end])
    except (WireError, IndexError):
        return  # a fact about the device or the kind of event, not time
    into[name] = value
