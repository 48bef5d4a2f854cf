"""Decoders of the GPT-NeoX generation: LayerNorm with bias, plain MLP, rotary positions."""

from dataclasses import replace

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import PRE_NORMS, Build, Style, decoder, dense, windows
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import ModelSpec


@reads("gpt_neox")
def gpt_neox(f: Fields) -> ModelSpec:
    """GPT-NeoX and Pythia: biases on every projection but the head."""
    f.skip("use_parallel_residual")
    bias = f.flag("attention_bias", default=True)
    return decoder(f, Style(qkv_bias=bias, out_bias=bias, gated=False, mlp_bias=True, norm_bias=True))


@reads("phi")
def phi(f: Fields) -> ModelSpec:
    """Phi 1, 1.5 and 2: parallel block with one norm, biases everywhere, the head included."""
    norm = f.flag("qk_layernorm", default=False)
    style = Style(
        qkv_bias=True,
        out_bias=True,
        qk_norm="head" if norm else "none",
        qk_norm_bias=norm,
        gated=False,
        mlp_bias=True,
        norms=("input_norm",),
        norm_bias=True,
        head_bias=True,
    )
    return decoder(f, style)


@reads("phi3")
def phi3(f: Fields) -> ModelSpec:
    """Phi 3, 3.5 and 4: Llama's shapes with fused projections."""
    for name in ("attention_bias", "mlp_bias", "lm_head_bias"):
        f.require(name, False)
    f.skip("full_attn_mod", "interpolate_factor")
    n = f.layers()
    return decoder(f, Style(), Build(keys=dense(windows(f, n, ["sliding_attention"] * n))))


@reads("persimmon")
def persimmon(f: Fields) -> ModelSpec:
    """Persimmon: biases everywhere but the head, per-head QK LayerNorm by default."""
    norm = f.flag("qk_layernorm", default=True)
    style = Style(
        qkv_bias=True,
        out_bias=True,
        qk_norm="head" if norm else "none",
        qk_norm_bias=norm,
        gated=False,
        mlp_bias=True,
        norm_bias=True,
    )
    return decoder(f, style)


@reads("stablelm", "stablelm_epoch")
def stablelm(f: Fields) -> ModelSpec:
    """StableLM 2 and 3B: gated MLP, LayerNorm; a parallel block has one norm, QK norms are one per head."""
    f.assume(num_key_value_heads=32)
    f.require("num_heads", f.dim("num_attention_heads"))
    parallel = f.flag("use_parallel_residual", default=False)
    norms = ("input_norm",) if parallel else PRE_NORMS
    style = Style(qkv_bias=f.flag("use_qkv_bias", default=False), norms=norms, norm_bias=True)
    return decoder(f, replace(style, qk_norm="full") if f.flag("qk_layernorm", default=False) else style)


@reads("starcoder2")
def starcoder2(f: Fields) -> ModelSpec:
    """StarCoder 2: plain MLP, one flag for every bias, tied."""
    f.assume(num_key_value_heads=2)
    bias = f.flag("use_bias", default=True)
    n = f.layers()
    f.require("mlp_type", "default")
    f.require("norm_type", "layer_norm")
    style = Style(tied=True, qkv_bias=bias, out_bias=bias, gated=False, mlp_bias=bias, norm_bias=True)
    return decoder(f, style, Build(keys=dense(windows(f, n, ["sliding_attention"] * n))))


@reads("nemotron")
def nemotron(f: Fields) -> ModelSpec:
    """Nemotron 4 and Minitron: squared-ReLU MLP, LayerNorm (gain plus one) with bias."""
    bias = f.flag("attention_bias", default=False)
    mlp = f.flag("mlp_bias", default=False)
    return decoder(f, Style(qkv_bias=bias, out_bias=bias, gated=False, mlp_bias=mlp, norm_bias=True))
