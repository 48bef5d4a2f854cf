"""The search: every plan that divides, those that fit memory, their step times, and which of them to look at.

Blocks of plans pass three sieves, the cheapest first: division (`layout.feasible`), memory, time (`step.predict`).
What is kept of a block: the fastest plans, the best one of every mesh, and the Pareto front of step time, headroom and
simplicity.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.errors import InfeasibleError
from ridgeline.core.format import value
from ridgeline.plan.layouts import front, space
from ridgeline.plan.layouts.front import Rows
from ridgeline.plan.layouts.space import Space
from ridgeline.plan.steps import fits, layout
from ridgeline.plan.steps.cluster import Cluster, resized
from ridgeline.plan.steps.layout import Ints, Layout
from ridgeline.plan.steps.machine import Array, Machine, Software
from ridgeline.plan.steps.step import Constants, Steps, combine
from ridgeline.plan.steps.work import work

KEEP = 200  # fastest plans of a block
_GROWTH = tuple(2**power for power in range(1, 13))  # times the chips, when nothing fits
_MOST_CHIPS = 2**17  # that are tried


@dataclass(frozen=True)
class Request:
    """What is searched for. ``batch`` is (sequences a step, tokens a sequence).

    ``reserved_bytes`` of each chip's memory belong to something else.
    """

    spec: ModelSpec
    cluster: Cluster
    batch: tuple[int, int]
    software: Software = field(default_factory=Software)
    space: Space = field(default_factory=Space)
    constants: Constants = field(default_factory=Constants)
    reserved_bytes: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.batch[0] * self.batch[1]


@dataclass(frozen=True)
class Counts:
    """How many plans were tried, divide, and fit memory."""

    tried: int = 0
    divide: int = 0
    fit: int = 0


@dataclass(frozen=True)
class Found:
    """Plans that fit, in order of `front.order`. ``held_bytes`` is what the fullest chip holds of ``limit_bytes``.

    ``front`` and ``meshes`` are positions: the Pareto front, and the best plan of every mesh.
    """

    request: Request
    layouts: Layout
    steps: Steps
    held_bytes: Array
    limit_bytes: float
    counts: Counts

    def __len__(self) -> int:
        return len(self.layouts)

    @property
    def headroom(self) -> Array:
        """The share of memory that each plan leaves free on its fullest chip."""
        return np.asarray(1 - self.held_bytes / self.limit_bytes)

    @property
    def knobs(self) -> Ints:
        """`front.knobs` of each plan."""
        return front.knobs(self.layouts)

    @property
    def front(self) -> Rows:
        """The Pareto front, fastest first."""
        return front.front(self.steps.step_s, self.headroom, self.knobs)

    @property
    def meshes(self) -> Rows:
        """The best plan of every mesh, fastest first, without the twins of simpler ones."""
        rows = front.best_of_each_mesh(self.layouts, np.arange(len(self)))
        return front.without_twins(rows, self.steps.step_s, self.headroom, self.knobs)

    def take(self, rows: Rows | NDArray[np.bool_]) -> "Found":
        """Those plans."""
        places: Rows = np.flatnonzero(rows) if rows.dtype == bool else np.asarray(rows, np.int64)
        taken = (self.layouts.take(places), self.steps.take(places), self.held_bytes[places])
        return Found(self.request, *taken, self.limit_bytes, self.counts)


@dataclass(frozen=True)
class Miss:
    """The plan nearest to fitting: its columns, the stage that binds, what that holds of what there is."""

    plan: Mapping[str, Any]
    stage: str
    held_bytes: float
    limit_bytes: float

    @property
    def over_bytes(self) -> float:
        """What is missing on one chip."""
        return self.held_bytes - self.limit_bytes


def search(request: Request) -> Found:
    """All plans of the request's space that fit, best first.

    Raises `InputError` for more ranks than chips, `InfeasibleError` where nothing divides or nothing fits: it names
    the binding stage, the nearest miss, and the nearest plan that fits.
    """
    found, miss = explore(request)
    if found is not None:
        return found
    if miss is None:
        raise _indivisible(request)
    raise _too_large(request, miss)


def explore(request: Request) -> tuple[Found | None, Miss | None]:
    """The plans that fit, if any do, and the nearest miss, if a plan that divides does not fit."""
    limit_bytes = fits.capacity_bytes(request.cluster) - request.reserved_bytes
    machine = Machine(request.cluster, request.software)
    parts: list[Found] = []
    counts, nearest = Counts(), None
    for block in space.plans(request.spec, request.cluster, request.batch, request.space):
        whole = block.take(layout.feasible(request.spec, *request.batch, block))
        held = fits.held(request.spec, request.batch, whole, request.software) if len(whole) else None
        small = held.total_bytes <= limit_bytes if held is not None else np.zeros(0, bool)
        counts = Counts(counts.tried + len(block), counts.divide + len(whole), counts.fit + int(small.sum()))
        if held is not None and not np.all(small):
            nearest = _nearer(nearest, whole, held, limit_bytes)
        if held is not None and np.any(small):
            parts.append(_timed(request, machine, whole.take(small), held.total_bytes[small], limit_bytes))
    if not parts:
        return None, nearest
    return replace(_joined(parts), counts=counts), nearest


def _timed(request: Request, machine: Machine, plans: Layout, held_bytes: Array, limit_bytes: float) -> Found:
    """The plans of one block that are worth keeping, with their times."""
    steps = combine(work(request.spec, machine, request.batch, plans), request.constants)
    return _kept(Found(request, plans, steps, held_bytes, limit_bytes, Counts()))


def _kept(found: Found) -> Found:
    rows = front.order(found.steps.step_s, found.knobs)
    meshes = front.best_of_each_mesh(found.layouts, rows)
    kept = np.zeros(len(found), bool)
    kept[np.concatenate([rows[:KEEP], meshes, found.front])] = True
    return found.take(rows[kept[rows]])


def _joined(parts: list[Found]) -> Found:
    first = parts[0]
    if len(parts) == 1:
        return first
    steps = [part.steps for part in parts]
    both = Steps(
        {name: np.concatenate([step.terms[name] for step in steps]) for name in first.steps.terms},
        {name: np.concatenate([step.wire[name] for step in steps]) for name in first.steps.wire},
        np.concatenate([step.step_s for step in steps]),
        np.concatenate([step.peak_flops_per_s for step in steps]),
    )
    held_bytes = np.concatenate([part.held_bytes for part in parts])
    layouts = Layout.join([part.layouts for part in parts])
    return _kept(replace(first, layouts=layouts, steps=both, held_bytes=held_bytes))


def _nearer(known_miss: Miss | None, plans: Layout, held: fits.Held, limit_bytes: float) -> Miss:
    """The smaller excess of what was known and of a block."""
    over = np.where(held.total_bytes > limit_bytes, held.total_bytes, np.inf)
    place = int(np.argmin(over))
    if known_miss is not None and known_miss.held_bytes <= over[place]:
        return known_miss
    return Miss(plans.row(place), held.stage(place), float(over[place]), limit_bytes)


def _indivisible(request: Request) -> InfeasibleError:
    """Nothing divides: the first rule that every mesh breaks, by its own message where one plan is fixed."""
    spec, (sequences, seq) = request.spec, request.batch
    fixed = request.space.coded()
    used = int(np.prod([fixed.get(name, 1) for name in ("tp", "pp", "cp")]))
    sizes = dict(fixed) | ({} if "dp" in fixed else {"dp": max(request.cluster.chips // used, 1)})
    try:
        layout.check(spec, sequences, seq, Layout.of(**sizes), request.cluster.chips)
    except InfeasibleError as error:
        return error
    text = f"Expected a plan that divides, got none for {sequences} sequences on {request.cluster.name}, at the search"
    chips = request.cluster.chips
    least = -(-sequences // chips) * chips
    return InfeasibleError(text, limit="heads, layers and sequences over the chips", nearest=f"{least} sequences")


def _too_large(request: Request, miss: Miss) -> InfeasibleError:
    text = (
        f"Expected at most {value(miss.limit_bytes, 'B')} on each {request.cluster.device.name}, got "
        f"{value(miss.held_bytes, 'B')} on {miss.stage} of the leanest plan, at the search"
    )
    nearest = f"{spelled(miss.plan)}: {value(miss.over_bytes, 'B')} too much"
    hint = ""
    if request.space.fixed:
        freed, _ = explore(replace(request, space=replace(request.space, fixed={})))
        if freed is not None:
            hint = f"the nearest plan that fits: {spelled(_closest(freed, miss))}"
    if not hint:
        hint = _larger(request)
    return InfeasibleError(text, limit=f"memory of {miss.stage}", nearest=nearest, hint=hint)


def _closest(found: Found, miss: Miss) -> Mapping[str, Any]:
    """The plan that differs from the miss in the fewest columns, the fastest of those."""
    target = Layout.of(**miss.plan)
    apart = sum((getattr(found.layouts, name) != getattr(target, name)).astype(int) for name in miss.plan)
    return found.layouts.row(int(np.argmin(apart)))


def _larger(request: Request) -> str:
    """The fewest chips, doubled from what there is, on which a plan fits."""
    counts = [size for size in (request.cluster.chips * times for times in _GROWTH) if size <= _MOST_CHIPS]
    for chips in counts:
        try:
            wide = resized(request.cluster, chips)
        except InfeasibleError:
            continue
        found, _ = explore(replace(request, cluster=wide, space=replace(request.space, fixed={})))
        if found is not None:
            return f"it fits {chips} chips: {spelled(found.layouts.row(0))}"
    most = max([request.cluster.chips, *counts])
    return f"no plan of this batch fits {most:,} chips either: a shorter sequence, a smaller model or batch"


def spelled(plan: Mapping[str, Any]) -> str:
    """A plan in a few words: the sizes above one, the switches that are on."""
    words = [f"{name}={plan[name]}" for name in ("tp", "cp", "pp", "dp", "ep") if plan[name] > 1]
    if plan["ep"] > 1 and plan["etp"] > 1:
        words.append(f"etp={plan['etp']}")
    if plan["pp"] > 1:
        words.append(f"{plan['schedule']}" + (f" x{plan['chunks']}" if plan["chunks"] > 1 else ""))
    words.append(f"micro-batch {plan['micro_batch']}")
    if plan["zero"]:
        part = "" if plan["shard"] == plan["dp"] * plan["cp"] else f" over {plan['shard']}"
        words.append(f"ZeRO-{plan['zero']}{part}")
    if plan["sequence_parallel"]:
        words.append("SP")
    if plan["recompute"] != "none":
        words.append(f"recompute {plan['recompute']}")
    return " ".join(words)


_MARKS = {"none": "", "selective": "rc-sel", "full": "rc-full"}


def short(plan: Mapping[str, Any]) -> str:
    """The same for a table: ``tp4 cp2 pp2x8 dp32 b1 z1 sp``, 8 model chunks a stage and a micro-batch of 1."""
    words = [f"{name}{plan[name]}" for name in ("tp", "cp") if plan[name] > 1]
    if plan["pp"] > 1:
        words.append(f"pp{plan['pp']}" + (f"x{plan['chunks']}" if plan["chunks"] > 1 else ""))
    words += [f"{name}{plan[name]}" for name in ("dp", "ep") if plan[name] > 1]
    if plan["ep"] > 1 and plan["etp"] > 1:
        words.append(f"etp{plan['etp']}")
    words.append(f"b{plan['micro_batch']}")
    if plan["schedule"] not in ("1f1b", "interleaved"):
        words.append(plan["schedule"])
    if plan["zero"]:
        words.append(f"z{plan['zero']}" + ("" if plan["shard"] == plan["dp"] * plan["cp"] else f"/{plan['shard']}"))
    words += ["sp"] if plan["sequence_parallel"] else []
    return " ".join([*words, *filter(None, [_MARKS[plan["recompute"]]])])
