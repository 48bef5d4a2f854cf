"""Which reader a file needs, and the ranks of a job as one `Run`.

A reader is one file in ``trace/readers`` with ``READER = Reader(name, sniff, read)``. It is chosen by the first bytes
of the file's content (after gunzip or unzip), never by the extension alone.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path

import numpy as np

from ridgeline.core.errors import InputError, located
from ridgeline.core.executor import pmap
from ridgeline.core.lost import Loss
from ridgeline.core.plugins import load
from ridgeline.trace import kinds, salvage
from ridgeline.trace.align import aligned
from ridgeline.trace.events import DEVICE_WORK, NONE, Events, Run

HEAD_BYTES = 1 << 16
SPREAD_FROM_BYTES = 256 << 20  # of text: below it, starting processes and sending tables back costs more
_PACKED = (".gz", ".zip")
_PACKED_RATIO = 12  # what traces commonly compress to; only for the choice above
_SKIPPED = (".md", ".txt", ".py", ".toml", ".tsv", ".yaml", ".yml", ".html", ".png", ".svg", ".log")
_TRACES = (".json", ".pb", ".sqlite", ".zip", ".nsys-rep")  # what the files of a job's ranks are called
_NAMED = 8  # ranks that a remark lists
_RANK = re.compile(r"(?:rank|worker|gpu|host|node)[-_. ]?(\d+)|(?:^|[-_.])r(\d+)(?:[-_.]|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Reader:
    """A format of event traces.

    ``sniff(head, path)`` sees the first `HEAD_BYTES` of the decompressed content; ``read(path)`` returns the events of
    one rank. Where several readers claim a file the highest ``priority`` reads it (0 for the general form of a format,
    more for a special one). A reader whose file holds several devices, each a rank of the job, sets
    ``info.extra["rank_per_device"]``: `read_run` then takes the devices apart.
    """

    name: str
    sniff: Callable[[bytes, Path], bool]
    read: Callable[[Path], Events]
    priority: int = 0


@lru_cache(maxsize=1)
def readers() -> tuple[Reader, ...]:
    """Every reader, most special first."""
    found = load("ridgeline.trace.readers", Reader, kind="trace_reader")
    return tuple(sorted(found, key=lambda r: (-r.priority, r.name)))


def sniff(path: str | Path) -> Reader | None:
    """The reader for a file, by its content; None where no reader claims it. `InputError` if it can't be opened."""
    start = salvage.head(path, HEAD_BYTES)
    return next((reader for reader in readers() if reader.sniff(start, Path(path))), None)


def read_trace(path: str | Path, rules: Sequence[kinds.KernelRule] = ()) -> Events:
    """The events of one file, kinds of kernel decided (``rules`` of the user first).

    What could not be read is listed in ``info.lost``. Raises `InputError`, in one sentence, for what is not a trace.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError.expected("one trace file", "a folder", where=str(path), hint="read_run reads a folder")
    reader = sniff(path)
    if reader is None:
        start = salvage.head(path, HEAD_BYTES)
        what, hint = salvage.looks_like(start)
        raise InputError.expected("a trace", what, where=str(path), hint=hint)
    with located(str(path)):
        return kinds.classify(reader.read(path), rules)


@dataclass(frozen=True)
class Found:
    """``traces``: the files that a reader claims. ``others``: files in folders that only are called like a trace."""

    traces: tuple[Path, ...]
    others: tuple[Path, ...] = ()

    def losses(self) -> list[Loss]:
        """A note on each of the others: an empty file may be what a killed rank has left."""
        return [Loss(f"file not read: no trace is in {path.name}", 1, str(path)) for path in self.others]


def find(paths: str | Path | Iterable[str | Path]) -> Found:
    """The trace files, natural order, each once; folders are searched to any depth."""
    given = _listed_paths(paths)
    found: dict[Path, Path] = {}
    others: dict[Path, Path] = {}
    for path in given:
        if not path.is_dir():
            found.setdefault(path.resolve(), path)
            continue
        inside = [p for p in path.rglob("*") if p.is_file() and not p.name.startswith(".")]
        for file in sorted(inside, key=lambda p: [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", str(p))]):
            if file.suffix.lower() not in _SKIPPED and _claimed(file):
                found.setdefault(file.resolve(), file)
            elif Path(file.name.removesuffix(".gz")).suffix.lower() in _TRACES:
                others.setdefault(file.resolve(), file)
    return Found(tuple(found.values()), tuple(others.values()))


def trace_files(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """The files that a reader claims, natural order; folders are searched to any depth."""
    return list(find(paths).traces)


def _listed_paths(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    return [Path(paths)] if isinstance(paths, str | Path) else [Path(p) for p in paths]


def _claimed(path: Path) -> bool:
    try:
        return sniff(path) is not None
    except InputError:
        return False


def read_run(
    paths: str | Path | Iterable[str | Path],
    rules: Sequence[kinds.KernelRule] = (),
    *,
    workers: int | None = None,
    address: str = "",
) -> Run:
    """The ranks of one job from a folder, a file or a list of files, in rank order, with clock offsets.

    A rank comes from the file, else from its name, else from its place in the list. A file of several that cannot be
    read is left out and named in the first rank's ``info.lost``, as are missing and double ranks. ``workers`` None
    spreads large sets over processes and reads small ones here. Raises `InputError` where nothing can be read.
    """
    found = find(paths)
    files = list(found.traces)
    if not files:
        hint = "give the folder with one file per rank"
        where = ", ".join(map(str, _listed_paths(paths)))
        raise InputError.expected("at least one trace file", "none", where=where, hint=hint)
    if workers is None and sum(map(_text_bytes, files)) < SPREAD_FROM_BYTES:
        workers = 1
    results = pmap(partial(_try, tuple(rules)), files, workers=workers, address=address)
    tables = [part for result in results if isinstance(result, Events) for part in _per_device(result)]
    failures = [result for result in results if isinstance(result, InputError)]
    if not tables:
        raise failures[0]
    notes = [*map(_unread, failures), *found.losses()]
    ranks, said = _in_rank_order(tables)
    ranks[0] = _note(ranks[0], [*notes, *said])
    return aligned(ranks)


def _text_bytes(path: Path) -> int:
    size = path.stat().st_size if path.is_file() else 0
    return size * (_PACKED_RATIO if path.suffix.lower() in _PACKED else 1)


def _try(rules: tuple[kinds.KernelRule, ...], path: Path) -> Events | InputError:
    try:
        return read_trace(path, rules)
    except InputError as error:
        return error


def _unread(error: InputError) -> Loss:
    return Loss(f"file not read: {error.message.removesuffix(f', at {error.where}')}", 1, error.where)


def _note(events: Events, notes: Sequence[Loss]) -> Events:
    return replace(events, info=replace(events.info, lost=(*events.info.lost, *notes)))


def _per_device(events: Events) -> list[Events]:
    """One table per device, where the file holds a rank per device; host events go to each of them."""
    work = np.isin(events.category, DEVICE_WORK)
    devices: list[int] = np.unique(events.device[work]).tolist()
    if len(devices) < 2 or not events.info.extra.get("rank_per_device"):
        return [events]
    parts = []
    for rank, device in enumerate(devices):
        part = events.where((events.device == device) | (events.device == NONE))
        parts.append(replace(part, info=replace(events.info, rank=rank, world=events.info.world or len(devices))))
    return parts


def _in_rank_order(tables: list[Events]) -> tuple[list[Events], list[Loss]]:
    """Tables sorted by rank, each with a rank, and what is odd about the set."""
    from_file = [e.info.rank for e in tables]
    by_name = [_rank_in_name(Path(e.info.path)) for e in tables]
    said: list[Loss] = []
    ranks: list[int | None] = list(from_file)
    if len(set(ranks)) < len(ranks) and None not in by_name and len(set(by_name)) == len(by_name):
        if None not in ranks:
            said.append(Loss("files that name the same rank: ranks taken from the file names", len(ranks)))
        ranks = list(by_name)
    if None in ranks:
        free = iter(sorted(set(range(len(ranks) * 2)) - {r for r in ranks if r is not None}))
        if len(tables) > 1:
            said.append(Loss("files without a rank in them or in their name: numbered by order", ranks.count(None)))
        ranks = [next(free) if r is None and len(tables) > 1 else r for r in ranks]
    known = [r for r in ranks if r is not None]
    double = [rank for rank, count in Counter(known).items() if count > 1]
    if double:
        said.append(Loss(f"ranks that occur more than once: {_listed(double)}", len(double)))
    world = max([e.info.world or 0 for e in tables] + [max(known, default=0) + 1 if len(known) > 1 else 0])
    missing = world - len({rank for rank in known if 0 <= rank < world}) if known else 0
    if missing:
        first = islice((rank for rank in range(world) if rank not in known), _NAMED)
        said.append(Loss(f"ranks of the job without a file: {_listed(list(first), missing)}", missing))
    order = sorted(range(len(tables)), key=lambda i: (ranks[i] is None, ranks[i] or 0, i))
    return [replace(tables[i], info=replace(tables[i].info, rank=ranks[i])) for i in order], said


def _rank_in_name(path: Path) -> int | None:
    for text in (path.name, path.parent.name):
        if match := _RANK.search(text):
            return int(match.group(1) or match.group(2))
    return int(path.parent.name) if path.parent.name.isdigit() else None


def _listed(ranks: Sequence[int], count: int = 0) -> str:
    more = max(count, len(ranks)) - _NAMED
    return ", ".join(map(str, ranks[:_NAMED])) + (f" and {more} more" if more > 0 else "")
