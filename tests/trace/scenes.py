"""A job whose steps of 10 ms are all compute, with one flaw where a test plants it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.trace.synthetic import Table

from ridgeline.trace.context import RunContext
from ridgeline.trace.events import Category, Kind, Run
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l0 import run_buckets
from ridgeline.trace.levels.l1 import collectives

STEP = 10_000_000  # ns
BUSY = 9_000_000  # compute of a step in a scene with a flaw; the flaw has the rest


@dataclass
class Scene:
    """A flaw of one rank: what the last 900 us of every step hold instead of compute.

    ``host``: ranges or calls (name, category) over that time; ``launch``: when the next kernel is launched, ns into the
    step, None for a kernel without a launch call; ``fill``: device work (kind) there; ``comm``: arguments of a
    collective and its start and length.
    """

    host: Sequence[tuple[str, Category]] = ()
    launch: int | None = 9_890_000
    fill: Kind | None = None
    comm: Sequence[tuple[int, int, dict[str, Any]]] = field(default_factory=tuple)
    kernel: str = "gemm"
    stream: int = 7
    gap: bool = True


def table(scene: Scene | None, rank: int = 0, ranks: int = 1, steps: int = 4) -> Table:
    """The events of one rank."""
    made = Table(rank=rank, world=ranks)
    for step in range(steps):
        at = step * STEP
        made.step(step + 1, at, STEP)
        if scene is None:
            made.work("gemm", at + 100, STEP - 100, launch=at + 10)
            continue
        made.work(scene.kernel, at + 100, BUSY - 100, launch=at + 10)
        for name, category in scene.host:
            made.host(name, at + BUSY - 10_000, 890_000, category)
        if scene.fill is not None:
            kernel = scene.fill in (Kind.COMPUTE, Kind.COMM, Kind.UNCLASSIFIED)
            category = Category.KERNEL if kernel else Category.MEMCPY
            made.work("fill", at + BUSY, 900_000, launch=at + 50, kind=scene.fill, category=category)
        for start, length, how in scene.comm:
            made.comm(at + start, length, launch=at + 60, **how)
        last = None if scene.launch is None else at + scene.launch
        begin = BUSY + 900_000 if scene.gap else BUSY
        made.work("tail", at + begin, STEP - begin, launch=last)
    return made


def job(*scenes: Scene | None, context: RunContext | None = None, steps: int = 4) -> TraceFacts:
    """Facts of a run with a scene for each rank; None is a rank without a flaw."""
    made = (table(scene, rank, len(scenes), steps).build() for rank, scene in enumerate(scenes))
    run = Run(tuple(made), (0,) * len(scenes))
    return TraceFacts(context or RunContext(), run=run, l0=run_buckets(run), l1=collectives(run))
