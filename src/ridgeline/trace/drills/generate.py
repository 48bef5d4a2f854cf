"""A drill from a seed: which pathologies, the run that has them, and what each costs.

The truth is measured: the run is simulated as it is, and again without each cause in turn.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.trace.drills.job import Job, job_of
from ridgeline.trace.drills.pathologies import CATALOGUE, Dose, fit
from ridgeline.trace.drills.schedule import Extra, Schedule, healthy
from ridgeline.trace.drills.simulate import Tape, simulate, step_s

TRIES = 50


@dataclass(frozen=True)
class Planted:
    """One cause: ``seconds`` per step that the run would gain without it. ``codes``: rules that may name it."""

    name: str
    title: str
    codes: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, eq=False)
class Drill:
    """The run with everything planted, its tapes, the step in the trace (s), and the truth."""

    schedule: Schedule
    tapes: tuple[Tape, ...]
    step_s: float
    planted: tuple[Planted, ...]

    @property
    def mean_s(self) -> float:
        """The mean step of the whole run, with the stalls between traced steps."""
        return self.step_s + sum(_amortized_s(extra, self.schedule.job) for extra in self.schedule.extras)


def _amortized_s(extra: Extra, job: Job) -> float:
    return extra.each_s * len(extra.steps) / job.log_steps


def drill(seed: int, names: Sequence[str] | None = None, *, job: Job | None = None) -> Drill:
    """The drill of a seed, with one to four causes drawn, or those named (none for an empty list).

    Raises `InputError` for an unknown or impossible set of names.
    """
    job = job or job_of(seed)
    base = step_s(simulate(healthy(job)))
    if names is not None:
        _check(names)
        return _made(job, base, tuple(names))
    draw = random.Random(f"causes {seed}")
    for _ in range(TRIES):
        chosen = tuple(draw.sample(sorted(CATALOGUE), draw.choice((1, 2, 2, 3, 3, 4))))
        if not fit(chosen):
            continue
        found = _made(job, base, chosen)
        if all(cause.seconds >= CATALOGUE[cause.name].least * found.step_s for cause in found.planted):
            return found
    raise AssertionError("fifty draws without a set that costs enough")


def _check(names: Sequence[str]) -> None:
    for name in names:
        if name not in CATALOGUE:
            hint = did_you_mean(name, CATALOGUE, "causes: " + ", ".join(CATALOGUE))
            raise InputError.expected("a cause of the catalogue", name, where="--cause", hint=hint)
    if not fit(tuple(names)):
        raise InputError.expected("causes that can be planted together", ", ".join(names), where="--cause")


def _made(job: Job, base: float, names: tuple[str, ...]) -> Drill:
    schedule = _planted(job, base, names)
    tapes = simulate(schedule)
    with_all = step_s(tapes)
    planted = tuple(_cause(job, base, names, name, with_all, schedule) for name in names)
    return Drill(schedule, tuple(tapes), with_all, planted)


def _cause(job: Job, base: float, names: tuple[str, ...], name: str, with_all: float, schedule: Schedule) -> Planted:
    found = CATALOGUE[name]
    if found.group == "log":
        return Planted(name, found.title, found.codes, sum(_amortized_s(extra, job) for extra in schedule.extras))
    without = step_s(simulate(_planted(job, base, names, without=name)))
    return Planted(name, found.title, found.codes, with_all - without)


def _planted(job: Job, base: float, names: tuple[str, ...], without: str = "") -> Schedule:
    schedule = healthy(job)
    for name in sorted(names):
        item = CATALOGUE[name]
        draw = random.Random(f"{name} {job.seed}")
        dose = Dose(draw.uniform(item.low, item.high) * base, base, draw)
        schedule = (item.instead if name == without else item.plant)(schedule, dose)
    return schedule
