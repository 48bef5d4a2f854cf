"""A run analysed: everything that is read, taken apart and audited, as the facts that rules and reports look at.

A level that cannot run is absent (`TraceFacts` has None there); what a file or level lost is named in the first
rank's ``info.lost``.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.trace import dumps, salvage
from ridgeline.trace.audit import audit
from ridgeline.trace.context import RunContext
from ridgeline.trace.dumps import Dumps
from ridgeline.trace.events import Events, Run
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.hlo_join import with_modules
from ridgeline.trace.kinds import KernelRule
from ridgeline.trace.levels import l0, l3
from ridgeline.trace.levels.l1 import collectives
from ridgeline.trace.levels.l2 import Operations, operations
from ridgeline.trace.levels.l3 import StripChart, strip_charts
from ridgeline.trace.levels.l4 import rank_spread
from ridgeline.trace.logs import DeviceSamples, Log, StepLog, read_log, sniff_log, step_log_of
from ridgeline.trace.read import Found, find, read_run
from ridgeline.trace.steps import assign

# in the head of what `ridgeline.trace.perfetto`, `Case.dumps` and drills (their solution) write
MADE_BY = (b'"madeBy": "ridgeline"', b'"schema": 1,\n "tool": "', b'{"seed":')
LOG_SUFFIXES = (".log", ".txt", ".csv", ".tsv", ".jsonl", ".out", ".dmon")
T = TypeVar("T")
Tell = Callable[[str, float], None]


@dataclass(frozen=True)
class How:
    """How to read: window, the user's rules for kernels, worker processes (None: by size), a Ray address."""

    window: l0.Window = "all"
    rules: tuple[KernelRule, ...] = ()
    workers: int | None = None
    address: str = ""


def analyse(
    paths: str | Path | Iterable[str | Path],
    context: RunContext | None = None,
    how: How | None = None,
    tell: Tell | None = None,
) -> TraceFacts:
    """The facts of the traces and logs in files or folders.

    ``tell(what, seconds)`` is called after each stage. Raises `InputError` where there is neither a trace, nor a log,
    nor a dump that can be read.
    """
    given = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    how, clock = how or How(), _Clock(tell or (lambda what, seconds: None))
    context = context or RunContext()
    logs, notes = clock("logs", lambda: find_logs(given, context))
    beside = clock("compiler dumps", lambda: dumps.find(given))
    run = clock("traces", lambda: _run(given, how, beside, has_logs=bool(logs)))
    steps = [log for log in logs if isinstance(log, StepLog)]
    samples = [log for log in logs if isinstance(log, DeviceSamples)]
    facts = TraceFacts(context=context, audit=audit(context, samples), dumps=beside)
    if run is not None:
        run = with_modules(_noted(run, [*notes, *beside.lost]), beside.hlo)
        facts = _levels(facts, run, beside, how, clock)
    else:
        lost = (*notes, *_others(find(given)).losses(), *beside.lost)
        facts = replace(facts, l2=beside.operations(context.device), dumps=replace(beside, lost=lost))
    strip = clock("strip chart", lambda: _strip(steps, run, facts.l0))
    return _with_spread(replace(facts, l3=strip), samples, steps, clock)


class _Clock:
    """Runs stages and tells how long each took."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def __call__(self, what: str, stage: Callable[[], T]) -> T:
        begun = time.perf_counter()
        found = stage()
        self._tell(what, time.perf_counter() - begun)
        return found


def find_logs(paths: Sequence[Path], context: RunContext) -> tuple[list[Log], list[Loss]]:
    """The step and device logs among the files, and the one that the run file names; what could not be read."""
    files = [file for path in paths for file in dumps.candidates(path, LOG_SUFFIXES)]
    if (log := context.log) is not None:
        files.insert(0, log)
    found: list[Log] = []
    notes: list[Loss] = []
    for file in dict.fromkeys(files):
        try:
            if file.is_file() and sniff_log(file) is not None:
                found += read_log(file)
        except InputError as error:
            notes.append(Loss(f"log not read: {error.message}", 1, str(file)))
    return found, notes


def _run(paths: Sequence[Path], how: How, beside: Dumps, *, has_logs: bool) -> Run | None:
    """The ranks; None where the paths hold nothing but logs and compiler dumps."""
    found = find(paths)
    files = [file for file in found.traces if file not in beside.files and (file in paths or not _ours(file))]
    if has_logs:  # a file given by name is no trace where a log reader has it
        files = [file for file in files if file.suffix.lower() not in LOG_SUFFIXES or sniff_log(file) is None]
    if not files and (has_logs or beside.files):
        return None
    run = read_run(files or paths, how.rules, workers=how.workers, address=how.address)
    return _noted(run, _others(found).losses()) if files else run


def _others(found: Found) -> Found:
    """Without the files of an earlier report among the others."""
    return replace(found, others=tuple(file for file in found.others if not _ours(file)))


def _ours(file: Path) -> bool:
    """Whether a file is an annotated trace or the numbers that an earlier report left in the folder."""
    try:
        return any(mark in salvage.head(file, 256) for mark in MADE_BY)
    except InputError:
        return False


def _levels(facts: TraceFacts, run: Run, beside: Dumps, how: How, clock: _Clock) -> TraceFacts:
    buckets = clock("buckets", lambda: l0.run_buckets(run, window=how.window))
    calls = clock("collectives", lambda: collectives(run))
    work = clock("operations", lambda: _operations(run, buckets, facts)) if buckets else None
    if work is not None:
        work = replace(work, hlo=beside.hlo, ncu=beside.ncu)
    return replace(facts, run=run, l0=buckets, l1=calls, l2=work)


def _operations(run: Run, ranks: Sequence[l0.RankBuckets], facts: TraceFacts) -> Operations:
    """The operations of the rank that computes longest in a step: the others wait for it."""
    longest = max(ranks, key=lambda rank: rank.mean_s("compute"))
    events = run.ranks[run.labels().index(longest.label)]
    assigned, steps = assign(events)
    return operations(assigned, facts.context.device, steps=steps, rank=longest.label)


def _strip(logs: Sequence[StepLog], run: Run | None, ranks: Sequence[l0.RankBuckets]) -> StripChart | None:
    """The slowest log taken apart; without one, the step markers of the slowest rank where they are enough."""
    if not logs and run is not None and ranks:
        slowest = max(ranks, key=lambda rank: rank.mean_s("span"))
        own = step_log_of(run.ranks[run.labels().index(slowest.label)])
        logs = [own] if own is not None and len(own) >= l3.LEAST_ROWS else []
    charts = strip_charts(logs)
    return charts[0] if charts else None


def _with_spread(
    facts: TraceFacts, samples: Sequence[DeviceSamples], steps: Sequence[StepLog], clock: _Clock
) -> TraceFacts:
    spread = clock("ranks", lambda: rank_spread(logs=steps, buckets=facts.l0, collectives=facts.l1, samples=samples))
    return replace(facts, l4=spread)


def _noted(run: Run, notes: Sequence[Loss]) -> Run:
    first: Events = run.ranks[0]
    kept = replace(first.info, lost=(*notes, *first.info.lost))
    return replace(run, ranks=(replace(first, info=kept), *run.ranks[1:]))
