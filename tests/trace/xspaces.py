"""Writes XSpace protobufs: just enough of the wire format to make any profile in a test."""

import struct
from collections.abc import Sequence
from typing import Any

Stat = dict[str, Any]


def varint(value: int) -> bytes:
    """An unsigned or two's complement 64-bit number."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    """A varint field."""
    return varint(field << 3) + varint(value)


def block(field: int, value: bytes | str) -> bytes:
    """A length-delimited field."""
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


class PlaneWriter:
    """Lines of events by name; names and stats get their ids here."""

    def __init__(self, name: str, **stats: Any) -> None:
        self.name, self.stats = name, stats
        self._metas: dict[str, tuple[int, str, Stat]] = {}
        self._stats: dict[str, int] = {}
        self._lines: list[bytes] = []

    def describe(self, name: str, display: str = "", **stats: Any) -> None:
        """What all events of a name share."""
        self._metas[name] = (len(self._metas) + 1, display, stats)

    def line(self, name: str, events: Sequence[tuple[Any, ...]], start_ns: int = 0, *, ident: int = 1) -> None:
        """Events as (name, start ps, duration ps[, stats])."""
        body = number(1, ident) + block(2, name) + number(3, start_ns)
        for label, start, duration, *stats in events:
            if label not in self._metas:
                self.describe(label)
            event = number(1, self._metas[label][0]) + number(2, start) + number(3, duration)
            event += b"".join(block(4, self._stat(k, v)) for k, v in (stats[0] if stats else {}).items())
            body += block(4, event)
        self._lines.append(block(3, body))

    def _stat(self, name: str, value: Any) -> bytes:
        key = number(1, self._stats.setdefault(name, len(self._stats) + 1))
        if isinstance(value, float):
            return key + varint(2 << 3 | 1) + struct.pack("<d", value)
        return key + (number(4, value) if isinstance(value, int) else block(5, value))

    def bytes(self) -> bytes:
        """The plane as field 1 of an XSpace, its parts in the order of their field numbers."""
        metas = b""
        for name, (key, display, stats) in self._metas.items():
            shown = block(4, display) if display else b""
            own = b"".join(block(5, self._stat(k, v)) for k, v in stats.items())
            metas += block(4, number(1, key) + block(2, number(1, key) + block(2, name) + shown + own))
        own = b"".join(block(6, self._stat(k, v)) for k, v in self.stats.items())
        names = b"".join(
            block(5, number(1, key) + block(2, number(1, key) + block(2, name))) for name, key in self._stats.items()
        )
        return block(1, block(2, self.name) + b"".join(self._lines) + metas + names + own)
