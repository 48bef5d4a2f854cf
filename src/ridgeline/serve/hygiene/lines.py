"""The lines of a log, plain or compressed, one block in memory at a time."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ridgeline.core.errors import InputError
from ridgeline.serve.hygiene.ledger import Ledger

BLOCK_BYTES = 1 << 20
LINE_BYTES = 64 << 20  # above the longest context of any model; a longer line is skipped, not held
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def lines(path: Path, ledger: Ledger, limit_bytes: int = LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    """Line numbers from 1 with their bytes; empty lines are left out.

    A compressed file that is cut off or damaged gives what can be read, and the ledger says so. A line of more than
    ``limit_bytes`` is counted and skipped. Raises `InputError` for a file that cannot be opened.
    """
    rest, number, skipping = [b""], 1, False
    held = 0
    for block in _blocks(path, ledger):
        pieces = block.split(b"\n")
        for piece in pieces[:-1]:
            if skipping:
                skipping = False
            elif line := b"".join([*rest, piece]).strip():
                yield number, line
            rest, held, number = [], 0, number + 1
        if skipping:
            continue
        rest.append(pieces[-1])
        held += len(pieces[-1])
        if held > limit_bytes:
            ledger.unreadable(number, f"a line of more than {limit_bytes >> 20} MiB")
            rest, held, skipping = [], 0, True
    if not skipping and (line := b"".join(rest).strip()):
        yield number, line


def _blocks(path: Path, ledger: Ledger) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic[:2] == _GZIP:
                yield from _gunzip(file, ledger)
            elif magic == _ZSTD:
                yield from _unzstd(file, path, ledger)
            else:
                while block := file.read(BLOCK_BYTES):
                    yield block
    except OSError as error:
        raise InputError.expected("a readable file", error.strerror or str(error), where=str(path)) from error


def _gunzip(file: IO[bytes], ledger: Ledger) -> Iterator[bytes]:
    engine, pending, inside = zlib.decompressobj(wbits=31), b"", False
    while pending := pending or file.read(BLOCK_BYTES):
        inside = True
        try:
            block = engine.decompress(pending, BLOCK_BYTES)
        except zlib.error:
            ledger.note("a gzip file that is damaged: what follows the damage is missing")
            return
        if block:
            yield block
        pending = engine.unconsumed_tail
        if engine.eof:  # members may follow each other in one file
            pending, inside = engine.unused_data.lstrip(b"\0"), False
            engine = zlib.decompressobj(wbits=31)
    if inside:
        ledger.note("a gzip file that is cut off: its last lines are missing")


def _unzstd(file: IO[bytes], path: Path, ledger: Ledger) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError as error:
        hint = "pip install zstandard, or decompress it first: zstd -d FILE"
        raise InputError.expected("a plain or gzip log", "Zstandard without the package zstandard",
                                  where=str(path), hint=hint) from error  # fmt: skip
    try:
        with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as stream:
            while block := stream.read(BLOCK_BYTES):
                yield block
    except zstandard.ZstdError:
        ledger.note("a Zstandard file that is damaged or cut off: what follows the damage is missing")
