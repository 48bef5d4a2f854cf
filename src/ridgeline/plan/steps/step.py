"""The time of a training step under a plan, term by term, for many plans at once.

One micro-batch passes the model's layers forward and backward on every stage; stages follow the pipeline's schedule;
gradients are reduced and parameters gathered beside it; then the optimizer runs. `work` times the kernels and wires
of every plan as the catalog and the measured surfaces have them, `combine` adds them up under a few named constants
(`Constants`), `predict` does both. Exact schedules of single plans are in `pipeline`; here their closed forms, for
the time that the slowest stage waits:

``1f1b``, ``gpipe``  a micro-batch's passes through the other stages   Narayanan et al. 2021 (arXiv:2104.04473), 2.2.1
``interleaved``      the same divided by the chunks of a stage         the same, 2.2.2
``zb-h1``            (stages - 1)*(F + B - W), B of inputs only        Qi et al. 2023 (arXiv:2401.10241), table 2
``dualpipe``         (stages/2 - 1)*(F + 2B - W), without its overlap  DeepSeek-V3 (arXiv:2412.19437), table 2
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.plan.steps.cluster import Cluster
from ridgeline.plan.steps.layout import RECOMPUTES, Layout
from ridgeline.plan.steps.machine import Array, Machine, Software
from ridgeline.plan.steps.overlap import exposed, longer
from ridgeline.plan.steps.pipeline import SCHEDULES
from ridgeline.plan.steps.work import Work, work

Factor = Array | float


@dataclass(frozen=True)
class Constants:
    """What is not in the shapes; each a number, or one per plan. Fitted to published runs by ``scripts/fit_expected``.

    ``matmul``, ``attention``, ``vector``, ``optimizer``: time over that of the surface, or of full memory bandwidth.
    ``experts``: the same for routed experts, on top of ``matmul``. ``launch_s``: host time of one kernel launch;
    ``meeting_s``: what hosts of a tensor-parallel group wait for each other at a collective, times (tp - 1)^2.
    ``wire`` and ``far_wire``: time of collectives over that of the link, inside a domain and across domains;
    ``exchange``: exposed time of all-to-all over its wire.
    ``hidden``: share of a pass under which data-parallel traffic can hide. ``beside``: share of tensor-parallel
    collectives that runs beside kernels. ``step_s``: what a step costs besides: data, logging, the loss scale.
    """

    matmul: Factor = 1.0
    attention: Factor = 1.0
    vector: Factor = 1.0
    experts: Factor = 1.0
    optimizer: Factor = 1.0
    launch_s: Factor = 5e-6
    meeting_s: Factor = 0.0
    wire: Factor = 1.0
    far_wire: Factor = 1.0
    exchange: Factor = 1.0
    hidden: Factor = 0.5
    beside: Factor = 0.0
    step_s: Factor = 0.0


@dataclass(frozen=True)
class Steps:
    """Seconds that a step of every plan spends; ``terms`` add up to ``step_s``, ``wire`` are whole transfers.

    Terms are those of the slowest pipeline stage, its waiting in ``bubble``. ``peak_flops_per_s`` is that of all
    chips of the plan, in the layers' data type.
    """

    terms: Mapping[str, Array]
    wire: Mapping[str, Array]
    step_s: Array
    peak_flops_per_s: Array

    def __len__(self) -> int:
        return len(self.step_s)

    def take(self, rows: NDArray[np.int64] | slice) -> "Steps":
        """The plans at those positions."""
        terms, wire = ({key: value[rows] for key, value in part.items()} for part in (self.terms, self.wire))
        return Steps(terms, wire, self.step_s[rows], self.peak_flops_per_s[rows])

    def mfu(self, train_step_flops: float) -> Array:
        """Useful FLOPs of a named convention (`arithmetic.conventions`) over what the chips could do, 0 to 1."""
        return np.asarray(train_step_flops / (self.step_s * self.peak_flops_per_s))


def predict(
    spec: ModelSpec,
    cluster: Cluster,
    batch: tuple[int, int],
    layouts: Layout,
    software: Software | None = None,
    constants: Constants | None = None,
) -> Steps:
    """Step times of all plans; ``batch`` is (sequences a step, tokens a sequence).

    Plans are taken as given: `layout.check` and `fits` say which can run.
    """
    machine = Machine(cluster, software or Software())
    return combine(work(spec, machine, batch, layouts), constants or Constants())


@dataclass(frozen=True)
class _Pass:
    """One micro-batch through all layers: the parts of a forward and a backward pass, in seconds."""

    forward: Mapping[str, Array]
    backward: Mapping[str, Array]
    forward_s: Array
    backward_s: Array
    weight_s: Array


def combine(w: Work, c: Constants) -> Steps:
    """Add up the terms of every plan under these constants."""
    one = _pass(w, c)
    again = _recomputed(w, c, one)
    layers_s = one.forward_s + one.backward_s + again
    head = w.head_s * c.matmul + w.head_vector_s * c.vector
    last_s, most_s = layers_s * w.last + head, layers_s * w.most
    ends = (last_s > most_s) | (w.stages == 1)
    share, on_head = np.where(ends, w.last, w.most), np.where(ends, head, 0.0)
    turns: Array = np.asarray(w.micro_batches * share)
    both = {name: one.forward.get(name, 0.0) + one.backward.get(name, 0.0) for name in _TERMS}
    terms: dict[str, Array] = {name: np.asarray(value * turns) for name, value in both.items()}
    data, data_wire = _data_parallel(w, c, one, share)
    handed = 2 * w.transfer_s * w.chunks * c.wire
    terms["recompute"] = again * turns
    terms["head"] = on_head * w.micro_batches
    terms["bubble"] = _bubble(w, one, layers_s + head, layers_s * share + on_head)
    terms["pp_exposed"] = handed * (1 - np.where(w.chunks > 1, c.hidden, 0.0)) * (w.micro_batches + w.stages - 1)
    terms["dp_exposed"] = data
    terms["optimizer"] = w.optimizer_s * c.optimizer
    terms["step"] = np.zeros_like(data) + c.step_s
    wire = _wires(w, c, turns) | {"pp": handed * w.micro_batches, "dp": data_wire}
    total: Array = np.sum(list(terms.values()), axis=0)
    return Steps(terms, wire, total, w.peak_flops_per_s)


_TERMS = (
    "forward_matmul", "dgrad_matmul", "wgrad_matmul", "attention", "vector", "host", "tp_exposed", "ep_exposed",
    "cp_exposed",
)  # fmt: skip


def _pass(w: Work, c: Constants) -> _Pass:
    forward, forward_s = _direction(w, c, {"forward_matmul": w.forward_s * c.matmul}, back=False)
    matmuls = {"dgrad_matmul": w.dgrad_s * c.matmul, "wgrad_matmul": w.wgrad_s * c.matmul}
    backward, backward_s = _direction(w, c, matmuls, back=True)
    weight_s = backward["wgrad_matmul"]
    return _Pass(forward, backward, forward_s, backward_s, weight_s)


def _direction(w: Work, c: Constants, matmuls: dict[str, Array], *, back: bool) -> tuple[dict[str, Array], Array]:
    """The parts of one direction, host and exposed collectives among them, and their sum."""
    parts = dict(matmuls)
    routed = (w.expert_backward_s / 2 if back else w.expert_forward_s) * c.matmul * c.experts
    parts = {name: value + routed for name, value in parts.items()}
    attention = (w.attention_backward_s if back else w.attention_s) * c.attention
    parts["attention"] = attention
    parts["vector"] = (w.vector_backward_s if back else w.vector_s) * c.vector
    kernels: Array = np.sum(list(parts.values()), axis=0)
    launched = (w.launches * c.launch_s + w.meetings * c.meeting_s) * (2.0 if back else 1.0)
    parts["host"] = longer(kernels, launched) - kernels
    parts["tp_exposed"] = w.tp_s * np.where(w.tp_far, c.far_wire, c.wire) * (1 - c.beside)
    parts["ep_exposed"] = w.ep_s * c.exchange
    ring = w.cp_s * np.where(w.cp_far, c.far_wire, c.wire) * (2.0 if back else 1.0)
    parts["cp_exposed"] = exposed(ring, attention, c.hidden)
    return parts, np.asarray(np.sum(list(parts.values()), axis=0))


def _recomputed(w: Work, c: Constants, one: _Pass) -> Array:
    """What the backward pass computes again: everything with its collectives, or attention alone."""
    full = w.recompute == RECOMPUTES.index("full")
    selective = w.recompute == RECOMPUTES.index("selective")
    return np.asarray(np.where(full, one.forward_s, 0.0) + np.where(selective, w.attention_s * c.attention, 0.0))


def _bubble(w: Work, one: _Pass, whole: Array, slowest: Array) -> Array:
    """Seconds that the slowest stage waits for the first and the last micro-batch to pass the others."""
    others = np.maximum(whole - slowest, 0.0)
    per_stage = 1.0 / w.stages
    forward, weight = one.forward_s * per_stage, one.weight_s * per_stage
    inputs = np.maximum(whole * per_stage - forward - weight, 0.0)
    zero_bubble = (w.stages - 1) * np.maximum(forward + inputs - weight, 0.0)
    dual = np.maximum(w.stages / 2 - 1, 0) * np.maximum(forward + 2 * inputs - weight, 0.0)
    kinds = [w.schedule == SCHEDULES.index(name) for name in ("interleaved", "zb-h1", "dualpipe")]
    return np.asarray(np.select(kinds, [others / w.chunks, zero_bubble, dual], others))


def _data_parallel(w: Work, c: Constants, one: _Pass, share: Array) -> tuple[Array, Array]:
    """Exposed seconds and the whole wire of parameters and gradients.

    Fully sharded layers are gathered before each pass and their gradients scattered behind it, for every micro-batch,
    under a pipeline once a step; otherwise gradients are reduced under the last micro-batch's backward pass and
    parameters gathered under the next forward pass.
    """
    slow = np.where(w.dp_far, c.far_wire, c.wire)
    gather, scatter = w.gather_s * slow, w.scatter_s * slow
    forward, backward = one.forward_s * share, one.backward_s * share
    each = exposed(gather, forward, c.hidden) + exposed(gather + scatter, backward, c.hidden)
    reduce, params = w.reduce_s * slow, w.params_s * slow
    once = exposed(reduce, backward, c.hidden) + exposed(params, forward, c.hidden)
    times = np.where(w.stages > 1, 1, w.micro_batches)
    return each * times + once, (2 * gather + scatter) * times + reduce + params


def _wires(w: Work, c: Constants, turns: Array) -> dict[str, Array]:
    """Whole transfers of a step, exposed or not."""
    passes = 2 + (w.recompute == RECOMPUTES.index("full"))
    return {
        "tp": w.tp_s * np.where(w.tp_far, c.far_wire, c.wire) * passes * turns,
        "ep": w.ep_s * c.exchange * passes * turns,
        "cp": w.cp_s * np.where(w.cp_far, c.far_wire, c.wire) * (passes + 1) * turns,
    }
