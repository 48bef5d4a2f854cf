"""The twin's forward pass and loss on one device: what a rank computes between its collectives.

Scopes are named after `arithmetic.flops.Term` around matmuls and after `plan.steps.traffic` around collectives; the
compiler carries them into its instructions, forward and backward.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ridgeline.plan.verify import wires
from ridgeline.plan.verify.twin import Twin
from ridgeline.plan.verify.weights import Unit, copies, units

_THETA, _EPSILON = 10_000.0, 1e-6
Tensors = dict[str, Any]


def loss(twin: Twin, vectors: Tensors, rows: Any, wanted: Any) -> Any:
    """Mean cross-entropy of one micro-batch on this rank."""
    by_name = {unit.name: unit for unit in units(twin)}
    table = by_name["embedding"]
    if twin.shape.tied:
        return _block(twin, lambda v, _: _tied(twin, by_name, v, rows, wanted))(vectors, None)
    x = _block(twin, lambda v, _: embed(twin, fetched(twin, table, v)["table"], rows))(vectors, None)
    x = _layers(twin, by_name, vectors, x)
    return _block(twin, lambda v, y: predict(twin, fetched(twin, by_name["head"], v), y, wanted))(vectors, x)


def _tied(twin: Twin, by_name: dict[str, Unit], vectors: Tensors, rows: Any, wanted: Any) -> Any:
    """One table, gathered once, read at both ends."""
    weights = fetched(twin, by_name["embedding"], vectors)
    x = _layers(twin, by_name, vectors, embed(twin, weights["table"], rows))
    return predict(twin, weights, x, wanted)


def _layers(twin: Twin, by_name: dict[str, Unit], vectors: Tensors, x: Any) -> Any:
    for index in range(twin.shape.layers):

        def layer(v: Tensors, y: Any, index: int = index) -> Any:
            return _layer(twin, by_name, v, y, index)

        x = _recomputed(twin, layer)(vectors, x)
    return x


def _recomputed(twin: Twin, layer: Callable[..., Any]) -> Callable[..., Any]:
    return jax.checkpoint(layer) if twin.plan.recompute == "full" else _block(twin, layer)


def _block(twin: Twin, block: Callable[..., Any]) -> Callable[..., Any]:
    """Fully sharded: gathered parameters are not kept for the backward pass but gathered again; all else is kept."""
    if twin.plan.zero < 3:
        return block

    def kept(primitive: Any, *_: Any, **__: Any) -> bool:
        return primitive.name not in ("all_gather", "slice", "reshape", "squeeze")

    return jax.checkpoint(block, policy=kept)


def fetched(twin: Twin, unit: Unit, vectors: Tensors) -> Tensors:
    """The tensors of a unit, gathered where they are fully sharded."""
    vector = vectors[unit.name]
    if twin.plan.zero >= 3:
        vector = wires.joined(twin.group(copies(unit)), "expert_shards" if unit.experts else "shards", vector)
    return unit.unpack(vector)


def embed(twin: Twin, table: Any, rows: Any) -> Any:
    """Rows of a table that is split by vocabulary: every rank looks up what it has, and the rest is zero."""
    axes = twin.group("tp")
    if not axes:
        return table[rows]
    low = lax.axis_index(axes) * table.shape[0]
    mine = (rows >= low) & (rows < low + table.shape[0])
    found = jnp.where(mine[..., None], table[jnp.where(mine, rows - low, 0)], 0.0)
    return _leave(twin, found, "embedding_stream")


def predict(twin: Twin, weights: Tensors, x: Any, wanted: Any) -> Any:
    """The loss over a vocabulary that is split over tp: no rank ever holds all logits."""
    axes = twin.group("tp")
    x = _enter(twin, _norm(twin, weights["norm"], x), "head_stream")
    with jax.named_scope("head"):
        logits = jnp.einsum("bsd,vd->bsv", x, weights["table"])
    highest = lax.stop_gradient(logits.max(-1))
    if axes:
        with jax.named_scope("loss_rows"):
            highest = lax.pmax(highest, axes)
    low = lax.axis_index(axes) * logits.shape[-1] if axes else 0
    mine = (wanted >= low) & (wanted < low + logits.shape[-1])
    chosen = jnp.take_along_axis(logits, jnp.where(mine, wanted - low, 0)[..., None], -1)[..., 0]
    total = wires.total(axes, "loss_rows")
    norm = total(jnp.exp(logits - highest[..., None]).sum(-1))
    return (jnp.log(norm) + highest - total(jnp.where(mine, chosen, 0.0))).mean()


def _enter(twin: Twin, x: Any, term: str) -> Any:
    """From the residual stream into what tp splits by columns."""
    axes = twin.group("tp")
    return wires.gather(axes, term, 1)(x) if twin.plan.sequence_parallel else wires.copy(axes, term)(x)


def _leave(twin: Twin, x: Any, term: str) -> Any:
    """Partial sums of what tp splits by rows, back into the residual stream."""
    axes = twin.group("tp")
    return wires.scatter(axes, term, 1)(x) if twin.plan.sequence_parallel else wires.total(axes, term)(x)


def _copied(twin: Twin, weight: Any) -> Any:
    """A weight that every rank of tp has whole: where each sees only its rows, its gradients are summed."""
    axes = twin.group("tp") if twin.plan.sequence_parallel else ()
    return wires.copy(axes, "copied_gradients")(weight)


def _norm(twin: Twin, gain: Any, x: Any) -> Any:
    return _copied(twin, gain) * x * lax.rsqrt((x * x).mean(-1, keepdims=True) + _EPSILON)


def _layer(twin: Twin, by_name: dict[str, Unit], vectors: Tensors, x: Any, index: int) -> Any:
    weights = fetched(twin, by_name[f"layer_{index}"], vectors)
    x = x + _attention(twin, weights, _norm(twin, weights["norm_1"], x))
    y = _norm(twin, weights["norm_2"], x)
    if "router" not in weights:
        return x + _mlp(twin, weights, y, "mlp")
    routed = _routed(twin, weights, fetched(twin, by_name[f"experts_{index}"], vectors), y)
    return x + routed + (_mlp(twin, weights, y, "shared_experts") if "up" in weights else 0.0)


def _attention(twin: Twin, weights: Tensors, x: Any) -> Any:
    shape, tp = twin.shape, twin.plan.tp
    x = _enter(twin, x, "layer_stream")
    kv, head_dim = (shape.kv_heads or shape.heads) // tp, shape.head_dim or 0
    queries = shape.heads // tp * head_dim
    with jax.named_scope("attention_projections"):
        joint = jnp.einsum("bsd,df->bsf", x, weights["qkv"])
    q, k, v = jnp.split(joint, [queries, queries + kv * head_dim], -1)
    q = _rotate(q.reshape(*q.shape[:2], kv, -1, head_dim))
    k, v = (part.reshape(*part.shape[:2], kv, 1, head_dim) for part in (k, v))
    core = _recomputed_core if twin.plan.recompute == "selective" else _core
    mixed = core(q, _rotate(k)[:, :, :, 0], v[:, :, :, 0])
    with jax.named_scope("attention_projections"):
        out = jnp.einsum("bsf,fd->bsd", mixed.reshape(*mixed.shape[:2], -1), weights["out"])
    return _leave(twin, out, "layer_stream")


def _rotate(x: Any) -> Any:
    """Rotary positions of ``[batch, sequence, ..., width]``."""
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] / _THETA ** (jnp.arange(half) / half)
    cos, sin = (f(angle).reshape(1, x.shape[1], 1, 1, half) for f in (jnp.cos, jnp.sin))
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def _core(q: Any, k: Any, v: Any) -> Any:
    """Every pair of the square, masked: ``[batch, sequence, kv heads, queries a head, width]``.

    One batch dimension a matmul: what has more, the compiler rewrites and forgets the scope of.
    """
    batch, seq, kv, shared, width = q.shape
    q = q.transpose(0, 2, 3, 1, 4).reshape(batch * kv, shared * seq, width)
    k, v = (part.transpose(0, 2, 1, 3).reshape(batch * kv, seq, width) for part in (k, v))
    with jax.named_scope("attention_scores"):
        scores = jnp.einsum("gsh,gth->gst", q, k)
    seen = jnp.tile(jnp.tril(jnp.ones((seq, seq), bool)), (shared, 1))
    shares = jax.nn.softmax(jnp.where(seen, scores * width**-0.5, -jnp.inf), -1)
    with jax.named_scope("attention_values"):
        mixed = jnp.einsum("gst,gth->gsh", shares, v)
    return mixed.reshape(batch, kv, shared, seq, width).transpose(0, 3, 1, 2, 4)


@jax.custom_vjp
def _recomputed_core(q: Any, k: Any, v: Any) -> Any:
    """The same, keeping its inputs alone for the backward pass."""
    return _core(q, k, v)


def _core_forward(q: Any, k: Any, v: Any) -> tuple[Any, tuple[Any, ...]]:
    return _core(q, k, v), (q, k, v)


def _core_backward(kept: tuple[Any, ...], grad: Any) -> Any:
    inputs, late = lax.optimization_barrier((kept, grad))  # not before its gradient is there
    return jax.vjp(_core, *inputs)[1](late)


_recomputed_core.defvjp(_core_forward, _core_backward)


def _mlp(twin: Twin, weights: Tensors, x: Any, term: str) -> Any:
    x = _enter(twin, x, "layer_stream")
    with jax.named_scope(term):
        up = jnp.einsum("bsd,df->bsf", x, weights["up"])
    with jax.named_scope(term):
        down = jnp.einsum("bsf,fd->bsd", _act(twin, up), weights["down"])
    return _leave(twin, down, "layer_stream")


def _act(twin: Twin, up: Any) -> Any:
    if not twin.shape.gated:
        return jax.nn.gelu(up)
    gate, value = jnp.split(up, 2, -1)
    return jax.nn.silu(gate) * value


def _routed(twin: Twin, weights: Tensors, experts: Tensors, x: Any) -> Any:
    """Tokens to the ranks of their experts and back, in as many slots an expert as balanced routing fills."""
    shape, rows = twin.shape, x.reshape(-1, x.shape[-1])
    count, top_k = shape.experts or 1, shape.top_k or 1
    with jax.named_scope("router"):
        logits = rows @ _copied(twin, weights["router"])
    share, chosen = lax.top_k(jax.nn.softmax(logits), top_k)
    slots, place = rows.shape[0] * top_k // count, _places(chosen.reshape(-1), count)
    kept = place < slots
    at = jnp.where(kept, chosen.reshape(-1) * slots + place, count * slots)
    sent = jnp.zeros((count * slots, x.shape[-1])).at[at].set(jnp.repeat(rows, top_k, 0), mode="drop")
    done = _experts(twin, experts, sent, slots)
    back = jnp.where(kept[:, None], done[jnp.where(kept, at, 0)], 0.0).reshape(*chosen.shape, -1)
    return (back * share[..., None]).sum(1).reshape(x.shape)


def _places(chosen: Any, count: int) -> Any:
    """The how-manieth token of its expert each choice is."""
    ones = jax.nn.one_hot(chosen, count, dtype=jnp.int32)
    return (jnp.cumsum(ones, 0) * ones).sum(1) - 1


def _experts(twin: Twin, experts: Tensors, sent: Any, slots: int) -> Any:
    ep, own = twin.plan.ep, experts["up"].shape[0]
    swap = wires.exchange(twin.group("ep"), "expert_tokens")
    width = sent.shape[-1]
    rows = swap(sent).reshape(ep, own, slots, width).swapaxes(0, 1).reshape(own, ep * slots, width)
    with jax.named_scope("experts"):
        up = jnp.einsum("ecd,edf->ecf", rows, experts["up"])
    with jax.named_scope("experts"):
        down = jnp.einsum("ecf,efd->ecd", _act(twin, up), experts["down"])
    return swap(down.reshape(own, ep, slots, width).swapaxes(0, 1).reshape(-1, width))
