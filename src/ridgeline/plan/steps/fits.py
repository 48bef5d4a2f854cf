"""Bytes on the fullest chip of every plan, by part and by pipeline stage.

The closed forms are those of `arithmetic.memory` (state under ZeRO, FSDP and hybrid sharding) and
`arithmetic.activations` (Korthikanti et al. 2022, arXiv:2205.05198), evaluated for all plans at once. Added here:

in flight   the first stage holds a micro-batch for every stage under 1F1B and zero-bubble H1, (1 + (p - 1)/(p*v))
            times that when interleaved, all of them under GPipe, one more under DualPipe, which keeps its weights
            twice; the last stage holds one, and the logits
selective   attention's core is computed again, as Megatron-LM does; frameworks built on PyTorch FSDP keep every second
            matmul's output instead, which is half way between keeping all and keeping a layer's input
gathered    fully sharded layers in full while they run: this one and the next, and the gradient of one
            (PyTorch FSDP: a group of parameters is gathered before use, the next one beside it); under a pipeline
            the whole stage, which is gathered once a step
buffers     a bucket of gradients on their way, activations that a collective gathers for sequence parallelism
runtime     what the device keeps for itself, the collectives' library and the framework (assumed)
slack       share that the allocator cannot hand out (assumed)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgeline.arithmetic.activations import Keeping, activations
from ridgeline.arithmetic.flops import Recompute
from ridgeline.arithmetic.inputs import known
from ridgeline.arithmetic.memory import training_state
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.sharding import Precision, Sharding, dtype_bytes
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InfeasibleError
from ridgeline.core.format import value
from ridgeline.core.quantity import given
from ridgeline.plan.steps.cluster import Cluster
from ridgeline.plan.steps.expected import families
from ridgeline.plan.steps.layout import RECOMPUTES, Ints, Layout
from ridgeline.plan.steps.machine import Array, Software
from ridgeline.plan.steps.pipeline import SCHEDULES
from ridgeline.plan.steps.traffic import parameters
from ridgeline.plan.steps.work import stage_shares

_KEEPS_HALF = "fsdp"  # the family of `expected.families` whose selective policy is by operation
_GATHERED_LAYERS = 2  # the one that runs and the next


@dataclass(frozen=True)
class Held:
    """Bytes of every plan on its fullest chip: ``parts`` add up to ``total_bytes``; ``stages`` is where (0: first).

    Parts: weights, gradients, optimizer, activations kept, logits, working (the layer that is recomputed), gathered,
    buffers, runtime, slack.
    """

    parts: Mapping[str, Array]
    total_bytes: Array
    stages: Ints
    pp: Ints

    def __len__(self) -> int:
        return len(self.total_bytes)

    def stage(self, row: int) -> str:
        """The binding stage in words."""
        place, count = int(self.stages[row]), int(self.pp[row])
        if count == 1:
            return "the only pipeline stage"
        return f"pipeline stage {place + 1} of {count}"

    def headroom_bytes(self, cluster: Cluster) -> Array:
        """What is left of a chip's memory; below zero the plan does not fit."""
        return np.asarray(capacity_bytes(cluster) - self.total_bytes)


def capacity_bytes(cluster: Cluster) -> float:
    """Memory of one chip. Raises `InputError` where no source states it."""
    return float(known(cluster.device.hbm_bytes, f"the memory of {cluster.device.name}").base)


def held(spec: ModelSpec, batch: tuple[int, int], layouts: Layout, software: Software) -> Held:
    """Memory of all plans; ``batch`` is (sequences a step, tokens a sequence)."""
    state = _state(spec, batch, layouts, software)
    acts, logits = _activations(spec, batch, layouts, software)
    first, last = _in_flight(spec, batch, layouts)
    one = {"activations": acts * first, "logits": np.where(layouts.pp == 1, logits["logits"], 0.0)}
    other = {"activations": acts * last, "logits": logits["logits"]}
    ends = (sum(other.values()) > sum(one.values())) & (layouts.pp > 1)
    parts = dict(state)
    parts |= {name: np.where(ends, other[name], one[name]) for name in one}
    parts |= {
        "working": logits["working"],
        "gathered": _gathered(spec, layouts, software),
        "buffers": _buffers(spec, batch, layouts, software),
    }
    used: Array = np.sum(list(parts.values()), axis=0)
    parts["runtime"] = np.full(len(layouts), float(constant("memory.runtime").base))
    parts["slack"] = used * float(constant("memory.slack").base)
    total: Array = np.sum(list(parts.values()), axis=0)
    return Held(parts, total, np.where(ends, layouts.pp - 1, 0), layouts.pp)


def require(held_: Held, cluster: Cluster) -> None:
    """Raise `InfeasibleError` for the first plan above the chip's memory, naming its stage and largest part."""
    over = held_.headroom_bytes(cluster) < 0
    if not np.any(over):
        return
    row = int(np.argmax(over))
    largest = max(held_.parts, key=lambda name: float(held_.parts[name][row]))
    limit, got = value(capacity_bytes(cluster), "B"), value(float(held_.total_bytes[row]), "B")
    text = f"Expected at most {limit} on each {cluster.device.name}, got {got}, at {held_.stage(row)}"
    raise InfeasibleError(text, limit=f"device memory, {largest} first", nearest=f"{limit} a chip")


def _state(spec: ModelSpec, batch: tuple[int, int], layouts: Layout, software: Software) -> dict[str, Array]:
    """Weights, gradients and optimizer of the fullest stage; a stage with a layer more than the mean holds more."""
    found = training_state(spec, layouts.sharding(batch[0]), precision=Precision(gradients=software.gradients))
    _, most, _ = stage_shares(spec.layers, layouts)
    uneven = most * layouts.pp
    twice = np.where(layouts.schedule == SCHEDULES.index("dualpipe"), 2, 1)
    values = {"weights": found.weights, "gradients": found.gradients, "optimizer": found.optimizer}
    return {name: np.asarray(item.base * uneven * twice, dtype=float) for name, item in values.items()}


def _activations(
    spec: ModelSpec, batch: tuple[int, int], layouts: Layout, software: Software
) -> tuple[Array, dict[str, Array]]:
    """Kept bytes of one micro-batch over all layers; and what the layer being recomputed and the head need."""
    parts = {name: np.zeros(len(layouts)) for name in ("kept", "working", "logits")}
    halves = families().get(software.framework, software.framework) == _KEEPS_HALF
    for code in np.unique(layouts.recompute):
        rows = np.flatnonzero(layouts.recompute == code)
        found = _of_policy(spec, batch, layouts.take(rows), software, RECOMPUTES[code])
        if halves and RECOMPUTES[code] == "selective":
            ends = [_of_policy(spec, batch, layouts.take(rows), software, policy) for policy in ("none", "full")]
            found = {name: (ends[0][name] + ends[1][name]) / 2 for name in parts}
        for name, target in parts.items():
            target[rows] = found[name]
    return parts["kept"], parts


def _of_policy(
    spec: ModelSpec, batch: tuple[int, int], layouts: Layout, software: Software, policy: Recompute
) -> dict[str, Array]:
    micro = Batch(given("batch.seq_len", batch[1], "token"), given("batch.sequences", layouts.micro_batch, "1"))
    keeping = Keeping(policy, software.attention, software.dropout)
    found = activations(spec, micro, _one_stage(layouts, batch[0]), keeping)
    ones = np.ones(len(layouts))
    return {name: np.asarray(getattr(found, name).base * ones) for name in ("kept", "working", "logits")}


def _one_stage(layouts: Layout, sequences: int) -> Sharding:
    """The plan without its pipeline: one micro-batch in flight, the head on the same stage."""
    sharding = layouts.sharding(sequences)
    ones = np.ones(len(layouts))
    flat = {name: given(f"plan.{name}", ones, "1") for name in ("pp", "chunks", "micro_batches")}
    return Sharding(**{**vars(sharding), **flat})


def _in_flight(spec: ModelSpec, batch: tuple[int, int], layouts: Layout) -> tuple[Array, Array]:
    """Micro-batches' worth of all layers' activations on the first and on the last stage."""
    _, most, last = stage_shares(spec.layers, layouts)
    p, m, v = layouts.pp, layouts.micro_batches(batch[0]), layouts.chunks
    one_f_one_b = np.minimum(p, m) * np.where(v > 1, 1 + (p - 1) / (p * v), 1.0)
    gpipe = layouts.schedule == SCHEDULES.index("gpipe")
    dual = layouts.schedule == SCHEDULES.index("dualpipe")
    first = np.select([gpipe, dual], [m, np.minimum(p + 1, m)], one_f_one_b) * most
    chunks = np.where(v > 1, 1 + (v - 1) / v, 1.0)  # the last stage still holds its earlier chunks' inputs
    return first, np.where(gpipe, m, np.minimum(chunks, m)) * last


def _gathered(spec: ModelSpec, layouts: Layout, software: Software) -> Array:
    """Fully sharded parameters while they are whole: two layers and one layer's gradients, or a table's.

    A pipeline stage stays whole with its gradients from its first micro-batch to its last.
    """
    dense, experts, table = parameters(spec)
    every = dense / layouts.tp + experts / (layouts.ep * layouts.etp)
    largest = np.maximum(every / spec.layers, table / layouts.tp)
    element, gradient = _bytes("bf16"), _bytes(software.gradients)
    layer = largest * (_GATHERED_LAYERS * element + gradient)
    _, most, _ = stage_shares(spec.layers, layouts)
    stage = (every * most + table / layouts.tp) * (element + gradient)
    return np.where(layouts.zero >= 3, np.where(layouts.pp > 1, stage, layer), 0.0)


def _buffers(spec: ModelSpec, batch: tuple[int, int], layouts: Layout, software: Software) -> Array:
    """A bucket of gradients, and the activations that sequence parallelism gathers."""
    bucket = np.where(layouts.dp > 1, float(constant("memory.bucket").base) * _bytes(software.gradients), 0.0)
    stream = layouts.micro_batch * batch[1] / layouts.cp * spec.d_model * _bytes("bf16")
    return bucket + np.where((layouts.sequence_parallel > 0) & (layouts.tp > 1), stream, 0.0)


def _bytes(dtype: str) -> float:
    return float(dtype_bytes(dtype).base)


def which_fit(held_: Held, cluster: Cluster) -> NDArray[np.bool_]:
    """The plans that fit the chip's memory."""
    return np.asarray(held_.headroom_bytes(cluster) >= 0)
