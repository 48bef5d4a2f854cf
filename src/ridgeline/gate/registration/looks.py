"""Every look at data under a registration, in a file beside it that is only appended to: each line holds the hash of
the one before."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from ridgeline.core.errors import InputError
from ridgeline.core.format import count
from ridgeline.gate.registration.record import hash_of

SUFFIX = ".looks.jsonl"


@dataclass(frozen=True)
class Look:
    """One decision under a record. ``data`` is the hash of what was read; ``previous`` that of the line before."""

    record: str
    time: str
    data: str
    n: int
    outcome: str
    command: str
    previous: str = ""


def place_of(record: Path) -> Path:
    """Where the looks at a record stand: beside it, under its whole name."""
    return record.with_name(record.name + SUFFIX)


def data_hash(hashes: Sequence[str]) -> str:
    """One hash of the files that were read, whatever their order."""
    return hash_of(sorted(set(hashes)))


def read_looks(file: Path, record: str) -> tuple[Look, ...]:
    """The looks so far. Raises `InputError` for a line that was changed, removed or is of another record."""
    if not file.exists():
        return ()
    found: list[Look] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{file}, line {number}"
        try:
            look = Look(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise InputError.expected("a logged look", str(error), where=where) from None
        before = hash_of(asdict(found[-1])) if found else ""
        if look.previous != before:
            got = "a line that was changed or removed"
            raise InputError.expected("the looks as they were logged", got, where=where, hint="it is only appended to")
        if look.record != record:
            raise InputError.expected("looks at this registration", "those at another", where=where)
        found.append(look)
    return tuple(found)


def next_look(before: Sequence[Look], look: Look) -> str:
    """The line to append for ``look``; empty where the same data were looked at before: that is no new look."""
    if any(known.data == look.data for known in before):
        return ""
    chained = asdict(look) | {"previous": hash_of(asdict(before[-1])) if before else ""}
    return json.dumps(chained, ensure_ascii=False) + "\n"


def utc(time: datetime) -> str:
    """A time as the log writes it."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def others(before: Sequence[Look], data: str) -> str:
    """Earlier looks at other data, in words; empty where there are none."""
    earlier = [look for look in before if look.data != data]
    if not earlier:
        return ""
    last = earlier[-1]
    return f"{count(len(earlier), 'earlier look')} at other data, the last at n = {last.n:,} ({last.outcome})"
