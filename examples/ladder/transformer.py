"""A decoder in plain JAX: pre-norm RMSNorm, causal attention with rotary embeddings, GELU MLP, untied head."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp

from ridgeline.arithmetic.shape import Shape

Tree = dict[str, jax.Array]
HEAD_DIM = 8


def shape(d_model: int, layers: int, vocab: int, context: int) -> Shape:
    """The same model as `ridgeline.arithmetic` counts it."""
    return Shape(
        name=f"d{d_model}", layers=layers, d_model=d_model, d_ff=4 * d_model, heads=d_model // HEAD_DIM,
        head_dim=HEAD_DIM, vocab=vocab, gated=False, context=context,
    )  # fmt: skip


def init(model: Shape, key: jax.Array) -> Tree:
    """Weights of standard deviation 1/sqrt(fan in); the projections back to the residual stream start at zero."""
    d, ff, layers = model.d_model, 4 * model.d_model, model.layers
    sides = {"embed": (model.vocab, d), "head": (d, model.vocab), "qkv": (layers, d, 3 * d), "up": (layers, d, ff)}
    keys = jax.random.split(key, len(sides))
    drawn = {
        name: jax.random.normal(k, side) * (0.5 if name == "embed" else side[-2] ** -0.5)
        for k, (name, side) in zip(keys, sides.items(), strict=True)
    }
    zeros = {"out": jnp.zeros((layers, d, d)), "down": jnp.zeros((layers, ff, d))}
    gains = {"norm1": jnp.ones((layers, d)), "norm2": jnp.ones((layers, d)), "final": jnp.ones(d)}
    return drawn | zeros | gains


def loss(weights: Mapping[str, jax.Array], text: jax.Array, skip: int = 0) -> jax.Array:
    """Mean -ln p of each next word, nats per token; ``text`` has shape (sequences, length + 1).

    ``skip`` leaves out the first predictions of each sequence.
    """
    x = weights["embed"][text[:, :-1]]
    if "before" in weights:  # the recipe "smear": the embedding of the word before, from a table of its own
        x = x.at[:, 1:].add(weights["before"][text[:, :-2]])
    for layer in range(len(weights["qkv"])):
        x = x + _attention(weights, layer, _norm(x, weights["norm1"][layer]))
        hidden = _norm(x, weights["norm2"][layer]) @ weights["up"][layer]
        x = x + jax.nn.gelu(hidden) @ weights["down"][layer]
    scores = _norm(x, weights["final"]) @ weights["head"]
    logp = jax.nn.log_softmax(scores, axis=-1)
    picked = jnp.take_along_axis(logp, text[:, 1:, None], axis=-1)[..., 0]
    return -picked[:, skip:].mean()


def _attention(weights: Mapping[str, jax.Array], layer: int, x: jax.Array) -> jax.Array:
    batch, length, d = x.shape
    q, k, v = jnp.split((x @ weights["qkv"][layer]).reshape(batch, length, -1, HEAD_DIM), 3, axis=2)
    q, k = _rotate(_unit(q)), _rotate(_unit(k))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * HEAD_DIM**0.5
    causal = jnp.tril(jnp.ones((length, length), bool))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), axis=-1), v)
    return mixed.reshape(batch, length, d) @ weights["out"][layer]


def _rotate(x: jax.Array) -> jax.Array:
    half = HEAD_DIM // 2
    angle = jnp.arange(x.shape[1])[:, None] * 8.0 ** -(jnp.arange(half) / half)
    sin, cos = jnp.sin(angle)[:, None], jnp.cos(angle)[:, None]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def _unit(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def _norm(x: jax.Array, gain: jax.Array) -> jax.Array:
    return _unit(x) * gain
