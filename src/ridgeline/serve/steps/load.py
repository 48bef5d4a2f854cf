"""A deployment under a load in numbers: the terms of its steps, and the features that a fit may look at.

The terms are those of `ridgeline.serve.steps.step` at the load's batch and context, and three that no kernel table has:
decoding that waits for the prompts of others, a constant a step, and one a layer. In a closed loop every request's
answer shares its steps with the prompts of the others at the rate at which they end: ``(sequences - 1) / answer``
prompts a step.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ridgeline.arithmetic.kv import kv_cache
from ridgeline.arithmetic.params import matmuls, params
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.spec import MLA, Attention, ModelSpec, Part
from ridgeline.core import catalog
from ridgeline.core.errors import InfeasibleError
from ridgeline.core.quantity import given
from ridgeline.serve.capacity.capacity import capacity
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.steps.published import OFFLINE, SERVER, STATIC, Row
from ridgeline.serve.steps.step import StepModel, steps

Floats = NDArray[np.float64]
# Terms of a decode step, in the order of the fitted constants.
TERMS = (
    "dense", "attention", "experts", "head", "tensor_parallel", "expert_exchange", "interference", "step", "sequence",
    "layer",
)  # fmt: skip
_TABLED = TERMS[:6]
FEATURES = (
    "group_batch", "sequences", "concurrency", "prompt", "answer", "active", "total", "width", "tp", "groups", "ep",
    "chips", "prefill_chips", "layers", "bandwidth", "peak", "link", "kv_token", "moe", "mla", "experts", "known",
    "label", "full", "pooled", "closed", "apart", "trtllm", "vllm", "sglang", "version", "static", "server", "ratio",
    *(f"log_{name}" for name in _TABLED), "log_prefill", "log_burst", "log_base", *(f"share_{name}" for name in TERMS),
)  # fmt: skip
_GRID = 2.0 ** np.arange(0, 13)
_LEAST_S = 1e-6
_STEP_S, _LAYER_S, _SEQUENCE_S = 1e-3, 1e-6, 1e-6


@dataclass(frozen=True)
class Shape:
    """What a spec is, in numbers: parameters, layers, cache a token (B, bf16, at long context), kind of attention."""

    active: float
    total: float
    layers: float
    kv_token: float
    moe: bool
    mla: bool
    experts: float


@dataclass(frozen=True)
class Loaded:
    """One row's numbers. ``terms`` seconds in the order of `TERMS`; ``prefill_s`` of one prompt alone.

    ``flops`` and ``bytes`` are of the replica and a step, with its share of prompts. ``sequences`` are those that one
    replica decodes at once, worked out where the load is a rate or as much as fits; ``full`` over how many fit.
    """

    row: Row
    terms: Floats
    prefill_s: float
    sequences: float
    full: float
    flops: float
    bytes: float

    @property
    def concurrency(self) -> float:
        """Requests of the whole system."""
        return self.row.concurrency or self.sequences * self.row.replicas


class _Same:
    """A spec as a key: equal to itself alone, since its fields cannot be hashed."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec

    def __hash__(self) -> int:
        return id(self.spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.spec is self.spec


@lru_cache(maxsize=256)
def _steps(same: _Same, device: str, sizes: tuple[int, ...], types: tuple[str, ...]) -> list[StepModel]:
    """The place of one step model; its tables take longer to make than to read."""
    return []


def step_model(deployment: Deployment) -> StepModel:
    """The step model of a deployment, made once."""
    d = deployment
    place = _steps(_Same(d.spec), d.device.slug, (d.tp, d.pp, d.dp_attention, d.ep), (d.weights, d.kv))
    if not place:
        place.append(steps(d))
    return place[0]


def shape_of(spec: ModelSpec) -> Shape:
    """The numbers of a spec, worked out once."""
    return _shape(_Same(spec))


@lru_cache(maxsize=256)
def _shape(same: _Same) -> Shape:
    spec = same.spec
    found = params(spec)
    moe = [item for item in matmuls(spec) if item.part is Part.EXPERTS]
    blocks = [b for kind in spec.kinds for b in kind.mixers if isinstance(b, Attention | MLA)]
    long = 10_000
    cache = float(kv_cache(spec, given("context", long, "token")).per_sequence.base) / long
    experts = max((getattr(f, "experts", 0) for k in spec.kinds for f in k.ffns), default=0)
    return Shape(
        float(found.active.base), float(found.total.base), float(spec.layers), cache,
        bool(moe), any(isinstance(b, MLA) for b in blocks), float(experts),
    )  # fmt: skip


def load_of(row: Row) -> Loaded:
    """The terms of a row's steps. Raises `InputError` where the catalog lacks a figure of the device."""
    model, most = step_model(row.deployment), _most(row)
    whole = model.prefill(row.prompt)
    prefill = float(whole.seconds[0])
    if row.scenario == OFFLINE and not row.concurrency:
        sequences = most
    elif row.rate and not row.concurrency:
        sequences = min(most, _in_flight(row, model, prefill))
    else:
        sequences = row.sequences
    times = model.decode(max(sequences, 1.0), row.context)
    agg = row.pools is None and row.scenario != STATIC
    parts = [float(times.terms[name][0]) for name in _TABLED]
    # a request waits for the prompts of the others, not for its own
    others = max(sequences - 1.0, 0.0) / row.answer if agg else 0.0
    beside = prefill * others
    layers = float(row.deployment.spec.layers)
    terms = np.array([*parts, beside, _STEP_S, sequences * _SEQUENCE_S, layers * _LAYER_S])
    flops, moved = (
        float(a[0]) + others * float(b[0]) for a, b in ((times.flops, whole.flops), (times.bytes, whole.bytes))
    )
    return Loaded(row, terms, prefill, sequences, sequences / most, flops, moved)


def _most(row: Row) -> float:
    """Sequences of the row's length that admission lets in, at least one; as many as are tabled at most."""
    if row.deployment.device.hbm_bytes is None:
        return float(_GRID[-1])
    laid = row.deployment
    sizes = (laid.tp, laid.pp, laid.dp_attention, laid.ep)
    found = _fits(_Same(laid.spec), laid.device.slug, sizes, (laid.weights, laid.kv), round(row.prompt + row.answer))
    return float(np.clip(found, 1.0, _GRID[-1]))


@lru_cache(maxsize=4096)
def _fits(same: _Same, device: str, sizes: tuple[int, ...], types: tuple[str, ...], tokens: int) -> float:
    """`capacity` of a deployment, worked out once; 0 where the weights leave no room."""
    tp, pp, groups, ep = sizes
    laid = Deployment(
        same.spec, catalog.device(device), tp=tp, pp=pp, dp_attention=groups, ep=ep, weights=types[0], kv=types[1]
    )
    try:
        return float(capacity(laid, tokens).sequences.value)
    except InfeasibleError:
        return 0.0


def _in_flight(row: Row, model: StepModel, prefill: float) -> float:
    """Little's law: the batch at which requests leave as fast as they come, by interpolation over batch sizes."""
    step = model.decode(_GRID, np.full(_GRID.shape, row.context)).seconds + prefill * _GRID / row.answer
    leaving = _GRID / (prefill + row.answer * step)
    if row.rate >= leaving.max():
        return float(_GRID[-1])
    return float(np.exp(np.interp(row.rate, np.maximum.accumulate(leaving), np.log(_GRID))))


def class_of(row: Row) -> str:
    """What shares fitted constants: the engine, and how requests reach it."""
    how = "apart" if row.pools else {STATIC: STATIC, SERVER: SERVER, OFFLINE: SERVER}.get(row.scenario, "together")
    return f"{row.engine or 'other'}/{how}"


def features(loads: Sequence[Loaded], base: Floats, shares: Floats) -> Floats:
    """The features of rows, in the order of `FEATURES`; ``base`` is ln(seconds) by the terms, ``shares`` theirs."""
    rows = [
        [*_plain(load), *np.log(np.maximum(load.terms[: len(_TABLED)], _LEAST_S)), math.log(load.prefill_s),
         math.log(load.prefill_s * max(load.sequences, 1.0)), at, *share]
        for load, at, share in zip(loads, base, shares, strict=True)
    ]  # fmt: skip
    return np.asarray(rows, dtype=np.float64).reshape(len(loads), len(FEATURES))


def _plain(load: Loaded) -> list[float]:
    row, laid, shape = load.row, load.row.deployment, shape_of(load.row.deployment.spec)
    device, pools = laid.device, load.row.pools
    peaks = [device.peaks[name] for name in (laid.weights, "fp8", "bf16") if name in device.peaks]
    scale = device.scale_up
    link = float(scale.bandwidth.base) if scale else 1.0
    logs = [
        load.sequences / laid.dp_attention, load.sequences, load.concurrency, row.prompt, row.answer, shape.active,
        shape.total, float(dtype_bytes(laid.weights).base), laid.tp, laid.dp_attention, laid.ep, laid.chips,
        pools.prefill if pools else laid.chips, shape.layers,
        float(device.hbm_bandwidth.base) if device.hbm_bandwidth else 1.0, float(peaks[0].base) if peaks else 1.0, link,
        shape.kv_token,
    ]  # fmt: skip
    return [
        *(math.log(max(value, _LEAST_S)) for value in logs), shape.moe, shape.mla, shape.experts,
        pools is None or pools.workers > 0, pools.label if pools else 0.0, math.log(max(load.full, _LEAST_S)),
        bool(pools and pools.total), pools is None, pools is not None,
        *(row.engine == name for name in ("trtllm", "vllm", "sglang")), _version(row.version),
        row.scenario == STATIC, row.scenario in (SERVER, OFFLINE), math.log(row.prompt / row.answer),
    ]  # fmt: skip


def _version(text: str) -> float:
    """``0.18.0`` -> 18, ``1.2.0rc6`` -> 102; -1 where there is none."""
    found = re.findall(r"\d+", text)
    return float(found[0]) * 100 + float(found[1]) if len(found) > 1 else -1.0
