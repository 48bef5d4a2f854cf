"""The SQLite side of an Nsight Systems export: opened so that nothing is written or run, read as far as it goes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.trace.events import Ints

HINT = "export again: nsys export --type sqlite --force-overwrite true -o profile.sqlite profile.nsys-rep"

_LAST_NS = 1 << 61  # a later time is damage; sums of two stay within int64
_LARGEST_CUT_BYTES = 1 << 30  # a cut file is read in memory
_EXPORT = ("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "TARGET_INFO_")


@contextmanager
def opened(path: Path) -> Iterator["Database"]:
    """Read-only and immutable: no lock is taken, no journal written, no function of the file's schema is run.

    Raises `InputError` for a file that SQLite cannot read or that is no export of Nsight Systems.
    """
    where = path.resolve().as_uri() + "?mode=ro&immutable=1"
    missing = _missing_bytes(path)
    try:
        with closing(sqlite3.connect(":memory:" if missing else where, uri=True)) as db:
            if missing:
                db.deserialize(path.read_bytes() + bytes(missing))
            db.execute("PRAGMA trusted_schema = OFF")
            db.text_factory = lambda raw: raw.decode("utf-8", "replace")
            database = Database(db, path)
            if missing:
                database.lost.append(Loss("bytes at the end: the file was cut off", missing, path.name))
            yield database
    except sqlite3.Error as error:
        raise InputError(f"Expected a readable SQLite export, got {error},", where=str(path), hint=HINT) from error


def _missing_bytes(path: Path) -> int:
    """How many bytes the header promises and the file lacks; 0 for a whole file and for one that is no database.

    SQLite reads nothing of such a file. With empty pages in their place it reads up to the first of them.
    """
    with path.open("rb") as file:
        head = file.read(100)
    size = path.stat().st_size
    if len(head) < 100 or not head.startswith(b"SQLite format 3\0") or size > _LARGEST_CUT_BYTES:
        return 0
    page = int.from_bytes(head[16:18], "big")
    promised = (65536 if page == 1 else page) * int.from_bytes(head[28:32], "big")
    return promised - size if size < promised <= 2 * _LARGEST_CUT_BYTES else 0


class Database:
    """The tables of one export. ``lost`` collects what could not be read; ``used`` what was asked for."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self.lost: list[Loss] = []
        self.used: set[str] = set()
        self._db = db
        # views are left out: a view can hide a query that never ends
        rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self.tables = sorted(str(name) for (name,) in rows)
        if not any(name.startswith(_EXPORT) for name in self.tables):
            wanted = "tables of an Nsight Systems export (CUPTI_ACTIVITY_KIND_KERNEL, NVTX_EVENTS)"
            raise InputError.expected(wanted, self.tables[:4], where=str(path), hint=HINT)
        journal = path.with_name(path.name + "-wal")
        if journal.exists() and journal.stat().st_size:
            self.lost.append(Loss("write-ahead journal not read", 1, journal.name))

    def columns(self, name: str) -> set[str]:
        """The columns a table has; empty where there is no such table."""
        if name not in self.tables:
            return set()
        return {str(row[1]) for row in self._db.execute(f"PRAGMA table_info({_quoted(name)})")}

    def count(self, name: str, where: str = "1") -> int:
        """How many rows; 0 where they cannot be counted."""
        try:
            return int(self._db.execute(f"SELECT count(*) FROM {_quoted(name)} WHERE {where}").fetchone()[0])
        except sqlite3.Error:
            return 0

    def rows(self, name: str, columns: str) -> list[tuple[Any, ...]]:
        """Columns of a small table as they are, NULL for those it lacks; no rows where there is no such table."""
        have = self.columns(name)
        self.used.add(name)
        if not have:
            return []
        picked = ", ".join(_quoted(c) if c in have else "NULL" for c in columns.split())
        return self._salvaged(f"SELECT {picked} FROM {_quoted(name)}", name)

    def spans(
        self, name: str, columns: str, text: str = "", where: str = "1"
    ) -> tuple[dict[str, Ints], list[str]] | None:
        """``start``, ``end`` and integer ``columns`` (NONE where missing) of the rows with valid times, and a text.

        None where there is no table or no such row. Rows without both times, that end before they start or lie
        beyond any clock are counted in ``lost``.
        """
        self.used.add(name)
        have = self.columns(name)
        if not have:
            return None
        if not {"start", "end"} <= have:
            self.lost.append(Loss(f"{name} has no columns start and end", max(1, self.count(name)), name))
            return None
        wanted = ["start", "end", *columns.split()]
        numbers = [f"coalesce(CAST({_quoted(c)} AS INTEGER), -1)" if c in have else "-1" for c in wanted]
        valid = (
            "typeof(start) = 'integer' AND typeof(\"end\") = 'integer' AND \"end\" >= start"
            f' AND start > -{_LAST_NS} AND "end" < {_LAST_NS}'
        )
        picked = ", ".join([*numbers, _quoted(text) if text in have else "NULL"])
        found = self._salvaged(f"SELECT {picked} FROM {_quoted(name)} WHERE ({where}) AND {valid}", name)
        bad = self.count(name, f"({where}) AND ({valid}) IS NOT 1")
        if bad:
            self.lost.append(Loss(f"rows of {name} without valid start and end", bad, name))
        if not found:
            return None
        values = np.array([row[:-1] for row in found], dtype=np.int64)
        return {c: values[:, i] for i, c in enumerate(wanted)}, [str(row[-1] or "") for row in found]

    def _salvaged(self, query: str, name: str) -> list[tuple[Any, ...]]:
        """All rows, or those before the page that cannot be read."""
        rows: list[tuple[Any, ...]] = []
        try:
            rows.extend(self._db.execute(query))
        except sqlite3.Error as error:
            what = f"rows of {name} that cannot be read ({error})"
            self.lost.append(Loss(what, max(1, self.count(name) - len(rows)), name))
        return rows


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
