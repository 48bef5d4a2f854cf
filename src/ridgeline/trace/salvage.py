"""Damaged and hostile files: bounded decompression, repair of broken JSON, and an account of what was lost.

Nothing here raises for damage that leaves something to read; each piece that is not read is counted in a `Ledger`.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss

BLOCK_BYTES = 8 << 20
LIMIT_BYTES = 64 << 30  # of decompressed text: above it a file is refused, not read
RATIO_LIMIT = 500  # real traces compress 10 to 100 times, the format's own limit is 1,032
RATIO_FROM_BYTES = 256 << 20  # a small file may be as repetitive as it likes

_GZIP, _ZIP = b"\x1f\x8b", (b"PK\x03\x04", b"PK\x05\x06")
_LOOKS_LIKE = (  # first bytes, what it is, what to do
    (b"SQLite format 3", "a SQLite database", "only exports of Nsight Systems are read: nsys export --type sqlite"),
    (b"NVIDIA Nsight", "an Nsight report", "nsys export --type sqlite REPORT.nsys-rep"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "decompress it first: zstd -d FILE"),
    (b"BZh", "a bzip2 file", "decompress it first: bunzip2 FILE"),
    (b"\xfd7zXZ", "an xz file", "decompress it first: unxz FILE"),
    (b"PAR1", "a Parquet table", "give the profiler's own file"),
    (b"%PDF", "a PDF document", "give the profiler's own file"),
    (b"\x89PNG", "an image", "give the profiler's own file, not a screenshot of it"),
    (b"\x7fELF", "a program", "give the profiler's own file"),
    (b"\x80\x02", "a Python pickle", "pickles are never opened: export the trace as JSON"),
    (b"\x80\x04", "a Python pickle", "pickles are never opened: export the trace as JSON"),
    (b"<", "an HTML or XML page", "give the profiler's own file: perhaps a login page was saved in its place"),
    (b"version https://git-lfs", "a Git LFS pointer", "fetch the file itself: git lfs pull"),
)


class Ledger:
    """What was in a file and could not be used: sentences with counts, kept in the order of first sight."""

    def __init__(self, where: str = "") -> None:
        self.where = where
        self._counts: dict[str, int] = {}

    def add(self, what: str, count: int = 1) -> None:
        """Count ``count`` more of ``what``; zero is not noted."""
        if count:
            self._counts[what] = self._counts.get(what, 0) + int(count)

    def losses(self) -> tuple[Loss, ...]:
        """Everything noted, for `Info.lost`."""
        return tuple(Loss(what, count, self.where) for what, count in self._counts.items())


def blocks(path: str | Path, ledger: Ledger, *, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The bytes of a file after gunzip or unzip, in blocks of about ``size``.

    A truncated or damaged archive gives what can be read and a note in the ledger. Raises `InputError` for a file that
    cannot be opened, for one that decompresses to more than `LIMIT_BYTES` or too well to be a trace, and for a zip
    archive with no member or several.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic[:2] == _GZIP:
                yield from _gunzip(file, path, ledger, size)
            elif magic in _ZIP:
                yield from _unzip(file, path, ledger, size)
            else:
                while block := file.read(size):
                    yield block
    except OSError as error:
        raise InputError.expected("a readable file", error.strerror or str(error), where=str(path)) from error


def head(path: str | Path, size: int = 1 << 16) -> bytes:
    """The first ``size`` bytes after gunzip or unzip: what a reader's ``sniff`` sees."""
    found = b""
    for block in blocks(path, Ledger(), size=size):
        found += block
        if len(found) >= size:
            break
    return found[:size]


def whole(path: str | Path, ledger: Ledger, *, limit: int = 4 << 30) -> bytes:
    """The whole file after gunzip or unzip, for formats that are not streamed; refused above ``limit`` bytes."""
    parts, total = [], 0
    for block in blocks(path, ledger):
        total += len(block)
        if total > limit:
            raise InputError.expected(f"a file of at most {limit >> 30} GiB", "a larger one", where=str(path))
        parts.append(block)
    return b"".join(parts)


def looks_like(start: bytes) -> tuple[str, str]:
    """What a file that no reader claims seems to be, and what to do about it."""
    text = start.lstrip()
    for magic, what, hint in _LOOKS_LIKE:
        if text.startswith(magic):
            return what, hint
    if not text:
        return "an empty file", "was the job stopped before the profiler wrote?"
    if text[:1] in b"{[":
        keys = [key.decode("utf-8", "replace") for key in re.findall(rb'"([^"\\]{1,40})"\s*:', text[:2000])[:4]]
        what = f"JSON with the keys {', '.join(keys)}" if keys else "JSON without keys"
        return what, "a Chrome trace has a list traceEvents"
    if b"\0" in text[:1000]:
        return "a binary file of unknown kind", "see `ridgeline trace --help` for the formats that are read"
    return f"text that starts {text[:30].decode('utf-8', 'replace')!r}", "give the profiler's own file"


class _Meter:
    """Bounds on what an archive may become."""

    def __init__(self, path: Path, packed: int) -> None:
        self.path, self.packed, self.out = path, max(packed, 1), 0

    def count(self, n: int) -> None:
        self.out += n
        if self.out > LIMIT_BYTES:
            raise InputError.expected(
                f"at most {LIMIT_BYTES >> 30} GiB of text", "an archive that holds more", where=str(self.path)
            )
        if self.out > RATIO_FROM_BYTES and self.out > RATIO_LIMIT * self.packed:
            ratio, hint = f"one that grows more than {RATIO_LIMIT} times", "a decompression bomb?"
            raise InputError.expected("an archive of a trace", ratio, where=str(self.path), hint=hint)


def _gunzip(file: IO[bytes], path: Path, ledger: Ledger, size: int) -> Iterator[bytes]:
    meter = _Meter(path, path.stat().st_size)
    engine = zlib.decompressobj(wbits=31)
    pending = b""
    while True:
        if engine.eof:  # members follow each other in one file
            pending = engine.unused_data or file.read(1 << 20)
            if not pending.startswith(_GZIP):
                ledger.add("bytes after the end of the gzip data", len(pending))
                return
            engine = zlib.decompressobj(wbits=31)
        pending = pending or engine.unconsumed_tail or file.read(1 << 20)
        if not pending and not engine.eof:
            ledger.add("gzip file cut off: what was written after the last block is missing")
            if rest := engine.flush():
                yield rest
            return
        before = engine.copy()
        try:
            block = engine.decompress(pending, size)
        except zlib.error:
            ledger.add("gzip data damaged: what follows the damage is missing")
            yield _up_to_damage(before, pending)
            return
        pending = engine.unconsumed_tail
        meter.count(len(block))
        if block:
            yield block
        if engine.eof and not engine.unused_data and not (pending := file.read(1 << 20)):
            return


def _up_to_damage(engine: "zlib._Decompress", pending: bytes) -> bytes:
    """What the input gives before the byte at which it stops to make sense."""
    found = []
    for byte in range(0, len(pending), 16):
        try:
            found.append(engine.decompress(pending[byte : byte + 16]))
        except zlib.error:
            break
    return b"".join(found)


def _unzip(file: IO[bytes], path: Path, ledger: Ledger, size: int) -> Iterator[bytes]:
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError) as error:
        hint = "zip keeps its table at the end: copy the file again"
        raise InputError.expected("a whole zip archive", str(error), where=str(path), hint=hint) from error
    members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX")]
    if any(m.filename.endswith("data.pkl") for m in members):
        hint = "give the profiler's own file"
        raise InputError.expected("a trace", "a PyTorch checkpoint", where=str(path), hint=hint)
    if len(members) != 1:
        hint = "unpack it and give the folder"
        raise InputError.expected("a zip archive with one file", f"{len(members)}", where=str(path), hint=hint)
    if members[0].flag_bits & 1:
        raise InputError.expected("an archive without a password", "an encrypted one", where=str(path))
    meter = _Meter(path, members[0].compress_size)
    try:
        with archive.open(members[0]) as inner:
            while block := inner.read(size):
                meter.count(len(block))
                yield block
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError):
        ledger.add("zip data damaged: what follows the damage is missing")


# One token per match: a whole string, else a fault between strings. Strings are looked at by their own rules.
_STRING = rb'"(?:[^"\\]|\\.)*"'
_FAULT = re.compile(
    _STRING
    + rb"|(?P<number>-?\b(?:NaN|nan|Infinity|inf)\b)"
    + rb"|(?P<missing>:(?=\s*[,}\]]))"
    + rb"|(?P<dots>(?:,\s*)?\.{3,}\s*)"
    + rb"|(?P<comma>,(?=\s*[}\],]))"
    + rb'|(?P<joint>(?<=[}\]])\s*(?=[{"\[]))',
    re.DOTALL,
)
_BETWEEN_MEMBERS = re.compile(
    rb"(" + _STRING + rb"\s*:\s*(?:" + _STRING + rb"|[-+.\w]+))\s*(?=" + _STRING + rb"\s*:)", re.DOTALL
)
_BAD_ESCAPE = re.compile(rb'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)', re.DOTALL)
_LONE = re.compile(rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_CONTROL = bytes(32 if i < 32 else i for i in range(256))


def repair(text: bytes) -> bytes:
    """JSON text with the common faults of trace writers put right; valid text stays as it is.

    Bytes that are not UTF-8, control characters inside strings, backslashes that escape nothing, numbers that are not
    numbers (-> null), a key without a value (-> null), lists cut with dots, missing and superfluous commas.
    """
    text = encoding(text).translate(_CONTROL)
    text = _BAD_ESCAPE.sub(lambda m: m.group(0) if m.group(1) else rb"\\", text)
    text = _FAULT.sub(_mend, text)
    return _BETWEEN_MEMBERS.sub(rb"\1,", text)


def encoding(text: bytes) -> bytes:
    """The text as valid UTF-8: other bytes and half surrogate pairs become the replacement character."""
    clean = text.decode("utf-8", "replace").encode()
    return _LONE.sub(lambda m: m.group(0) if m.group(1) else rb"\ufffd", clean)


def _mend(match: re.Match[bytes]) -> bytes:
    fault = match.lastgroup
    if fault is None:
        return match.group(0)
    return {"number": b"null", "missing": b": null", "dots": b"", "comma": b"", "joint": b","}[fault]
