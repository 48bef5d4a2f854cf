"""GLM-4 dense (GLM 4, Z1) and the GLM-4.5 mixture of experts; dots.llm1, which shares its layout."""

from ridgeline.arithmetic.configs.deepseek import deepseek_ffn, deepseek_keys
from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import PRE_NORMS, Build, Style, decoder
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import ModelSpec


@reads("glm", "glm4")
def glm(f: Fields) -> ModelSpec:
    """GLM-4 9B and 32B: query, key and value biases by default; GLM-4-0414 (glm4) has four norms a layer."""
    f.assume(num_key_value_heads=2, head_dim=128)
    after = ("post_self_attention_norm", "post_mlp_norm") if f.model_type == "glm4" else ()
    return decoder(f, Style(qkv_bias=f.flag("attention_bias", default=True), norms=(*PRE_NORMS, *after)))


@reads("glm4_moe")
def glm4_moe(f: Fields) -> ModelSpec:
    """GLM-4.5 and 4.6."""
    f.assume(num_key_value_heads=8, n_routed_experts=128, num_experts_per_tok=8, n_shared_experts=1)
    f.assume(moe_intermediate_size=1408, first_k_dense_replace=1)
    qk_norm = f.flag("use_qk_norm", default=False)
    style = Style(qkv_bias=f.flag("attention_bias", default=False), qk_norm="head" if qk_norm else "none")
    mtp = f.count("num_nextn_predict_layers", "num_mtp_layers", default=0)
    keys = deepseek_keys(f, f.layers())
    return decoder(f, style, Build(keys=keys, ffn=deepseek_ffn(f, style), mtp=mtp))


@reads("solar_open")
def solar_open(f: Fields) -> ModelSpec:
    """Solar Open 100B: every layer routed, with a shared expert."""
    f.assume(num_key_value_heads=8, head_dim=128, moe_intermediate_size=1280)
    f.assume(n_routed_experts=128, num_experts_per_tok=8, n_shared_experts=1)
    f.require("use_qk_norm", False)
    f.require("first_k_dense_replace", 0)
    style = Style(qkv_bias=f.flag("attention_bias", default=False))
    return decoder(f, style, Build(keys=[(None, "moe")] * f.layers(), ffn=deepseek_ffn(f, style)))


@reads("deepseek")
def deepseek_moe(f: Fields) -> ModelSpec:
    """DeepSeekMoE 16B: the layout of V2 with ordinary attention."""
    bias = f.flag("attention_bias", default=False)
    style = Style(qkv_bias=bias, out_bias=bias)
    return decoder(f, style, Build(keys=deepseek_keys(f, f.layers()), ffn=deepseek_ffn(f, style)))


@reads("dots1")
def dots1(f: Fields) -> ModelSpec:
    """dots.llm1: per-head QK norm, first layer dense, shared experts."""
    f.assume(num_key_value_heads=32, first_k_dense_replace=0, moe_intermediate_size=1408)
    bias = f.flag("attention_bias", default=False)
    style = Style(qkv_bias=bias, out_bias=bias, qk_norm="head")
    n = f.layers()
    f.skip("use_sliding_window", "max_window_layers")
    keys = deepseek_keys(f, n)
    return decoder(f, style, Build(keys=keys, ffn=deepseek_ffn(f, style)))
