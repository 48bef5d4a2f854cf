"""Bamba, Falcon-H1 and Granite 4: Mamba-2 beside or between attention layers, with ``mamba_*`` fields."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.hybrid_parts import FULL, LINEAR, layer_types, mamba2_fields
from ridgeline.arithmetic.configs.parts import (
    PRE_NORMS,
    Layers,
    assemble,
    attention,
    check_top_k,
    expand,
    norms,
    read_heads,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLP, Attention, Layer, ModelSpec, MoE, embedding_block


@reads("bamba")
def bamba(f: Fields) -> ModelSpec:
    """Bamba: ``attn_layer_indices`` names the attention layers."""
    n, mixer = f.layers(), mamba2_fields(f).mixer()
    full = f.integers("attn_layer_indices") or []
    outside = [index for index in full if index >= n]
    if outside:
        raise f.error("attn_layer_indices", f"indices below the {n} layers", outside[0])
    f.assume(num_key_value_heads=8)
    attn, mlp = _attention(f), _mlp(f)
    gains = norms(mixer.d_model, *PRE_NORMS)
    kinds = [FULL if index in full else LINEAR for index in range(n)]

    def build(kind: str) -> Layer:
        return Layer(mixers=(attn if kind == FULL else mixer,), ffns=(mlp,), norms=gains)

    return _finish(f, expand(kinds, build))


@reads("falcon_h1")
def falcon_h1(f: Fields) -> ModelSpec:
    """Falcon-H1: attention and Mamba-2 read the same input, in every layer."""
    width = f.optional("mamba_d_ssm", lowest=1, default=1024)
    mamba = mamba2_fields(
        f,
        d_inner=width,
        out_bias=f.flag("projectors_bias", default=False),
        norm=f.flag("mamba_rms_norm", default=False),
    )
    f.skip("*_multiplier", "*_multipliers", "mlp_expansion_factor", "attn_layer_indices")
    f.require("mamba_use_mlp", True)
    mixers = (_attention(f.assume(num_key_value_heads=8)), mamba.mixer())
    layer = Layer(mixers=mixers, ffns=(_mlp(f),), norms=norms(mamba.d_model, *PRE_NORMS))
    return _finish(f, ((layer,), (0,) * f.layers()))


@reads("granitemoehybrid")
def granitemoehybrid(f: Fields) -> ModelSpec:
    """Granite 4: a shared feed-forward block in every layer, beside experts when ``num_local_experts`` is not 0."""
    n, mixer = f.layers(), mamba2_fields(f).mixer()
    kinds = layer_types(f, "layer_types", "layers_block_type", length=n) or [LINEAR] * n
    f.require("normalization_function", "rmsnorm")
    f.skip("position_embedding_type")
    ffn, gains = _granite_ffn(f), norms(mixer.d_model, *PRE_NORMS)
    attn = _attention(f)

    def build(kind: str) -> Layer:
        return Layer(mixers=(attn if kind == FULL else mixer,), ffns=(ffn,), norms=gains)

    return _finish(f, expand(kinds, build))


def _granite_ffn(f: Fields) -> MLP | MoE:
    d_model, shared = f.dim("hidden_size"), f.dim("shared_intermediate_size", default=1024)
    experts, top_k = f.count("num_local_experts", default=8), f.count("num_experts_per_tok", default=2)
    width = f.dim("intermediate_size", default=11008)
    if not experts:
        return MLP(d_model=d_model, d_ff=shared)
    check_top_k(f, "num_experts_per_tok", top_k, experts)
    return MoE(d_model=d_model, experts=experts, top_k=top_k, expert_ff=width, shared_ff=shared)


def _attention(f: Fields) -> Attention:
    bias = f.flag("attention_bias", default=False)
    return attention(read_heads(f), qkv_bias=bias, out_bias=bias)


def _mlp(f: Fields) -> MLP:
    width, bias = f.dim("intermediate_size", default=14336), f.flag("mlp_bias", default=False)
    return MLP(d_model=f.dim("hidden_size"), d_ff=width, bias=bias)


def _finish(f: Fields, layers: Layers) -> ModelSpec:
    tied = f.flag("tie_word_embeddings", default=False)
    return assemble(f, embedding_block(f.dim("hidden_size"), f.dim("vocab_size"), tied=tied), layers, tied=tied)
