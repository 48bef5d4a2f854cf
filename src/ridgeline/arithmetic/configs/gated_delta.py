"""Qwen3-Next, Qwen3.5 and Olmo Hybrid: gated delta nets with a softmax attention layer in every four."""

from collections.abc import Callable, Sequence

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.hybrid_parts import FULL, LINEAR, check_splits, layer_types
from ridgeline.arithmetic.configs.parts import (
    PRE_NORMS,
    assemble,
    attention,
    check_top_k,
    expand,
    norms,
    read_heads,
    with_mtp,
)
from ridgeline.arithmetic.configs.qwen_vl import qwen3_tower
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.mixers import GatedDeltaNet
from ridgeline.arithmetic.params import size as evaluate
from ridgeline.arithmetic.spec import MLP, Layer, ModelSpec, MoE, embedding_block

Key = tuple[str, bool]  # layer type, and whether the feed-forward block is routed


@reads("qwen3_next")
def qwen3_next(f: Fields) -> ModelSpec:
    """Qwen3-Next: experts every ``decoder_sparse_step`` layers, unless ``mlp_only_layers`` lists the layer."""
    f.assume(num_key_value_heads=2, intermediate_size=5632, num_experts=512, num_experts_per_tok=10)
    kinds = _kinds(f)
    step, only = f.dim("decoder_sparse_step", default=1), f.integers("mlp_only_layers") or []
    any_experts = f.count("num_experts") > 0
    sparse = [any_experts and index not in only and (index + 1) % step == 0 for index in range(len(kinds))]
    f.skip("intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size", "num_experts_per_tok")
    mtp = f.count("num_nextn_predict_layers", "mtp_num_hidden_layers", default=0, null=0)
    return _qwen(f, list(zip(kinds, sparse, strict=True)), tied=f.flag("tie_word_embeddings", default=False), mtp=mtp)


@reads("qwen3_5_text", "qwen3_5_moe_text")
def qwen3_5_text(f: Fields) -> ModelSpec:
    """The language model of Qwen3.5 and Qwen3.6."""
    return _qwen3_5(f, moe=f.model_type == "qwen3_5_moe_text", tied=f.flag("tie_word_embeddings", default=False))


@reads("qwen3_5", "qwen3_5_moe")
def qwen3_5(f: Fields) -> ModelSpec:
    """Qwen3.5 with its vision tower: the language model is counted, as the causal-LM class of these configs does."""
    text = f.sub("text_config")
    outer = f.flag("tie_word_embeddings", default=False)
    f.skip("language_model_only")
    if f.has("vision_config"):
        tower = qwen3_tower(f.sub("vision_config"), deepstack=()).extra
        size = sum(evaluate(weight.formula(), dict(tower.dims)) for weight in tower.weights)
        f.note(f"a vision tower of {size:,} parameters comes with it; the language model alone is counted")
    tied = text.flag("tie_word_embeddings", default=outer)
    if tied != outer:
        f.note("the head is tied as text_config says; the outer tie_word_embeddings differs")
    return _qwen3_5(text, moe=f.model_type == "qwen3_5_moe", tied=tied)


def _qwen3_5(f: Fields, *, moe: bool, tied: bool) -> ModelSpec:
    f.assume(num_key_value_heads=2 if moe else 4, intermediate_size=12288, num_experts=256, num_experts_per_tok=8)
    f.require("attn_output_gate", True)
    f.skip("output_gate_type")  # the activation of the gate
    f.require("mtp_use_dedicated_embeddings", False)
    if moe:
        f.skip("intermediate_size")  # a leftover: every layer is routed
    keys = [(kind, moe) for kind in _kinds(f)]
    return _qwen(f, keys, tied=tied, mtp=f.count("mtp_num_hidden_layers", default=0, null=0))


def _kinds(f: Fields, *, interval_default: int = 4) -> list[str]:
    n, interval = f.layers(), f.dim("full_attention_interval", default=interval_default)
    given = layer_types(f, "layer_types", length=n)
    return given or [LINEAR if (index + 1) % interval else FULL for index in range(n)]


def _qwen(f: Fields, keys: Sequence[Key], *, tied: bool, mtp: int) -> ModelSpec:
    f.assume(head_dim=256)
    bias, heads = f.flag("attention_bias", default=False), read_heads(f)
    attn = attention(heads, qkv_bias=bias, out_bias=bias, qk_norm="head", out_gate=True)
    mixer = _delta(f, heads=(16, 32), dims=(128, 128)).mixer()
    ffn = _qwen_ffn(f)

    def build(key: Key) -> Layer:
        block = attn if key[0] == FULL else mixer
        return Layer(mixers=(block,), ffns=(ffn(key[1]),), norms=norms(heads.d_model, *PRE_NORMS))

    embed = embedding_block(heads.d_model, f.dim("vocab_size"), tied=tied)
    return with_mtp(f, assemble(f, embed, expand(keys, build), tied=tied), mtp)


def _qwen_ffn(f: Fields) -> Callable[[bool], MLP | MoE]:
    """Builds the dense or the routed block; the routed one has a gated shared expert."""
    d_model = f.dim("hidden_size")

    def build(routed: bool) -> MLP | MoE:
        if not routed:
            return MLP(d_model=d_model, d_ff=f.dim("intermediate_size"))
        experts, top_k = f.dim("num_experts"), f.dim("num_experts_per_tok")
        check_top_k(f, "num_experts_per_tok", top_k, experts)
        width = f.dim("moe_intermediate_size", default=512)
        shared = f.count("shared_expert_intermediate_size", default=512)
        return MoE(d_model=d_model, experts=experts, top_k=top_k, expert_ff=width, shared_ff=shared, shared_gate=True)

    return build


def _delta(f: Fields, *, heads: tuple[int, int], dims: tuple[int, int]) -> GatedDeltaNet:
    """The gated delta net; ``heads`` and ``dims`` are the defaults for keys and values."""
    k_heads = f.dim("linear_num_key_heads", default=heads[0], null=heads[0])
    v_heads = f.dim("linear_num_value_heads", default=heads[1], null=heads[1])
    check_splits(f, "linear_num_key_heads", k_heads, v_heads, "value heads of the delta net")
    return GatedDeltaNet(
        d_model=f.dim("hidden_size"),
        k_heads=k_heads,
        v_heads=v_heads,
        k_dim=f.dim("linear_key_head_dim", default=dims[0], null=dims[0]),
        v_dim=f.dim("linear_value_head_dim", default=dims[1], null=dims[1]),
        conv_kernel=f.dim("linear_conv_kernel_dim", default=4),
    )


@reads("olmo_hybrid")
def olmo_hybrid(f: Fields) -> ModelSpec:
    """Olmo Hybrid: norms before the delta nets, after the attention and feed-forward blocks; QK norm over the width."""
    n, heads = f.layers(), read_heads(f)
    kinds = layer_types(f, "layer_types", length=n) or [FULL if index % 4 == 3 else LINEAR for index in range(n)]
    if FULL not in kinds:
        kinds[-1] = FULL
    k_heads = f.optional("linear_num_key_heads", lowest=1) or heads.heads
    k_dim = f.optional("linear_key_head_dim", lowest=1) or 3 * heads.d_model // (4 * k_heads)
    mixer = _delta(f, heads=(heads.heads, heads.heads), dims=(k_dim, 2 * k_dim)).mixer()
    f.skip("linear_a_log_*", "linear_dt_*", "linear_allow_neg_eigval", "linear_use_gate")
    bias = f.flag("attention_bias", default=False)
    attn = attention(heads, qkv_bias=bias, out_bias=bias, qk_norm="full")
    mlp = MLP(d_model=heads.d_model, d_ff=f.dim("intermediate_size", default=11008))

    def build(kind: str) -> Layer:
        block = attn if kind == FULL else mixer
        return Layer(mixers=(block,), ffns=(mlp,), norms=norms(heads.d_model, "mixer_norm", "ffn_norm"))

    tied = f.flag("tie_word_embeddings", default=False)
    return assemble(f, embedding_block(heads.d_model, f.dim("vocab_size"), tied=tied), expand(kinds, build), tied=tied)
