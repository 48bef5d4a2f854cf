"""The same job on more and more chips: step time, MFU, exposed communication, and what the next chips buy.

Strong scaling: model, sequence and batch stay, and every count of chips gets the best plan of its own search.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ridgeline.arithmetic.conventions import evaluate, find
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.layouts.explain import activity
from ridgeline.plan.layouts.search import Found, Request, explore, short
from ridgeline.plan.steps.cluster import resized

CONVENTION = "megatron-lm"  # of every MFU here: head and causal half, no recompute
WORTH = 0.5  # of what chips brought on the smallest cluster: chips that buy less are past the knee
_DOUBLINGS = 3  # to each side of the cluster that was asked for


@dataclass(frozen=True)
class Point:
    """The best plan on ``chips``. Shares of the step: ``communication`` exposed, ``idle`` in the bubble, ``compute``.

    ``gain`` is tokens/s per added chip since the point before (per chip at the first), ``worth`` that over the first
    point's. ``mfu`` 0 to 1 in `CONVENTION`.
    """

    chips: int
    plan: str
    step_s: float
    tokens_per_s: float
    mfu: float
    communication: float
    idle: float
    compute: float
    gain: float
    worth: float


@dataclass(frozen=True)
class Scan:
    """Points in order of chips, and the counts on which no plan was found, with the reason."""

    points: tuple[Point, ...]
    without: tuple[tuple[int, str], ...]

    @property
    def bound(self) -> Point | None:
        """The first point whose step is communication and bubble for a larger part than compute."""
        return next((p for p in self.points if p.communication + p.idle > p.compute), None)

    @property
    def knee(self) -> Point | None:
        """The first point whose added chips buy less than half of what the first point's do."""
        return next((p for p in self.points[1:] if p.worth < WORTH), None)


def step_flops(spec: ModelSpec, batch: tuple[int, int]) -> float:
    """Useful FLOPs of a training step in `CONVENTION`; ``batch`` is (sequences, tokens of each)."""
    sequences, seq = batch
    return float(evaluate(find(CONVENTION), spec, Batch.of(seq, sequences)).sequence.base)


def doublings(chips: int, sequences: int) -> list[int]:
    """Chip counts around one, by factors of two, no more than a chip for every sequence of the batch there."""
    found = [chips * 2**power // 2**_DOUBLINGS for power in range(2 * _DOUBLINGS + 1)]
    return sorted({size for size in found if size >= 1 and (size <= chips or size <= sequences * 8)})


def scan(request: Request, chips: Sequence[int] = ()) -> Scan:
    """The best plan on every count of chips. Raises `InputError` for a count below one, `InfeasibleError` for none."""
    counts = sorted(set(chips)) or doublings(request.cluster.chips, request.batch[0])
    if counts[0] < 1:
        raise InputError.expected("at least one chip", counts[0], where="the scan")
    flops = step_flops(request.spec, request.batch)
    points: list[Point] = []
    without: list[tuple[int, str]] = []
    held = request.space.coded()
    ranks = math.prod(held.get(name, 1) for name in ("tp", "pp", "dp", "cp"))
    for count in counts:
        if count < ranks:
            without.append((count, f"{ranks} ranks are held"))
            continue
        try:
            found, miss = explore(replace(request, cluster=resized(request.cluster, count)))
        except InfeasibleError as error:
            without.append((count, error.limit))
            continue
        if found is None:
            without.append((count, f"memory of {miss.stage}" if miss else "nothing divides"))
        else:
            points.append(_point(found, flops, points))
    if not points:
        text = f"Expected a plan on one of {', '.join(map(str, counts))} chips, got none, at the scan"
        raise InfeasibleError(text, limit=without[-1][1], nearest=f"{without[-1][0]} chips")
    return Scan(tuple(points), tuple(without))


def _point(found: Found, flops: float, before: Sequence[Point]) -> Point:
    steps = found.steps
    step_s = float(steps.step_s[0])
    shares = dict.fromkeys(("compute", "communication", "host", "idle"), 0.0)
    for name, seconds in steps.terms.items():
        shares[activity(name)] += float(seconds[0]) / step_s
    chips, rate = found.request.cluster.chips, found.request.tokens / step_s
    last_chips, last_rate = (before[-1].chips, before[-1].tokens_per_s) if before else (0, 0.0)
    gain = (rate - last_rate) / (chips - last_chips)
    return Point(
        chips=chips,
        plan=short(found.layouts.row(0)),
        step_s=step_s,
        tokens_per_s=rate,
        mfu=float(steps.mfu(flops)[0]),
        communication=shares["communication"],
        idle=shares["idle"],
        compute=shares["compute"],
        gain=gain,
        worth=gain / (before[0].gain if before else gain),
    )
