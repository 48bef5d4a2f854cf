"""The protobuf wire format, as far as a reader of profiles needs it: bounded, without copies, able to stop at a cut.

Encoding: https://protobuf.dev/programming-guides/encoding/. A message is a sequence of (field number, wire type,
value); values are varints, fixed 4 or 8 bytes, or a length and that many bytes.
"""

import mmap
import struct
from collections.abc import Iterator
from typing import NamedTuple

Buffer = bytes | mmap.mmap

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_MASK64 = (1 << 64) - 1
_MAX_VARINT_BYTES = 10  # 64 bits in groups of 7


class WireError(ValueError):
    """Bytes that no protobuf writer produces, at ``at``."""

    def __init__(self, why: str, at: int) -> None:
        self.at = at
        super().__init__(f"{why} at byte {at}")


class Field(NamedTuple):
    """One field. A varint holds its value in ``value``; every other type lies at [start, end) of the buffer.

    ``end`` may lie behind the end of the message: the rest was cut off.
    """

    number: int
    wire: int
    value: int
    start: int
    end: int


def varint(buf: Buffer, at: int, end: int) -> tuple[int, int]:
    """An unsigned 64-bit value and where the next byte is. `WireError` behind the end or beyond ten bytes."""
    if at < end and buf[at] < 0x80:
        return buf[at], at + 1
    value = shift = 0
    for i in range(at, min(at + _MAX_VARINT_BYTES, end)):
        byte = buf[i]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK64, i + 1
        shift += 7
    raise WireError("a number without an end", at)


def field(buf: Buffer, at: int, end: int) -> Field:
    """The field at ``at``; the next one is at its ``end``."""
    tag, at = varint(buf, at, end)
    number, wire = tag >> 3, tag & 7
    if number == 0:
        raise WireError("a field with number 0", at)
    if wire == VARINT:
        value, at = varint(buf, at, end)
        return Field(number, wire, value, at, at)
    if wire == LENGTH:
        size, at = varint(buf, at, end)
    elif wire in (FIXED64, FIXED32):
        size = 8 if wire == FIXED64 else 4
    else:
        raise WireError(f"wire type {wire}", at)
    return Field(number, wire, 0, at, at + size)


def fields(buf: Buffer, at: int, end: int) -> Iterator[Field]:
    """The fields of the message at [at, end). The last one may end behind ``end``; then nothing follows it."""
    while at < end:
        item = field(buf, at, end)
        yield item
        at = item.end


def signed(value: int) -> int:
    """An int64 field: negative values arrive as their two's complement."""
    return value - (1 << 64) if value >= 1 << 63 else value


def double(buf: Buffer, item: Field) -> float:
    """A double field."""
    return float(struct.unpack("<d", bytes(buf[item.start : item.end]))[0])


def text(buf: Buffer, item: Field) -> str:
    """A string field; bytes that are not UTF-8 become replacement characters."""
    return bytes(buf[item.start : item.end]).decode("utf-8", "replace")
