"""Seconds of kernels and wires under every plan, each alone and at the speed of its surface or its link.

Plans that share what one rank computes (``tp``, ``cp``, ``ep``, ``etp``, micro-batch, sequence parallelism) share one
row of kernel times: a search over a hundred thousand plans times a few hundred rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.arithmetic.surface_terms import ACT
from ridgeline.plan.steps.layout import Ints, Layout
from ridgeline.plan.steps.machine import Array, Machine
from ridgeline.plan.steps.ranks import Group, Groups, groups
from ridgeline.plan.steps.traffic import (
    expert_elements,
    owned,
    reductions,
    ring_elements,
    routed_elements,
    stream_elements,
)
from ridgeline.plan.steps.workload import Core, Matmul, Workload, workload

# Bytes of Adam's step: gradient, master, two moments read; master, moments and the bf16 weight written.
_ADAM = 4 * 4 + 3 * 4 + 2
_GRADIENT = 4 + 4  # its norm read, its buffer cleared
# Attention without a fused kernel moves every score 13 bytes forward (scores, softmax, dropout, weighting), 19 back.
_SCORES_FORWARD, _SCORES_BACKWARD = 13, 19
_LOGITS = 26  # bytes a logit: written, read into softmax in fp32, its gradient written and read twice
_CAST = 3  # bytes an element cast from bf16 to fp8: two read, one written
_TILE = 128  # rows that a grouped matmul pads each expert to


@dataclass(frozen=True)
class Rank:
    """One micro-batch through all layers on one rank, seconds a pass; rows are distinct shapes.

    ``launches`` counts kernels of a forward pass, ``meetings`` its tensor-parallel collectives, each by the square of
    its other ranks: hosts that are out of step wait for the slowest. ``tp_s``, ``ep_s``, ``cp_s`` are wires of a
    forward pass; the backward pass has as many, twice ``cp_s``. Backward columns hold gradients of inputs and weights.
    """

    forward_s: Array
    dgrad_s: Array
    wgrad_s: Array
    expert_forward_s: Array
    expert_backward_s: Array
    attention_s: Array
    attention_backward_s: Array
    vector_s: Array
    vector_backward_s: Array
    launches: Array
    meetings: Array
    head_s: Array
    head_vector_s: Array
    tp_s: Array
    ep_s: Array
    cp_s: Array


@dataclass(frozen=True)
class Work(Rank):
    """The same for every plan, with what plans do not share.

    ``gather_s`` and ``scatter_s`` are one pass of fully sharded parameters over one stage, ``reduce_s`` and
    ``params_s`` a step's gradient reduction and parameter gathering under less sharding. ``transfer_s`` is one
    hand-over between stages, ``optimizer_s`` the step's end. ``*_far`` say that a group leaves its domain.
    ``most`` and ``last`` are the shares of all layers on the fullest and on the last stage.
    """

    gather_s: Array
    scatter_s: Array
    reduce_s: Array
    params_s: Array
    transfer_s: Array
    optimizer_s: Array
    tp_far: NDArray[np.bool_]
    cp_far: NDArray[np.bool_]
    dp_far: NDArray[np.bool_]
    most: Array
    last: Array
    stages: Ints
    chunks: Ints
    micro_batches: Ints
    zero: Ints
    recompute: Ints
    schedule: Ints
    peak_flops_per_s: Array


def work(spec: ModelSpec, machine: Machine, batch: tuple[int, int], layouts: Layout) -> Work:
    """Every term of every plan; ``batch`` is (sequences a step, tokens a sequence)."""
    sequences, seq = batch
    load = workload(spec, seq, dropout=machine.software.dropout)
    lying = groups(machine.cluster, layouts)
    rows, place = _distinct(layouts)
    shared = _rank(load, machine, seq, layouts.take(rows), groups(machine.cluster, layouts.take(rows)))
    whole = {f.name: getattr(shared, f.name)[place] for f in fields(Rank)}
    stages, most, last = stage_shares(load.layers, layouts)
    data = _data_parallel(spec, machine, layouts, lying, most)
    return Work(
        **whole,
        **data,
        transfer_s=_transfer(load, machine, seq, layouts, lying),
        tp_far=lying.tp.size > lying.tp.near,
        cp_far=lying.cp.size > lying.cp.near,
        dp_far=lying.shard.size * lying.replica.size > lying.shard.near,
        most=most,
        last=last,
        stages=stages,
        chunks=layouts.chunks,
        micro_batches=layouts.micro_batches(sequences),
        zero=layouts.zero,
        recompute=layouts.recompute,
        schedule=layouts.schedule,
        peak_flops_per_s=machine.peak_flops_per_s * layouts.chips.astype(float),
    )


def _distinct(layouts: Layout) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of the first plan of every shape, and the shape of every plan."""
    code = np.zeros(len(layouts), np.int64)
    for column in ("tp", "cp", "ep", "etp", "micro_batch", "sequence_parallel"):
        _, small = np.unique(getattr(layouts, column), return_inverse=True)
        code = code * (small.max() + 1) + small
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    return first, place


def stage_shares(layers: int, layouts: Layout) -> tuple[Ints, Array, Array]:
    """Stages of the pipeline, and the shares of all layers on the fullest stage and on the last one."""
    virtual = layouts.pp * layouts.chunks
    most = -(-layers // virtual) * layouts.chunks
    spare = virtual * -(-layers // virtual) - layers
    last = np.maximum(most - spare, 1)  # the head does not run alone: `layout.limits` asks for a layer a stage
    return layouts.pp, np.minimum(most / layers, 1.0), last / layers


@dataclass(frozen=True)
class _Local:
    """Sides of one rank's work: token rows a micro-batch, and divisors."""

    rows: Array
    tp: Array
    ep: Array
    etp: Array
    seq_split: Array


def _rank(load: Workload, machine: Machine, seq: int, shapes: Layout, lying: Groups) -> Rank:
    local = _local(seq, shapes)
    rows = local.rows
    dense = [item for item in load.matmuls if item.split != "expert"]
    expert = [item for item in load.matmuls if item.split == "expert"]
    dense_s = _matmul_times(machine, dense, local)
    expert_s = _matmul_times(machine, expert, local)
    attention, attention_back = _attention(load, machine, seq, shapes, local)
    vector, vector_back = _vector(load, machine, local)
    head, head_vector = _head(load, machine, local)
    wires = _wires(load, machine, shapes, lying, local)
    core_s = load.mixer_flops * rows / local.tp / machine.peak_flops_per_s
    launches = np.full(len(rows), float(sum(item.kernels * item.uses for item in load.exchanges)))
    return Rank(
        forward_s=dense_s[0],
        dgrad_s=dense_s[1],
        wgrad_s=dense_s[2],
        expert_forward_s=expert_s[0],
        expert_backward_s=expert_s[1] + expert_s[2],
        attention_s=attention + core_s,
        attention_backward_s=attention_back + 2 * core_s,
        vector_s=vector,
        vector_backward_s=vector_back,
        launches=launches,
        meetings=_meetings(load, shapes),
        head_s=head,
        head_vector_s=head_vector,
        **wires,
    )


def _meetings(load: Workload, shapes: Layout) -> Array:
    """Collectives over tp and over etp, each by the square of its other ranks."""
    dense = sum((reductions(item, shapes) * item.uses for item in load.exchanges), np.zeros(len(shapes)))
    mixtures = sum(item.uses for item in load.exchanges if item.routed)
    split = np.where(shapes.ep > 1, shapes.etp - 1, 0)
    return np.asarray((shapes.tp - 1) ** 2 * dense + split**2 * mixtures)


def _local(seq: int, shapes: Layout) -> _Local:
    return _Local(
        shapes.micro_batch * seq / shapes.cp,
        shapes.tp.astype(float),
        shapes.ep.astype(float),
        shapes.etp.astype(float),
        np.where(shapes.sequence_parallel > 0, shapes.tp, 1).astype(float),
    )


def local_sides(load: Workload, seq: int, layouts: Layout) -> Iterator[tuple[Matmul, Array, Array, Array]]:
    """Every matmul of the layers and the head, with m, n and k of a micro-batch on one rank, one entry a plan."""
    local = _local(seq, layouts)
    for item in (*load.matmuls, *load.head):
        m, n, k, _ = _sides(item, local)
        yield item, m, n, k


def _matmul_times(machine: Machine, items: list[Matmul], local: _Local, *, wide: bool = False) -> list[Array]:
    """Forward, input gradient and weight gradient of these matmuls over all their uses.

    A rank's experts run as one grouped matmul, which takes at least as long as reading the weights of all of them.
    """
    total = [np.zeros(len(local.rows)) for _ in range(3)]
    if not items:
        return total
    sides = [_sides(item, local) for item in items]
    m, n, k, times = (np.stack([side[i] for side in sides]) for i in range(4))
    held = np.stack([np.ceil(item.experts / local.ep) if item.split == "expert" else local.rows * 0 for item in items])
    floor = machine.stream_s((held * n * k + (held > 0) * m * (n + k)) * ACT)
    for slot, (a, b, c) in enumerate(((m, n, k), (m, k, n), (k, n, m))):
        total[slot] = (np.maximum(machine.matmul_s(a, b, c, wide=wide), floor) * times).sum(axis=0)
    return total


def _sides(item: Matmul, local: _Local) -> tuple[Array, Array, Array, Array]:
    """Local m, n, k and how often: experts of a rank run as one matmul over their padded rows."""
    ones = np.ones(len(local.rows))
    m, n, k, times = local.rows, item.n * ones, item.k * ones, item.uses * ones
    if item.split == "expert":
        per_expert = m * item.top_k * local.ep * local.etp / local.tp / item.experts
        padded = np.ceil(per_expert / _TILE) * _TILE
        m = padded * np.ceil(item.experts / local.ep)
        return (m, n, k / local.etp, times) if item.out else (m, n / local.etp, k, times)
    if item.split == "column":
        n = np.ceil(n / local.tp)
    elif item.split == "row":
        k = np.ceil(k / local.tp)
    else:
        m = m / local.seq_split
    return m, n, k, times


def _attention(load: Workload, machine: Machine, seq: int, shapes: Layout, local: _Local) -> tuple[Array, Array]:
    """Forward and backward seconds of attention's cores over all layers."""
    forward, backward = np.zeros(len(local.rows)), np.zeros(len(local.rows))
    for core in load.cores:
        one = _fused if machine.software.attention == "flash" else _unfused
        there, back = one(machine, core, seq, shapes, local)
        indexed = core.indexed_flops * shapes.micro_batch / shapes.cp / machine.peak_flops_per_s
        forward += (there * core.share + indexed) * core.uses
        backward += (back * core.share + 2 * indexed) * core.uses
    return forward, backward


def _fused(machine: Machine, core: Core, seq: int, shapes: Layout, local: _Local) -> tuple[Array, Array]:
    heads = np.maximum(core.heads / local.tp, 1)
    kv_heads = np.maximum(core.kv_heads / local.tp, 1)
    share = shapes.micro_batch / shapes.cp  # sequences' worth of queries: context parallelism fills a chip no better
    whole = np.maximum(share, 1.0)
    there = machine.attention_s(whole, heads, kv_heads, seq, core.head_dim) * share / whole
    return there, there * machine.attention_backward


def _unfused(machine: Machine, core: Core, seq: int, shapes: Layout, local: _Local) -> tuple[Array, Array]:
    """Two batched matmuls over every pair, and softmax and dropout in memory."""
    rows = np.maximum(core.heads / local.tp, 1) * shapes.micro_batch * seq / shapes.cp
    width, length = np.full_like(rows, core.head_dim), np.full_like(rows, seq)
    scores = machine.matmul_s(rows, length, width, wide=True)
    values = machine.matmul_s(rows, width, length, wide=True)
    moved = machine.stream_s(rows * seq * _SCORES_FORWARD)
    back = machine.stream_s(rows * seq * _SCORES_BACKWARD)
    # the catalog's share counts a causal triangle; every pair is computed here
    return (scores + values + moved) / core.share, (2 * (scores + values) + back) / core.share


def _vector(load: Workload, machine: Machine, local: _Local) -> tuple[Array, Array]:
    forward, backward = np.zeros(len(local.rows)), np.zeros(len(local.rows))
    for item in load.traffic:
        wide, split = local.rows / local.seq_split * item.uses, local.rows / local.tp * item.uses
        forward += item.wide_forward * wide + item.split_forward * split
        backward += item.wide_backward * wide + item.split_backward * split
    if machine.narrow:
        for matmul in load.matmuls:
            m, n, k, times = _sides(matmul, local)
            forward += _CAST * m * k * times
            backward += _CAST * m * n * times
    return machine.stream_s(forward), machine.stream_s(backward)


def _head(load: Workload, machine: Machine, local: _Local) -> tuple[Array, Array]:
    """Forward and backward of the head, in bf16, and the softmax over its logits."""
    times = _matmul_times(machine, list(load.head), local, wide=True)
    logits = local.rows * load.vocab / local.tp * sum(item.uses for item in load.head)
    return times[0] + times[1] + times[2], machine.stream_s(_LOGITS * logits)


def _wires(load: Workload, machine: Machine, shapes: Layout, lying: Groups, local: _Local) -> dict[str, Array]:
    """Collectives of one forward pass: over tp, over ep to the experts and back, round the context ring."""
    tp_s, ep_s, cp_s = (np.zeros(len(local.rows)) for _ in range(3))
    for item in load.exchanges:
        stream = stream_elements(load, local.rows) * ACT
        one = machine.collective_s("all_reduce", stream, lying.tp.size, lying.tp.near)
        tp_s += one * reductions(item, shapes) * item.uses
        if item.routed:
            sent = routed_elements(item, local.rows, local.tp) * ACT
            ep_s += 2 * item.uses * _exchange(machine, sent, item.top_k, lying.ep)
            joined = expert_elements(item, local.rows, shapes) * ACT
            tp_s += item.uses * machine.collective_s("all_reduce", joined, lying.etp.size, lying.etp.near)
        if item.kv:
            held = ring_elements(item, local.rows, shapes) * ACT
            cp_s += item.uses * machine.collective_s("all_gather", held, lying.cp.size, lying.cp.near)
    return {"tp_s": tp_s, "ep_s": ep_s, "cp_s": cp_s}


def _exchange(machine: Machine, sent: Array, top_k: int, group: Group) -> Array:
    """An all-to-all to the experts: a token crosses to another domain once, however many of its experts are there."""
    near = machine.collective_s("all_to_all", sent * group.near / group.size, group.near, group.near)
    domains = group.size / group.near
    visited = domains * (1 - (1 - 1 / domains) ** top_k)
    far = machine.collective_s("all_to_all", sent * visited / top_k, group.size, np.ones_like(group.near))
    return np.where(group.size > group.near, np.maximum(near, far), near)


def _transfer(load: Workload, machine: Machine, seq: int, layouts: Layout, lying: Groups) -> Array:
    """One micro-batch's activations to the next stage; with tp each rank sends its share of them."""
    sent = layouts.micro_batch * seq / layouts.cp * load.d_model * ACT / layouts.tp
    two = np.full(len(layouts), 2)
    near = np.where(lying.stage_is_far > 0, 1, 2)
    return np.where(layouts.pp > 1, machine.collective_s("point_to_point", sent, two, near), 0.0)


def _data_parallel(
    spec: ModelSpec, machine: Machine, layouts: Layout, lying: Groups, most: Array
) -> Mapping[str, Array]:
    """Gathers and reductions of parameters and gradients, and the optimizer, on the fullest stage."""
    own, own_experts = owned(spec, layouts, most)
    per_layer = np.maximum(most * spec.layers, 1)
    weight, gradient = float(ACT), float(dtype_bytes(machine.software.gradients).base)

    def over(kind: str, element: float, parts: Array) -> Array:
        found = machine.collective_s(kind, own * element / parts, lying.shard.size, lying.shard.near)
        if np.any(own_experts > 0):
            group = lying.expert_data
            found = found + machine.collective_s(kind, own_experts * element / parts, group.size, group.near)
        return found * parts

    one = np.ones(len(layouts))
    sharded = layouts.zero >= 3
    shards = own / layouts.shard + own_experts / lying.expert_data.size
    apart = machine.collective_s("all_reduce", shards * gradient, lying.replica.size, lying.replica.near)
    reduce = np.where(layouts.zero == 0, over("all_reduce", gradient, one), over("reduce_scatter", gradient, one))
    split = np.where(layouts.zero >= 1, layouts.shard, 1)
    split_experts = np.where(layouts.zero >= 1, lying.expert_data.size, 1)
    held = np.where(layouts.zero >= 2, own / split + own_experts / split_experts, own + own_experts)
    moved = (own / split + own_experts / split_experts) * _ADAM + held * _GRADIENT
    return {
        "gather_s": np.where(sharded, over("all_gather", weight, per_layer), 0.0),
        "scatter_s": np.where(sharded, over("reduce_scatter", gradient, per_layer), 0.0),
        "reduce_s": np.where(sharded, 0.0, reduce) + apart,
        "params_s": np.where((layouts.zero > 0) & ~sharded, over("all_gather", weight, one), 0.0),
        "optimizer_s": machine.stream_s(moved),
    }
