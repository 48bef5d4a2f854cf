"""Files of evaluation logs: gzip, JSON lines, JSON documents and zip archives, read as far as they go.

What is damaged half-way gives what came before the damage and a `Loss`; nothing is skipped without one.
"""

import hashlib
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError, MissingExtraError
from ridgeline.core.lost import Loss

HEAD_BYTES = 1 << 16
FIRST_BYTES = 64 << 20  # a first record beyond this is no record of an evaluation log
STEP_BYTES = 1 << 10  # what is fed to a damaged gzip at a time: no more than this is lost before the damage
DIGEST_BYTES = 8
_GZIP, _LOCAL, _ZSTD_METHOD, _STREAMED = b"\x1f\x8b", b"PK\x03\x04", 93, 0x08
_HEADER = struct.Struct("<4s5H3I2H")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Content:
    """Bytes of a file after gunzip, and what was lost on the way."""

    data: bytes
    file: InputFile
    lost: tuple[Loss, ...] = ()


@dataclass(frozen=True)
class Records:
    """The objects of a JSON lines file, each with its line, and what was lost."""

    rows: list[dict[str, Any]]
    lines: list[int]
    file: InputFile
    lost: tuple[Loss, ...] = ()


def content(path: Path) -> Content:
    """All bytes of a file, unzipped where it is gzip. Raises `InputError` for one that is empty or unreadable."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError.expected("a readable file", error.strerror or str(error), where=str(path)) from error
    file = InputFile.of(path, raw)
    data, whole = _gunzip(raw) if raw.startswith(_GZIP) else (raw, True)
    if not data or data.isspace():
        raise InputError.expected("at least one record", "an empty file", where=str(path))
    return Content(data, file, () if whole else (Loss("gzip file that is cut off: its end is missing", 1, path.name),))


def _gunzip(raw: bytes) -> tuple[bytes, bool]:
    pieces, rest = [], raw
    while rest:
        engine = zlib.decompressobj(wbits=31)
        try:
            pieces.append(engine.decompress(rest))
        except zlib.error:
            return b"".join([*pieces, _before_damage(rest)]), False
        if not engine.eof:
            return b"".join(pieces), False
        rest = engine.unused_data.lstrip(b"\0")
    return b"".join(pieces), True


def _before_damage(raw: bytes) -> bytes:
    """What a damaged gzip member gives before its damage."""
    engine, found = zlib.decompressobj(wbits=31), BytesIO()
    with suppress(zlib.error):
        for at in range(0, len(raw), STEP_BYTES):
            found.write(engine.decompress(raw[at : at + STEP_BYTES]))
    return found.getvalue()


def parsed(text: bytes) -> Any:
    """A JSON value; NaN and Infinity, which some writers leave in, become floats. Raises ``ValueError``."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return json.loads(text)


def records(path: Path, needs: frozenset[str] = frozenset()) -> Records:
    """Every line that is a JSON object with these members. Raises `InputError` where there is none."""
    held = content(path)
    rows, lines, bad = [], [], []
    for number, line in enumerate(held.data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = parsed(line)
        except ValueError:
            row = None
        if isinstance(row, dict) and needs <= row.keys():
            rows.append(row)
            lines.append(number)
        else:
            bad.append(number)
    if not rows:
        what = f" with {', '.join(sorted(needs))}" if needs else ""
        raise InputError.expected(f"JSON lines{what}", "none", where=str(path))
    lost = (Loss("lines that are no record of this log", len(bad), f"{path.name}, first line {bad[0]}"),) if bad else ()
    return Records(rows, lines, held.file, (*held.lost, *lost))


def document(path: Path) -> tuple[Any, InputFile, tuple[Loss, ...]]:
    """One JSON document; of one that is cut off, the parts that are whole. Raises `InputError` where nothing is."""
    held = content(path)
    try:
        return parsed(held.data), held.file, held.lost
    except ValueError as error:
        value, _, _ = salvage(held.data.decode("utf-8", "replace"))
        if not value:
            raise InputError.expected("a JSON document", "no part that can be read", where=str(path)) from error
    return value, held.file, (*held.lost, Loss("document that is cut off: its end is missing", 1, path.name))


def salvage(text: str, at: int = 0) -> tuple[Any, int, bool]:
    """A JSON value of damaged text: (what is whole, where it ends, whether all is).

    An object keeps the members before the damage, and of a damaged list its whole items.
    """
    at = _blank(text, at)
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        if text[at : at + 1] == "[":
            return _items(text, at + 1)
        return _members(text, at + 1) if text[at : at + 1] == "{" else (None, at, False)
    return value, end, True


def _items(text: str, at: int) -> tuple[list[Any], int, bool]:
    found: list[Any] = []
    while (at := _blank(text, at)) < len(text):
        value, at, whole = salvage(text, at)
        if not whole:
            break
        found.append(value)
        at = _blank(text, at)
        if text[at : at + 1] != ",":
            break
        at += 1
    return found, at, False


def _members(text: str, at: int) -> tuple[dict[str, Any], int, bool]:
    found: dict[str, Any] = {}
    while (at := _blank(text, at)) < len(text):
        name, at, whole = salvage(text, at)
        at = _blank(text, at)
        if not whole or not isinstance(name, str) or text[at : at + 1] != ":":
            break
        value, at, whole = salvage(text, at + 1)
        if whole or isinstance(value, list):
            found[name] = value
        at = _blank(text, at)
        if not whole or text[at : at + 1] != ",":
            break
        at += 1
    return found, at, False


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def head(path: Path) -> bytes:
    """The first 64 KiB after gunzip; nothing for a folder or what cannot be read."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        raw = file.read(HEAD_BYTES)
    return _before_damage(raw)[:HEAD_BYTES] if raw.startswith(_GZIP) else raw


def first(path: Path) -> dict[str, Any]:
    """The first line's object, by which formats of JSON lines are told apart; empty where there is none."""
    if not path.is_file():
        return {}
    stat = path.stat()
    return _first(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4)
def _first(path: Path, _changed_ns: int, _size_bytes: int) -> dict[str, Any]:
    with path.open("rb") as file:
        raw = file.read(2)
        if raw[:1] not in (b"{", b"\x1f", b" ", b"\n", b"\xef"):
            return {}
        file.seek(0)
        if raw == _GZIP:
            engine = zlib.decompressobj(wbits=31)
            try:
                line = _line(iter(lambda: engine.decompress(file.read(HEAD_BYTES)), b""))
            except zlib.error:
                return {}
        else:
            line = file.readline(FIRST_BYTES).strip() or file.readline(FIRST_BYTES)
    try:
        row = parsed(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _line(blocks: Iterator[bytes]) -> bytes:
    held = b""
    for block in blocks:
        held += block
        if b"\n" in block or len(held) > FIRST_BYTES:
            break
    return held.lstrip().partition(b"\n")[0]


def digest(*parts: object) -> str:
    """A short hash of values, by their JSON with sorted keys: what prompts, outputs and documents are compared by."""
    text = parts[0] if len(parts) == 1 and isinstance(parts[0], str) else json.dumps(parts, sort_keys=True, default=str)
    return hashlib.blake2b(str(text).encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()


def members(data: bytes, where: str) -> tuple[dict[str, bytes], tuple[Loss, ...]]:
    """Files of a zip archive, in deflate or zstd; of a damaged one those before the damage.

    Raises `InputError` where nothing can be read, `MissingExtraError` for zstd without the package zstandard.
    """
    found: dict[str, bytes] = {}
    try:
        archive = zipfile.ZipFile(BytesIO(data))
        entries = [(i.filename, i.header_offset, i.compress_type, i.compress_size, i.CRC) for i in archive.infolist()]
    except (zipfile.BadZipFile, ValueError, struct.error):
        return _walk(data, where)
    bad = []
    for name, at, method, size, crc in entries:
        value = _member(data, at, method, size)
        if value is None or zlib.crc32(value) != crc:
            bad.append(name)
        else:
            found[name] = value
    lost = (Loss("files of the archive that are damaged", len(bad), f"{where}, first {bad[0]}"),) if bad else ()
    if not found:
        raise InputError.expected("an archive with readable files", "none", where=where)
    return found, lost


def _member(data: bytes, at: int, method: int, size: int) -> bytes | None:
    try:
        header = _HEADER.unpack_from(data, at)
    except struct.error:
        return None
    start = at + _HEADER.size + header[-2] + header[-1]
    value, end = _inflated(data[start : start + size], method)
    return value if end else None


def _inflated(raw: bytes, method: int) -> tuple[bytes | None, int]:
    """The bytes of a member, and how many it took; none for damage or another method."""
    if method == zipfile.ZIP_STORED:
        return raw, len(raw)
    engine: Any
    if method == _ZSTD_METHOD:
        engine, fault = _zstd()
    elif method == zipfile.ZIP_DEFLATED:
        engine, fault = zlib.decompressobj(wbits=-15), zlib.error
    else:
        return None, 0
    try:
        value = engine.decompress(raw)
    except fault:
        return None, 0
    return (value, len(raw) - len(engine.unused_data)) if engine.eof else (None, 0)


def _zstd() -> tuple[Any, type[Exception]]:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("zstandard", "readers") from error
    return zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError


def _walk(data: bytes, where: str) -> tuple[dict[str, bytes], tuple[Loss, ...]]:
    """Members by their own headers: for an archive whose directory, at its end, is missing."""
    found: dict[str, bytes] = {}
    at = 0
    while data[at : at + 4] == _LOCAL and at + _HEADER.size <= len(data):
        header = _HEADER.unpack_from(data, at)
        flags, method, size, names, extra = header[2], header[3], header[7], header[9], header[10]
        start = at + _HEADER.size + names
        name = data[at + _HEADER.size : start].decode("utf-8", "replace")
        raw = data[start + extra :] if flags & _STREAMED else data[start + extra : start + extra + size]
        value, took = _inflated(raw, method)
        if value is None or (not flags & _STREAMED and len(raw) < size):
            break
        found[name] = value
        at = start + extra + took
        if flags & _STREAMED:  # sizes follow the data
            at = data.find(_LOCAL, at) if data.find(_LOCAL, at) >= 0 else len(data)
    if not found:
        raise InputError.expected("a zip archive", "one without a readable file", where=where)
    return found, (Loss("archive that is cut off: its directory is missing", 1, f"{where}, after {len(found)} files"),)
