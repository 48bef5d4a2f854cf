"""The finalists of a search, timed again: layers split over stages by their cost, the schedule run event by event.

The search has closed forms for even stages. Here the embedding and the head are pseudo-layers of the first and the
last stage, `pipeline.split_layers` gives every stage its layers, and `pipeline.simulate` runs the schedule. What lies
outside the pipeline (data-parallel traffic, optimizer, the step's fixed part) is that of the search.
"""

from dataclasses import dataclass, replace

import numpy as np

from ridgeline.plan.layouts.search import Found, Request
from ridgeline.plan.steps.layout import RECOMPUTES, Layout
from ridgeline.plan.steps.machine import Array, Machine
from ridgeline.plan.steps.pipeline import SCHEDULES, Stages, Timeline, simulate, split_layers
from ridgeline.plan.steps.step import Steps, predict

MOST_OPS = 120_000  # events of one simulation: about a second
_OUTSIDE = ("dp_exposed", "optimizer", "step")
_HEAD_PASSES = 3  # forward, gradient of the input, gradient of the weight: as many matmuls each
_PER_LAYER = (
    "forward_matmul", "dgrad_matmul", "wgrad_matmul", "attention", "vector", "host", "tp_exposed", "ep_exposed",
    "cp_exposed",
)  # fmt: skip


@dataclass(frozen=True)
class Exact:
    """One plan after the simulation. ``split`` is how many layers each of the model's stages has, in order."""

    step_s: float
    closed_s: float
    split: tuple[int, ...]
    timeline: Timeline

    @property
    def bubble(self) -> float:
        """Share of the pipeline's time in which its devices wait."""
        return self.timeline.bubble


@dataclass(frozen=True)
class MicroBatch:
    """One micro-batch through all layers on one rank: seconds of each pass, of the head, of one hand-over.

    ``embedding_s`` is the look-up in the table, forward. The backward pass holds what is recomputed.
    """

    forward_s: float
    backward_s: float
    weight_s: float
    head_s: float
    embedding_s: float
    transfer_s: float


def exact(found: Found, row: int) -> Exact | None:
    """The simulated step of one plan of a search, None where it has too many events.

    Raises `InfeasibleError` where the schedule cannot run with its micro-batches.
    """
    request, plan = found.request, found.layouts.take(slice(row, row + 1))
    stages, chunks, micro = int(plan.pp[0]), int(plan.chunks[0]), int(plan.micro_batches(request.batch[0])[0])
    if stages * chunks * micro * 3 > MOST_OPS:
        return None
    one = micro_batch(request, plan)
    layers = request.spec.layers
    per_layer = (one.forward_s + one.backward_s + one.weight_s) / layers
    split = split_layers([per_layer] * layers, stages * chunks, one.embedding_s, one.head_s)
    schedule = SCHEDULES[int(plan.schedule[0])]
    timeline = simulate(schedule, stages, micro, _stages(one, split, layers))
    steps = found.steps
    outside_s = sum(float(steps.terms[name][row]) for name in _OUTSIDE)
    return Exact(timeline.step_s + outside_s, float(steps.step_s[row]), split, timeline)


def micro_batch(request: Request, plan: Layout) -> MicroBatch:
    """The passes of one micro-batch under a plan (one row), from the terms of the step model.

    The same plan on a single stage has no bubble, so its terms over its micro-batches are one micro-batch's; with
    full recompute the term ``recompute`` is the forward pass.
    """
    one = np.ones_like(plan.pp)
    flat = replace(plan, pp=one, chunks=one, schedule=one * SCHEDULES.index("1f1b"))
    full = replace(flat, recompute=one * RECOMPUTES.index("full"))
    pair = _predict(request, Layout.join([flat, full]))
    micro = int(plan.micro_batches(request.batch[0])[0])
    each = {name: values / micro for name, values in pair.terms.items()}
    forward_s, weight_s = float(each["recompute"][1]), float(each["wgrad_matmul"][0])
    layers_s = sum(float(each[name][0]) for name in _PER_LAYER) + float(each["recompute"][0])
    return MicroBatch(
        forward_s=forward_s,
        backward_s=max(layers_s - forward_s - weight_s, 0.0),
        weight_s=weight_s,
        head_s=float(each["head"][0]),
        embedding_s=_embedding_s(request, plan),
        transfer_s=_transfer_s(request, plan),
    )


def _predict(request: Request, plans: Layout) -> Steps:
    return predict(request.spec, request.cluster, request.batch, plans, request.software, request.constants)


def _embedding_s(request: Request, plan: Layout) -> float:
    """Rows read from the table and written to the residual stream, in bf16."""
    tokens = plan.micro_batch[0] * request.batch[1] / plan.cp[0]
    moved: Array = np.array([2 * 2.0 * tokens * request.spec.d_model])
    return float(Machine(request.cluster, request.software).stream_s(moved)[0])


def _transfer_s(request: Request, plan: Layout) -> float:
    """What one hand-over adds: the model's exposed hand-overs over their number."""
    stages, chunks, micro = int(plan.pp[0]), int(plan.chunks[0]), int(plan.micro_batches(request.batch[0])[0])
    if stages == 1:
        return 0.0
    exposed_s = float(_predict(request, plan).terms["pp_exposed"][0])
    return exposed_s / (2 * chunks * (micro + stages - 1))


def _stages(one: MicroBatch, split: tuple[int, ...], layers: int) -> Stages:
    share = np.array(split) / layers
    forward, backward, weight = share * one.forward_s, share * one.backward_s, share * one.weight_s
    forward[0] += one.embedding_s
    for part in (forward, backward, weight):
        part[-1] += one.head_s / _HEAD_PASSES
    return Stages(forward, backward, weight, one.transfer_s)
