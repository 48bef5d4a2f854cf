"""DBRX, ERNIE 4.5 MoE and Hunyuan: routed decoders with field names of their own."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import (
    PRE_NORMS,
    Build,
    Extra,
    Heads,
    Style,
    assemble,
    attention,
    check_divides,
    check_top_k,
    decoder,
    dense_mlp,
    extend,
    norms,
    read_heads,
    routed,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLP, Layer, ModelSpec, MoE, Part, Weight, embedding_block, mlp_weights


@reads("dbrx")
def dbrx(f: Fields) -> ModelSpec:
    """DBRX: sizes in ``attn_config`` and ``ffn_config``; LayerNorm without bias."""
    inner, outer = f.sub("attn_config"), f.sub("ffn_config")
    outer.skip("ffn_act_fn", "moe_jitter_eps", "moe_normalize_expert_weights", "hidden_size")
    d_model, heads = f.dim("d_model", "hidden_size"), f.dim("n_heads", "num_attention_heads")
    kv_heads = inner.dim("kv_n_heads", default=1)
    check_divides(inner, "kv_n_heads", kv_heads, heads)
    if d_model % heads:
        raise f.error("n_heads", f"a divisor of d_model ({d_model})", heads)
    experts, top_k = outer.dim("moe_num_experts"), outer.dim("moe_top_k")
    check_top_k(outer, "moe_top_k", top_k, experts)
    moe = MoE(d_model=d_model, experts=experts, top_k=top_k, expert_ff=outer.dim("ffn_hidden_size"))
    mixer = attention(Heads(d_model, heads, kv_heads, d_model // heads))
    layer = Layer(mixers=(mixer,), ffns=(moe,), norms=norms(d_model, *PRE_NORMS))
    tied = f.flag("tie_word_embeddings", default=False)
    f.optional("num_key_value_heads")
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied)
    return assemble(f, embed, ((layer,), (0,) * f.layers("n_layers", "num_hidden_layers")), tied=tied)


@reads("ernie4_5_moe")
def ernie_moe(f: Fields) -> ModelSpec:
    """ERNIE 4.5 MoE: routed from one layer index to another, shared experts, a trained score correction."""
    f.assume(num_key_value_heads=4, moe_k=6, moe_num_experts=64, moe_intermediate_size=1536)
    bias = f.flag("use_bias", default=False)
    style = Style(tied=True, qkv_bias=bias, out_bias=bias, mlp_bias=bias, head_bias=bias)
    n = f.layers()
    f.require("use_rmsnorm", True)
    f.skip("moe_norm_min", "moe_capacity", "num_nextn_predict_layers", "moe_gate")
    f.skip("moe_gate_act", "moe_use_aux_free", "moe_group", "moe_layer_end_index")
    end = f.config.get("moe_layer_end_index", -1)
    last = n - 1 if end in (-1, None) else f.count("moe_layer_end_index")
    start, step = f.count("moe_layer_start_index", default=1), f.dim("moe_layer_interval", default=1)
    kinds = ["moe" if (i + 1) % step == 0 and start <= i <= last else "dense" for i in range(n)]
    correction = Weight(name="router.correction", part=Part.ROUTER, shape=("experts",), matmul=False)

    def ffn(kind: str) -> MLP | MoE:
        if kind == "dense":
            return dense_mlp(f, style)
        shared = f.count("moe_num_shared_experts", default=2) * f.dim("moe_intermediate_size")
        block = routed(f, experts="moe_num_experts", top_k="moe_k", width="moe_intermediate_size", shared_ff=shared)
        if not (bias and shared):
            return extend(block, Extra((correction,)))
        mlp = mlp_weights(Part.SHARED_EXPERTS, "shared_ff", gated=True, bias=True, prefix="shared_")
        return extend(block, Extra((correction, *(w for w in mlp if w.name.endswith(".bias")))))

    f.skip("moe_num_experts", "moe_k", "moe_num_shared_experts", "moe_intermediate_size", "intermediate_size")
    return decoder(f, style, Build(keys=[(None, kind) for kind in kinds], ffn=ffn))


def _hunyuan_style(f: Fields) -> Style:
    bias = f.flag("attention_bias", default=False)
    f.require("use_qk_norm", True)
    f.require("mlp_bias", False)
    f.require("use_cla", False)
    f.require("vit_type", None)  # with a tower it is another model
    f.skip("vit_*", "anyres_*", "video_*_id", "im_*_id", "text_*_id", "sep_id", "mask_init_id", "num_media_embeds")
    f.skip("cla_share_factor", "position_embedding_xdrope", "org_vocab_size")
    f.require("attention_head_dim", read_heads(f).head_dim)
    f.require("norm_type", "rms", "hf_rms", "rmsnorm")
    f.skip("pool_type", "class_num", "add_classification_head", "skip_cls_token", "dense_list", "enable_lm_head_fp32")
    f.skip("use_rotary_pos_emb", "group_limited_greedy")
    return Style(qkv_bias=bias, out_bias=bias, qk_norm="head")


@reads("hunyuan_v1_dense")
def hunyuan_dense(f: Fields) -> ModelSpec:
    """Hunyuan dense (0.5B to 7B): QK norm per head, always."""
    return decoder(f, _hunyuan_style(f))


@reads("hunyuan_v1_moe")
def hunyuan_moe(f: Fields) -> ModelSpec:
    """Hunyuan A13B: every layer routed, with a shared MLP as wide as a routed expert."""
    style, n = _hunyuan_style(f), f.layers()
    width = f.dim("intermediate_size")
    for name in ("moe_intermediate_size", "num_shared_expert"):
        f.require(name, *([[value] * n for value in (width, 1)] + [width, 1]))
    top_k = f.config.get("moe_topk")
    if isinstance(top_k, list):
        found = f.integers("moe_topk", length=n, lowest=1) or [1]
        if len(set(found)) > 1:
            raise f.error("moe_topk", "the same number in every layer", sorted(set(found)))
        top = found[0]
    else:
        top = f.dim("moe_topk", "num_experts_per_tok", default=1)
    experts = f.dim("num_experts", "num_local_experts", default=1)
    check_top_k(f, "moe_topk", top, experts)
    f.skip("moe_layer_num_skipped", "moe_drop_tokens", "moe_random_routing_dropped_token", "use_mixed_mlp_moe")
    block = MoE(d_model=f.dim("hidden_size"), experts=experts, top_k=top, expert_ff=width, shared_ff=width)
    return decoder(f, style, Build(keys=[(None, "moe")] * n, ffn=lambda _: block))
