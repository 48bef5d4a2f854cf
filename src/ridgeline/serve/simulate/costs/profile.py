"""A measured kernel profile as the step table of an engine.

    seconds = layers * (operations + attention + experts + collectives) + embedding + final norm + head + host

`kernels` reads the profile, in which the operations of one layer are timed by tokens, attention on a four-dimensional
grid that includes steps which mix a prompt chunk with decodes, and experts by tokens and by how many are activated. A
table is exact at its nodes and linear between them. What a profile does not hold is explicit, in `Overheads`.

Under tensor parallelism the profile is of one chip's share and every layer adds two all-reduces. Under expert
parallelism over data-parallel attention the engines of the group step together: they are simulated as one engine, whose
decodes are spread evenly while a prompt chunk runs on one of them and the others wait; every layer adds an all-gather
and a reduce-scatter of all tokens, and each chip has its share of the experts and of the (token, expert) pairs.
Routing is taken as uniform.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ridgeline.arithmetic.collectives import Collective, sent
from ridgeline.arithmetic.serving_work import experts_hit
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.spec import MLP, MoE
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import given
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.simulate.costs.kernels import Choice, Rows, attention_grid, expert_seconds, read
from ridgeline.serve.simulate.costs.table import Curve, Floats, Grid, StepTable, zero_grid
from ridgeline.serve.simulate.engine.engine import Engine
from ridgeline.serve.steps.machine import machine

ONCE = ("embedding", "final_layernorm")
PER_LAYER = {"layernorm": 2, "qkv_proj": 1, "qk_norm": 1, "rotary_emb": 1, "o_proj": 1, "gate_up_proj": 1, "act_fn": 1,
             "down_proj": 1}  # fmt: skip
_HEAD = ("lm_head", "sampler")
_NEEDED = ("qkv_proj", "o_proj")
_MLP = ("gate_up_proj", "down_proj")
_REDUCTIONS = 2  # after attention and after the feed-forward block
_CLEAR = 0.02  # skewed batches whose longest context costs less than this more than their mean tell nothing
_NO_END = 1e6  # a ratio beyond any batch: alpha is held from the last measured one on


@dataclass(frozen=True)
class Wire:
    """What a collective between the chips of a replica takes: ``latency_s``, then the bytes sent per chip."""

    bytes_per_s: float
    latency_s: float

    def __post_init__(self) -> None:
        if not (self.bytes_per_s > 0 and 0 <= self.latency_s < float("inf")):
            raise InputError.expected("a bandwidth above 0 and a latency of at least 0", self, where="the wire")


@dataclass(frozen=True)
class Overheads:
    """What is not in a profile: host time of a step and of each of its sequences, the wire, and the weight of skew.

    Without a ``wire`` the all-reduce of the device in the catalog is used. ``skew`` weighs the profile's skew table.
    Raises `InputError` for what is negative.
    """

    host_step_s: float = 0.0
    host_sequence_s: float = 0.0
    wire: Wire | None = None
    skew: float = 0.0

    def __post_init__(self) -> None:
        for name in ("host_step_s", "host_sequence_s", "skew"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError.expected("a value of at least 0", getattr(self, name), where=f"overheads: {name}")

    @classmethod
    def fitted(cls, device: str = "") -> "Overheads":
        """Those fitted on real runs of vLLM; the wire where it was fitted for the device of that slug."""
        bandwidth = constant(f"profiled.wire.{device}.bandwidth", missing_ok=True) if device else None
        wire = None
        if bandwidth is not None:
            wire = Wire(float(bandwidth.base), float(constant(f"profiled.wire.{device}.latency").base))
        return cls(host_sequence_s=float(constant("profiled.host.sequence").base), wire=wire)


def load(
    folder: Path,
    deployment: Deployment,
    engine: Engine,
    choice: Choice | None = None,
    overheads: Overheads | None = None,
) -> StepTable:
    """The step table of a deployment from the profile in ``folder``.

    ``choice`` picks rows where a folder holds several profiles. ``engine`` is all engines of an expert-parallel group
    together. Raises `InputError` for a profile that is not whole (see `kernels.read` and `kernels.attention_grid`), an
    operation that no layer of the model has, layers that are not alike, and layouts that no profile describes.
    """
    choice = choice or Choice(tp=deployment.tp)
    overheads = overheads or Overheads.fitted(deployment.device.slug)
    group = _group(deployment)
    tables = read(folder, choice)
    tokens = _tokens(tables["dense"], engine, group)
    own = _own(tokens, engine, group)
    dense = _dense(tables["dense"], deployment, own) + _reductions(deployment, overheads, own)
    attention = _attention(tables["attention"], deployment, engine, group)
    return StepTable(
        dense=Curve(tokens, dense),
        head=_head(tables["per_sequence"], group),
        attention=attention,
        skew=_skew(tables["skew"], overheads.skew, group) if overheads.skew and "skew" in tables else zero_grid(),
        experts=_experts(tables, deployment, overheads, engine),
        host_step_s=overheads.host_step_s,
        host_sequence_s=overheads.host_sequence_s / group,
    )


def _group(deployment: Deployment) -> int:
    """Engines that step together; refuses what a profile of one chip's layer cannot describe."""
    spec = deployment.spec
    if deployment.pp > 1:
        raise InputError.expected("one pipeline stage", deployment.pp, where="pp")
    if len(set(spec.pattern)) > 1 or len(spec.kinds[0].ffns) != 1 or len(spec.kinds[0].mixers) != 1:
        raise InputError.expected("layers that are all alike", f"{len(set(spec.pattern))} kinds", where=spec.name)
    if deployment.dp_attention > 1 and (deployment.tp > 1 or deployment.ep != deployment.dp_attention):
        got = f"tp={deployment.tp}, dp-attention={deployment.dp_attention}, ep={deployment.ep}"
        raise InputError.expected(
            "data-parallel attention of single chips, expert parallel over all", got, where="layout"
        )
    if deployment.dp_attention == 1 and deployment.ep > 1:
        raise InputError.expected("ep 1 without data-parallel attention", deployment.ep, where="ep")
    return deployment.dp_attention


def _tokens(rows: Rows, engine: Engine, group: int) -> Floats:
    """The nodes of the table by tokens: those of the profile, or every number of tokens of a group's step."""
    if group > 1:
        return np.arange(1.0, engine.max_num_batched_tokens + 1)
    return np.unique(rows.keys["tokens"])


def _own(tokens: Floats, engine: Engine, group: int) -> Floats:
    """Tokens of the busiest engine: decodes are spread evenly, a prompt chunk fills one engine after another."""
    if group == 1:
        return tokens
    chunked = tokens - engine.max_num_seqs * (1 - 1 / group)
    return np.maximum(tokens / group, np.minimum(chunked, engine.max_num_batched_tokens / group))


def _dense(rows: Rows, deployment: Deployment, tokens: Floats) -> Floats:
    curves = rows.curves()
    known = {*ONCE, *PER_LAYER}
    other = sorted(set(curves) - known)
    if other:
        hint = f"known: {', '.join(sorted(known))}"
        raise InputError.expected("operations of a transformer layer", ", ".join(other), where=rows.where, hint=hint)
    mlp = isinstance(deployment.spec.kinds[0].ffns[0], MLP)
    missing = [name for name in (*_NEEDED, *(_MLP if mlp else ())) if name not in curves]
    if missing:
        raise InputError.expected(f"rows of {missing[0]}", "none", where=rows.where)
    total = np.zeros(len(tokens))
    for name, curve in curves.items():
        times = 1 if name in ONCE else PER_LAYER[name] * deployment.spec.layers
        total += times * np.array([curve(value) for value in tokens])
    return total


def _head(rows: Rows, group: int) -> Curve:
    curves = rows.curves()
    other = sorted(set(curves) ^ set(_HEAD))
    if other:
        raise InputError.expected(f"rows of {' and '.join(_HEAD)}", ", ".join(other), where=rows.where)
    at = np.unique(np.concatenate([curve.at for curve in curves.values()]))
    return Curve(group * at, np.sum([[curve(value) for value in at] for curve in curves.values()], axis=0))


def _attention(rows: Rows, deployment: Deployment, engine: Engine, group: int) -> Grid:
    """Seconds of all layers. In a group, decodes count over all engines and a longer chunk is shared by several."""
    grid = attention_grid(rows)
    chunk, past, decodes, context = grid.axes
    values = grid.values * deployment.spec.layers
    if group > 1:
        budget = engine.max_num_batched_tokens / group
        kept = chunk <= budget
        last = values[kept][-1:]
        chunk = np.append(chunk[kept], [engine.max_num_batched_tokens + 1.0])
        values = np.concatenate([values[kept], last])
    return Grid((chunk, past, decodes * group, context), values)


def _bytes(deployment: Deployment, tokens: Floats) -> Floats:
    return np.asarray(tokens * deployment.spec.d_model * float(dtype_bytes("bf16").base))


def _reductions(deployment: Deployment, overheads: Overheads, tokens: Floats) -> Floats:
    """Seconds of the all-reduces of every layer under tensor parallelism."""
    if deployment.tp == 1:
        return np.zeros(len(tokens))
    count = _REDUCTIONS * deployment.spec.layers
    return count * _collective("all_reduce", deployment, overheads, _bytes(deployment, tokens))


def _collective(kind: Collective, deployment: Deployment, overheads: Overheads, size: Floats) -> Floats:
    """Seconds of a collective over the chips of the replica: on the wire that is given, else on the device's own."""
    wire = overheads.wire
    if wire is None:
        chip = machine(deployment.device, deployment.weights)
        found = chip.all_reduce if kind == "all_reduce" else partial(chip.collective, kind)
        return np.asarray(found(size, deployment.chips).seconds)
    moved = sent(kind, given("size", size, "B"), given("chips", deployment.chips, "chip"))
    return np.asarray(wire.latency_s + moved.base / wire.bytes_per_s)


def _experts(tables: dict[str, Rows], deployment: Deployment, overheads: Overheads, engine: Engine) -> Curve:
    """Seconds of the experts of all layers, and of gathering and scattering their tokens, by tokens of the group."""
    block = deployment.spec.kinds[0].ffns[0]
    if not isinstance(block, MoE):
        return Curve(np.zeros(1), np.zeros(1))
    if "moe" not in tables:
        raise InputError.expected(
            "a table moe", "none", where="the profile", hint=f"{deployment.spec.name} has experts"
        )
    tokens = np.arange(1.0, engine.max_num_batched_tokens + 1)
    ones, group = np.ones(len(tokens)), deployment.ep
    hit = experts_hit(block.experts * ones, block.top_k * ones, tokens) / group
    seconds = expert_seconds(tables["moe"], tokens / group, hit)
    if group > 1:
        seconds = seconds + _exchange(deployment, overheads, tokens)
    return Curve(tokens, deployment.spec.layers * seconds)


def _exchange(deployment: Deployment, overheads: Overheads, tokens: Floats) -> Floats:
    """Seconds of one all-gather and one reduce-scatter of all tokens of a group."""
    size = _bytes(deployment, tokens)
    gathered = _collective("all_gather", deployment, overheads, size)
    return gathered + _collective("reduce_scatter", deployment, overheads, size)


def _skew(rows: Rows, weight: float, group: int) -> Grid:
    """``alpha``: how far towards the time at the longest context a batch of unequal contexts lies, times ``weight``.

    By (chunk, decodes, longest / mean context). Rows are pooled over contexts and pasts as the sum of what unequal
    contexts add over the sum of what the longest context everywhere would add.
    """
    n, chunk = rows.keys["n"], rows.keys["pc"]
    ratio = rows.keys["kv_big"] / np.maximum(rows.keys["kv_mean"], 1.0)
    mean, longest, skewed = (rows.seconds[name] for name in ("t_mean_us", "t_max_us", "t_skew_us"))
    clear = longest - mean > _CLEAR * mean
    chunks, counts = np.unique(chunk), np.unique(n)
    ratios = np.unique(np.round(ratio[clear], 1))
    values = np.zeros((len(chunks), len(counts), 1, len(ratios) + 2))
    for i, c in enumerate(chunks):
        for j, count in enumerate(counts):
            here = clear & (chunk == c) & (n == count)
            known = [here & (np.round(ratio, 1) == value) for value in ratios]
            at = [k for k, mask in enumerate(known) if mask.any()]
            if not at:
                values[i, j] = values[i, j - 1] if j else 0.0
                continue
            alpha = [(skewed - mean)[known[k]].sum() / (longest - mean)[known[k]].sum() for k in at]
            line = np.interp(ratios, ratios[at], np.maximum(alpha, 0.0))
            values[i, j, 0] = weight * np.concatenate([line[:1], line, line[-1:]])
    ends = np.concatenate([[1.0], np.maximum(ratios, np.nextafter(1.0, 2.0)), [_NO_END]])
    return Grid((chunks, counts * group, np.zeros(1), ends), values)
