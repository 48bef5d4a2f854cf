"""Qwen 2, 2.5 and 3, dense and mixture of experts; MiMo 7B, which is Qwen 2 with a prediction module."""

from collections.abc import Callable
from typing import Any

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Build, LayerKey, Style, decoder, dense, dense_mlp, routed, windows
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLP, ModelSpec, MoE

QWEN2 = Style(qkv_bias=True)  # the config does not say it: query, key and value have biases, the output has none


def qwen_windows(f: Fields, n: int) -> list[int | None]:
    """Windows apply only with ``use_sliding_window``, from layer ``max_window_layers`` on."""
    first = f.count("max_window_layers", default=28, null=n)
    f.assume(sliding_window=4096)
    per_layer = windows(f, n, ["sliding_attention" if i >= first else "full_attention" for i in range(n)])
    return per_layer if f.flag("use_sliding_window", default=False) else [None] * n


@reads("qwen2")
def qwen2(f: Fields) -> ModelSpec:
    """Qwen 2 and 2.5."""
    f.assume(num_key_value_heads=32)
    f.require("attention_bias", True)
    return decoder(f, QWEN2, Build(keys=dense(qwen_windows(f, f.layers()))))


@reads("mimo")
def mimo(f: Fields) -> ModelSpec:
    """MiMo 7B: Qwen 2 with a multi-token-prediction layer."""
    f.assume(num_key_value_heads=32)
    f.require("attention_bias", True)
    return decoder(
        f, QWEN2, Build(keys=dense(qwen_windows(f, f.layers())), mtp=f.count("num_nextn_predict_layers", default=0))
    )


def qwen3_style(f: Fields, *, tied: bool = False) -> Style:
    """Per-head QK norm, optional biases on all four projections."""
    bias = f.flag("attention_bias", default=False)
    return Style(tied=tied, qkv_bias=bias, out_bias=bias, qk_norm="head")


@reads("qwen3")
def qwen3(f: Fields) -> ModelSpec:
    """Qwen 3 dense."""
    f.assume(num_key_value_heads=32, head_dim=128)
    return decoder(f, qwen3_style(f), Build(keys=dense(qwen_windows(f, f.layers()))))


def qwen_sparse_keys(f: Fields, per_layer: list[int | None]) -> list[LayerKey]:
    """A layer is routed every ``decoder_sparse_step`` layers, unless ``mlp_only_layers`` lists it."""
    step, only = f.dim("decoder_sparse_step", default=1), f.integers("mlp_only_layers") or []
    kinds = ["moe" if i not in only and (i + 1) % step == 0 else "dense" for i in range(len(per_layer))]
    return list(zip(per_layer, kinds, strict=True))


def qwen_ffn(f: Fields, style: Style, **options: Any) -> Callable[[str], MLP | MoE]:
    """Dense or routed feed-forward under the Qwen field names."""

    def build(kind: str) -> MLP | MoE:
        if kind == "dense":
            return dense_mlp(f, style)
        return routed(f, experts="num_experts", width="moe_intermediate_size", **options)

    f.skip("num_experts", "num_experts_per_tok", "moe_intermediate_size", "intermediate_size")
    return build


@reads("qwen3_moe")
def qwen3_moe(f: Fields) -> ModelSpec:
    """Qwen 3 mixture of experts: no shared expert."""
    f.assume(num_key_value_heads=4, moe_intermediate_size=768, num_experts_per_tok=8, num_experts=128)
    style = qwen3_style(f)
    f.require("use_qk_norm", True)
    f.require("shared_expert_intermediate_size", 0)
    keys = qwen_sparse_keys(f, qwen_windows(f, f.layers()))
    return decoder(f, style, Build(keys=keys, ffn=qwen_ffn(f, style)))


@reads("qwen2_moe")
def qwen2_moe(f: Fields) -> ModelSpec:
    """Qwen 1.5 and 2 mixture of experts: a gated shared expert beside the routed ones."""
    f.assume(num_key_value_heads=16, moe_intermediate_size=1408, num_experts_per_tok=4, num_experts=60)
    style = Style(qkv_bias=f.flag("qkv_bias", default=True))
    if f.config.get("use_qk_norm"):
        f.note("qwen2_moe has no QK norm; use_qk_norm is ignored, as its model class does")
    f.skip("use_qk_norm")
    shared = f.count("shared_expert_intermediate_size", default=5632)
    keys = qwen_sparse_keys(f, qwen_windows(f, f.layers()))
    return decoder(f, style, Build(keys=keys, ffn=qwen_ffn(f, style, shared_ff=shared, shared_gate=True)))
