"""What a search may try: every plan that divides, in blocks of columns.

Meshes first (tp x cp x pp x dp over all chips, by their divisors), then what can be chosen inside each: micro-batch,
experts, model chunks and schedule, ZeRO stage and its group, sequence parallelism, recompute. What has no effect is
not tried twice: ZeRO in a group of one, sequence parallelism without tensor parallelism, schedules without a pipeline.
ZeRO-2 is tried where a step has one micro-batch: with more, its gradients would be reduced after each of them.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any

import numpy as np

from ridgeline.arithmetic.spec import ModelSpec, MoE
from ridgeline.core.errors import InfeasibleError, InputError, did_you_mean
from ridgeline.plan.steps.cluster import Cluster
from ridgeline.plan.steps.layout import RECOMPUTES, Ints, Layout, divisor_below
from ridgeline.plan.steps.pipeline import SCHEDULES

BLOCK = 200_000  # plans evaluated at once
_NAMES = tuple(f.name for f in fields(Layout))


@dataclass(frozen=True)
class Space:
    """Limits of the search. ``fixed`` holds columns of a `Layout` to one value each, by number or name.

    ``most_tp`` 0: as many chips as a scale-up domain. ``most_micro_batch`` in sequences. ``least_tokens``: how many
    of a sequence context parallelism leaves to a rank, as in published runs. ``even_stages``: only model chunks that
    divide the layers, as frameworks ask.
    """

    most_tp: int = 0
    most_micro_batch: int = 16
    least_tokens: int = 4096
    zero: tuple[int, ...] = (0, 1, 2, 3)
    recompute: tuple[str, ...] = RECOMPUTES
    schedules: tuple[str, ...] = ("1f1b", "interleaved")
    even_stages: bool = True
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def whole(cls, cluster: Cluster, **fixed: Any) -> "Space":
        """Without limits: tp and cp as far as they divide, every micro-batch, chunk count, ZeRO stage and schedule."""
        names = tuple(name for name in SCHEDULES if name != "gpipe")  # it holds more than 1f1b and is never faster
        return cls(cluster.chips, sys.maxsize, 1, (0, 1, 2, 3), RECOMPUTES, names, False, fixed)

    def coded(self) -> dict[str, int]:
        """``fixed`` as the numbers of a `Layout`. Raises `InputError` for an unknown column, name or size."""
        for name in self.fixed:
            if name not in _NAMES:
                raise InputError.expected("a column of a plan", name, where="plan", hint=did_you_mean(name, _NAMES))
        row = Layout.of(**self.fixed)
        return {name: int(getattr(row, name)[0]) for name in self.fixed}


@dataclass(frozen=True)
class _Job:
    spec: ModelSpec
    cluster: Cluster
    sequences: int
    seq: int
    space: Space
    fixed: Mapping[str, int]

    def choices(self, name: str, values: Iterator[int] | list[int] | tuple[int, ...]) -> list[int]:
        """The values of one column, or the fixed one where it is among them."""
        found = list(values)
        if name not in self.fixed:
            return found
        return [self.fixed[name]] if self.fixed[name] in found else []


def plans(
    spec: ModelSpec, cluster: Cluster, batch: tuple[int, int], space: Space, block: int = BLOCK
) -> Iterator[Layout]:
    """Every plan of the space, in blocks of at least ``block`` rows but for the last.

    ``batch`` is (sequences a step, tokens a sequence). Raises `InputError` for more ranks than chips and
    `InfeasibleError` where a fixed size divides nothing.
    """
    job = _Job(spec, cluster, *batch, space, space.coded())
    _check(job)
    parts: list[Layout] = []
    rows = 0
    for mesh in _meshes(job):
        found = _inside(job, *mesh)
        if len(found):
            parts.append(found)
            rows += len(found)
        if rows >= block:
            yield Layout.join(parts)
            parts, rows = [], 0
    if parts:
        yield Layout.join(parts)


def divisors(total: int) -> list[int]:
    """Every divisor of a positive number, ascending."""
    low = [size for size in range(1, int(total**0.5) + 1) if total % size == 0]
    return low + [total // size for size in reversed(low) if size * size != total]


def _check(job: _Job) -> None:
    if min(job.sequences, job.seq) < 1:
        raise InputError.expected("at least one sequence and token", min(job.sequences, job.seq), where="the batch")
    sizes = {name: job.fixed[name] for name in ("tp", "pp", "dp", "cp") if name in job.fixed}
    ranks = int(np.prod(list(sizes.values()))) if sizes else 1
    chips = job.cluster.chips
    if ranks > chips:
        raise InputError.expected(f"at most {chips} ranks, one a chip", ranks, where="tp*pp*dp*cp of the plan")
    if chips % ranks or (len(sizes) == 4 and ranks != chips):
        name = "*".join(sizes)
        text = f"Expected {name} to divide {chips} chips, got {ranks}, at the plan"
        nearest = f"{name} = {divisor_below(chips, ranks)}" if chips % ranks else f"{ranks} chips"
        raise InfeasibleError(text, limit="whole replicas on all chips", nearest=nearest)


def _meshes(job: _Job) -> Iterator[tuple[int, int, int, int]]:
    """(tp, cp, pp, dp) over all chips."""
    chips, seq = job.cluster.chips, job.seq
    most_tp = max(job.space.most_tp or job.cluster.node_size, job.fixed.get("tp", 1))
    sizes = divisors(chips)
    least = 1 if "cp" in job.fixed else job.space.least_tokens
    for tp in job.choices("tp", [size for size in sizes if size <= most_tp]):
        rings = [size for size in sizes if size == 1 or (seq % (2 * size) == 0 and seq // size >= least)]
        for cp in job.choices("cp", rings):
            stages = [size for size in sizes if size <= job.spec.layers and chips % (tp * cp * size) == 0]
            for pp in job.choices("pp", stages):
                replicas = chips // (tp * cp * pp)
                if job.choices("dp", [replicas]) and job.sequences % replicas == 0 and chips % (tp * cp * pp) == 0:
                    yield tp, cp, pp, replicas


def _inside(job: _Job, tp: int, cp: int, pp: int, dp: int) -> Layout:
    """Every choice inside one mesh."""
    most = max(job.space.most_micro_batch, job.fixed.get("micro_batch", 1))
    batches = [b for b in divisors(job.sequences // dp) if b <= most]
    micro = job.choices("micro_batch", batches)
    zero = _sharded(job, tp, cp, dp)
    split = job.choices("sequence_parallel", [0, 1] if tp > 1 else [0])
    again = job.choices("recompute", [RECOMPUTES.index(name) for name in job.space.recompute])
    grid = list(product(_experts(job, tp * cp * dp, tp), _pipelines(job, pp), zero, split, again))
    if not grid or not micro:
        return Layout.of().take(slice(0, 0))
    rows: Ints = np.array([(*a, *b, *c, d, e) for a, b, c, d, e in grid], np.int64)
    rows = np.repeat(rows, len(micro), axis=0)
    of = dict(zip(("ep", "etp", "chunks", "schedule", "zero", "shard", "sequence_parallel", "recompute"), rows.T,
                  strict=True))  # fmt: skip
    mesh = {name: np.full(len(rows), size) for name, size in (("tp", tp), ("cp", cp), ("pp", pp), ("dp", dp))}
    found = Layout(**mesh, **of, micro_batch=np.tile(np.array(micro, np.int64), len(grid)))
    several = (found.zero == 2) & (found.micro_batch * dp < job.sequences)
    odd = (found.schedule == SCHEDULES.index("dualpipe")) & (
        (found.micro_batches(job.sequences) % 2 > 0) | (pp % 2 > 0)
    )
    apart = found.shard < dp * cp  # a shard group holds every expert, or there is no layout for them
    torn = apart & (tp * found.shard % (found.ep * found.etp) > 0)
    return found.take(~several & ~odd & ~torn)


def _experts(job: _Job, ranks: int, tp: int) -> list[tuple[int, int]]:
    """(ep, etp): experts over ranks, each split as the dense layers are or not at all."""
    counts = {ffn.experts for kind in job.spec.kinds for ffn in kind.ffns if isinstance(ffn, MoE)}
    common = int(np.gcd.reduce(list(counts))) if counts else 1
    found = []
    for ep in job.choices("ep", [size for size in divisors(common) if size <= ranks]):
        splits = [tp] if ep == 1 else sorted({1, tp})
        found += [(ep, etp) for etp in job.choices("etp", splits) if ranks % (ep * etp) == 0]
    return found


def _pipelines(job: _Job, pp: int) -> list[tuple[int, int]]:
    """(chunks, schedule)."""
    if pp == 1:
        return [(1, SCHEDULES.index("1f1b"))] if job.choices("chunks", [1]) else []
    layers = job.spec.layers
    found = []
    for chunks in job.choices("chunks", list(range(1, layers // pp + 1))):
        if chunks > 1 and job.space.even_stages and layers % (pp * chunks) and "chunks" not in job.fixed:
            continue
        names = [SCHEDULES[job.fixed["schedule"]]] if "schedule" in job.fixed else job.space.schedules
        codes = [SCHEDULES.index(name) for name in names if (name == "interleaved") == (chunks > 1)]
        found += [(chunks, code) for code in codes]
    return found


def _sharded(job: _Job, tp: int, cp: int, dp: int) -> list[tuple[int, int]]:
    """(ZeRO stage, ranks of its group): all of dp*cp, or for full sharding those inside one scale-up domain too."""
    group = dp * cp
    if group == 1:
        return [(0, 1)] if job.choices("zero", [0]) else []
    found = []
    for stage in job.choices("zero", job.space.zero):
        inside = int(np.gcd(group, max(job.cluster.node_size // tp, 1)))
        groups = {group, inside} - {1} if stage == 3 and inside % cp == 0 else {group}
        groups |= {size for name, size in job.fixed.items() if name == "shard" and stage == 3 and group % size == 0}
        found += [(stage, size) for size in job.choices("shard", sorted(groups))]
    return found
