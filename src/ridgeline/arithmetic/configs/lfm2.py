"""LFM2, LFM2-MoE and LFM3: gated short convolutions with a few attention layers."""

import math

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.hybrid_parts import FULL, layer_types
from ridgeline.arithmetic.configs.parts import (
    Extra,
    Layers,
    assemble,
    attention,
    check_top_k,
    expand,
    extend,
    norms,
    read_heads,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.mixers import short_conv
from ridgeline.arithmetic.spec import MLP, Attention, Layer, Mixer, ModelSpec, MoE, Part, embedding_block, linear

_CONV, _SLIDING = "conv", "sliding_attention"
_NORMS = ("operator_norm", "ffn_norm")


@reads("lfm2")
def lfm2(f: Fields) -> ModelSpec:
    """LFM2: attention in the layers of ``full_attn_idxs``, in all when neither that nor ``layer_types`` is given."""
    n = f.layers()
    full = f.integers("full_attn_idxs")
    kinds = layer_types(f, "layer_types", among=(_CONV, FULL), length=n)
    if kinds is None:
        kinds = [FULL if full is None or index in full else _CONV for index in range(n)]
    f.skip("block_use_xavier_init", "conv_use_xavier_init", "block_*_init_scale", "use_pos_enc", "theta")
    f.require("block_use_swiglu", True)
    d_model = f.dim("hidden_size", "block_dim", "conv_dim", "conv_dim_out")
    mlp, attn, conv = MLP(d_model=d_model, d_ff=_lfm2_width(f)), _attention(f), _conv(f, 3)

    def build(kind: str) -> Layer:
        return Layer(mixers=(conv if kind == _CONV else attn,), ffns=(mlp,), norms=norms(d_model, *_NORMS))

    return _finish(f, expand(kinds, build))


def _lfm2_width(f: Fields) -> int:
    """Two thirds of the stated width, times a factor, rounded up, unless ``block_auto_adjust_ff_dim`` is false."""
    width = f.dim("block_ff_dim") if f.has("block_ff_dim") else f.dim("intermediate_size", default=12288)
    f.skip("intermediate_size")
    factor, multiple = f.number("block_ffn_dim_multiplier", default=1.0), f.dim("block_multiple_of", default=256)
    if f.config.get("block_ffn_dim_multiplier", factor) is None:
        raise f.error("block_ffn_dim_multiplier", "a positive number: null rounds in some readers and not in others")
    if not f.flag("block_auto_adjust_ff_dim", default=True):
        return width
    adjusted = int(factor * int(2 * width / 3))
    return f.derived("d_ff", multiple * math.ceil(adjusted / multiple))


@reads("lfm2_moe")
def lfm2_moe(f: Fields) -> ModelSpec:
    """LFM2-MoE: ``num_dense_layers`` dense layers, then experts; the router's ``expert_bias`` is a buffer."""
    n = f.layers()
    kinds = layer_types(f, "layer_types", among=(_CONV, FULL), length=n)
    if kinds is None:
        raise f.error("layer_types", "a list with one entry per layer")
    first, attn, conv = f.count("num_dense_layers", default=2), _attention(f), _conv(f, 3)
    f.skip("use_expert_bias")
    d_model = attn.d_model
    dense = MLP(d_model=d_model, d_ff=f.dim("intermediate_size", default=7168))
    experts, top_k = f.dim("num_experts", default=32), f.dim("num_experts_per_tok", default=4)
    width = f.dim("moe_intermediate_size", default=1792)
    check_top_k(f, "num_experts_per_tok", top_k, experts)
    sparse = MoE(d_model=d_model, experts=experts, top_k=top_k, expert_ff=width)

    def build(key: tuple[str, bool]) -> Layer:
        kind, is_dense = key
        mixer, ffn = conv if kind == _CONV else attn, dense if is_dense else sparse
        return Layer(mixers=(mixer,), ffns=(ffn,), norms=norms(d_model, *_NORMS))

    return _finish(f, expand([(kind, index < first) for index, kind in enumerate(kinds)], build))


@reads("lfm3")
def lfm3(f: Fields) -> ModelSpec:
    """LFM3: windowed and full attention with a gate per head, and norms after the blocks as well."""
    n = f.layers()
    kinds = layer_types(f, "layer_types", among=(_CONV, FULL, _SLIDING), length=n)
    if kinds is None:
        period = (_SLIDING, _CONV, FULL, _CONV)
        kinds = [_CONV if index == 0 else period[index % 4] for index in range(n)]
    f.assume(num_key_value_heads=4, head_dim=128)
    bias, conv = f.flag("attention_bias", default=False), _conv(f, 7)
    gate = Extra(linear("head_gate", Part.ATTENTION, "d_model", "heads"))
    attn = attention(read_heads(f), qkv_bias=bias, out_bias=bias, qk_norm="head")
    attn = extend(attn, gate if f.flag("use_attention_gate", default=True) else None)
    sandwich = f.flag("use_sandwich_norm", default=True)
    names = (*_NORMS, "post_operator_norm", "post_ffn_norm") if sandwich else _NORMS
    window = f.optional("sliding_window", lowest=1, default=256)
    mlp = MLP(d_model=attn.d_model, d_ff=f.dim("intermediate_size", default=7680))
    mixers = {_CONV: conv, FULL: attn, _SLIDING: attn.model_copy(update={"window": window})}

    def build(kind: str) -> Layer:
        return Layer(mixers=(mixers[kind],), ffns=(mlp,), norms=norms(attn.d_model, *names))

    return _finish(f, expand(kinds, build))


def _attention(f: Fields) -> Attention:
    f.dim("num_attention_heads", "num_heads")
    return attention(read_heads(f.assume(num_key_value_heads=8)), qk_norm="head")


def _conv(f: Fields, kernel_default: int) -> Mixer:
    kernel = f.dim("conv_L_cache", default=kernel_default)
    return short_conv(f.dim("hidden_size"), kernel, bias=f.flag("conv_bias", default=False))


def _finish(f: Fields, layers: Layers) -> ModelSpec:
    tied = f.flag("tie_embedding", default=f.flag("tie_word_embeddings", default=True))
    return assemble(f, embedding_block(f.dim("hidden_size"), f.dim("vocab_size"), tied=tied), layers, tied=tied)
