"""A model in the dozen keys of `arithmetic.shape` and three more, where they say all of it; and back.

The inverse of `shape.model`, widened by what GPT-3's generation differs in: LayerNorm, biases, learned positions.
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from ridgeline.arithmetic.params import size
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import (
    MLP,
    Attention,
    Block,
    Layer,
    ModelSpec,
    MoE,
    Part,
    Weight,
    embedding_block,
    norm,
)
from ridgeline.core.errors import InputError


@dataclass(frozen=True)
class Style:
    """What a shape leaves at Llama's: RMSNorm, no biases but those of queries, keys and values, no position table."""

    layer_norm: bool = False
    bias: bool = False
    positions: int = 0


LLAMA = Style()


def decoder(shape: Shape, style: Style = LLAMA) -> ModelSpec:
    """The model of a shape in a style."""
    base = model(shape)
    if style == LLAMA:
        return base
    embed = embedding_block(shape.d_model, shape.vocab, tied=shape.tied, norm_bias=style.layer_norm)
    if style.positions:
        table = Weight(name="positions", part=Part.EMBEDDING, shape=("positions", "d_model"), matmul=False)
        dims = dict(embed.extra_dims) | {"positions": style.positions}
        embed = Block(d_model=shape.d_model, extra=(*embed.extra, table), extra_dims=dims)
    return base.model_copy(update={"kinds": tuple(_styled(kind, style) for kind in base.kinds), "embed": embed})


def _styled(kind: Layer, style: Style) -> Layer:
    gains = [weight for name in ("input_norm", "post_norm") for weight in norm(name, "d_model", bias=style.layer_norm)]
    norms = Block(d_model=kind.norms.d_model, extra=tuple(gains))
    biases = {"qkv_bias": True, "out_bias": True} if style.bias else {}
    mixers = tuple(Attention.model_validate(mixer.model_dump() | biases) for mixer in kind.mixers)
    ffns = tuple(
        type(ffn).model_validate(ffn.model_dump() | ({"bias": True} if style.bias else {})) for ffn in kind.ffns
    )
    return Layer.model_validate({"mixers": mixers, "ffns": ffns, "norms": norms})


def shape_of(spec: ModelSpec) -> Shape | None:
    """The keys that make a model with the same layers and weights, or None for a model that they cannot say."""
    found = described(spec)
    return found[0] if found is not None and found[1] == LLAMA else None


def described(spec: ModelSpec) -> tuple[Shape, Style] | None:
    """The keys and the style that make a model with the same layers and weights, or None."""
    return _cached(spec.model_dump_json())


@lru_cache(maxsize=64)
def _cached(key: str) -> tuple[Shape, Style] | None:
    spec = ModelSpec.model_validate_json(key)
    keys = _keys(spec)
    if keys is None:
        return None
    try:
        shape = Shape.model_validate(keys)
    except (ValidationError, InputError):
        return None
    style = _style(spec)
    return (shape, style) if _signature(decoder(shape, style)) == _signature(spec) else None


def _style(spec: ModelSpec) -> Style:
    first = spec.kinds[spec.pattern[0]]
    table = next((w for w in spec.embed.weights if w.part is Part.EMBEDDING and "vocab" not in w.shape), None)
    return Style(
        layer_norm=len(first.norms.weights) > 2,
        bias=any(getattr(mixer, "out_bias", False) for mixer in first.mixers),
        positions=size(table.shape[0], spec.embed.dims) if table is not None and len(table.shape) == 2 else 0,
    )


def _keys(spec: ModelSpec) -> dict[str, Any] | None:
    layers = [spec.kinds[index] for index in spec.pattern]
    if not layers or any(len(kind.mixers) != 1 or len(kind.ffns) != 1 for kind in layers):
        return None
    attention, ffns = layers[0].mixers[0], [kind.ffns[0] for kind in layers]
    if not isinstance(attention, Attention):
        return None
    windows = [getattr(kind.mixers[0], "window", None) for kind in layers]
    mlp = next((ffn for ffn in ffns if isinstance(ffn, MLP)), None)
    moe = next((ffn for ffn in ffns if isinstance(ffn, MoE)), None)
    keys: dict[str, Any] = {
        "name": spec.name,
        "layers": spec.layers,
        "d_model": spec.d_model,
        "d_ff": mlp.d_ff if mlp else None,
        "heads": attention.heads,
        "kv_heads": attention.kv_heads,
        "head_dim": attention.head_dim,
        "vocab": spec.vocab,
        "tied": spec.tied,
        "gated": getattr(ffns[0], "gated", True),
        "window": next((window for window in windows if window), None),
        "qk_norm": attention.qk_norm != "none",
        "qkv_bias": attention.qkv_bias and not attention.out_bias,
        "context": spec.max_context,
    }
    if keys["window"] and None in windows:
        keys["full_every"] = windows.index(None) + 1
    if moe is not None:
        keys |= {"experts": moe.experts, "top_k": moe.top_k, "expert_ff": moe.expert_ff, "shared_ff": moe.shared_ff}
        keys["dense_layers"] = next(index for index, ffn in enumerate(ffns) if isinstance(ffn, MoE))
    return keys


def _signature(spec: ModelSpec) -> tuple[Any, ...]:
    """Everything that decides what the model computes and stores, names left out."""
    kinds = [_layer(kind) for kind in spec.kinds]
    outside = (_weights(spec.embed), spec.mtp, spec.mtp_extra)
    return (spec.d_model, spec.vocab, spec.tied, [kinds[index] for index in spec.pattern], outside)


def _layer(layer: Layer) -> tuple[Any, ...]:
    blocks = [(_fields(block), _weights(block)) for block in (*layer.mixers, *layer.ffns)]
    return (blocks, _weights(layer.norms), layer.stored)


def _fields(block: Block) -> dict[str, Any]:
    return block.model_dump(exclude={"extra", "extra_dims"})


def _weights(block: Block) -> Counter[Any]:
    sizes = [(w.part, tuple(size(s, block.dims) for s in w.shape), size(w.copies, block.dims)) for w in block.weights]
    return Counter((*found, weight.matmul) for found, weight in zip(sizes, block.weights, strict=True))
