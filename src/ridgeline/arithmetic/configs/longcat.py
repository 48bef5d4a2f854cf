"""LongCat-Flash: two latent attentions and two dense MLPs a layer around one routed block with identity experts."""

from ridgeline.arithmetic.configs.deepseek import mla
from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Extra, assemble, check_top_k, extend, norms
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLP, Layer, ModelSpec, MoE, Part, Weight, embedding_block, linear

_NORMS = ("input_norm.0", "post_attention_norm.0", "input_norm.1", "post_attention_norm.1")
_DEFAULTS = {
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "ffn_hidden_size": 12288,
    "expert_ffn_hidden_size": 2048,
    "moe_topk": 12,
    "n_routed_experts": 512,
    "zero_expert_num": 256,
}


@reads("longcat_flash")
def longcat_flash(f: Fields) -> ModelSpec:
    """LongCat-Flash. Attention sees each layer's two latent attentions in turn."""
    f.assume(**_DEFAULTS)
    f.require("zero_expert_type", "identity")
    f.require("attention_method", "MLA")
    f.skip("mla_scale_*")
    f.require("router_bias", False)
    d_model, n = f.dim("hidden_size"), f.layers("num_layers")
    f.require("num_hidden_layers", 2 * n)  # counts attention sublayers
    block = mla(f)
    mlp = MLP(d_model=d_model, d_ff=f.dim("ffn_hidden_size"))
    layer = Layer(mixers=(block, block), ffns=(mlp, mlp, _routed(f)), norms=norms(d_model, *_NORMS))
    tied = f.flag("tie_word_embeddings", default=False)
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied)
    return assemble(f, embed, ((layer,), (0,) * n), tied=tied)


def _routed(f: Fields) -> MoE:
    """The router also chooses among identity experts; the model class stores gate and up weights for those too."""
    experts, top_k, zero = f.dim("n_routed_experts"), f.dim("moe_topk"), f.count("zero_expert_num")
    check_top_k(f, "moe_topk", top_k, experts)
    block = MoE(d_model=f.dim("hidden_size"), experts=experts, top_k=top_k, expert_ff=f.dim("expert_ffn_hidden_size"))
    if not zero:
        return block
    width = block.expert_ff * block.d_model
    f.note(
        f"the model class stores unused gate and up weights for the {zero} identity experts "
        f"({2 * zero * width:,} a layer); published checkpoints have none"
    )
    unused = [
        Weight(
            name=f"{name}.identity",
            part=Part.EXPERTS,
            shape=("d_model", "expert_ff"),
            copies="zero_experts",
            active="identity_active",
            matmul=False,
        )
        for name in ("gate_proj", "up_proj")
    ]
    router = linear("router.identity", Part.ROUTER, "d_model", "zero_experts")
    return extend(block, Extra((*router, *unused), {"zero_experts": zero, "identity_active": top_k * zero // experts}))
