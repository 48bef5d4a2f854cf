"""Ling 1 and 2 (Bailing MoE): grouped-query attention, dense layers first, shared experts."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Build, Style, decoder, dense_mlp, routed
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLP, ModelSpec, MoE


@reads("bailing_moe", "bailing_moe_v2")
def bailing_moe(f: Fields) -> ModelSpec:
    """Ling Lite, Plus, Mini 2.0 and Flash 2.0. The expert bias of version 2 is a buffer, as in DeepSeek-V3."""
    f.require("norm_head", False)
    f.require("multi_gate", False)
    f.skip("norm_softmax", "score_function", "moe_router_enable_expert_bias", "use_rmsnorm", "output_dropout")
    f.skip("mtp_loss_scaling_factor")
    bias, qk_norm = f.flag("use_bias", default=False), f.flag("use_qk_norm", default=False)
    qkv_bias = f.flag("use_qkv_bias", default=False)
    style = Style(qkv_bias=qkv_bias, out_bias=bias, qk_norm="head" if qk_norm else "none")
    width = f.dim("moe_intermediate_size")
    shared_width = f.dim("moe_shared_expert_intermediate_size", default=width, null=width)
    shared = f.count("num_shared_experts", default=0, null=0) * shared_width
    first_dense = f.count("first_k_dense_replace", default=0)
    f.dim("intermediate_size")

    def ffn(kind: str) -> MLP | MoE:
        if kind == "dense":
            return dense_mlp(f, style)
        return routed(f, experts="num_experts", width="moe_intermediate_size", shared_ff=shared)

    keys = [(None, "dense" if i < first_dense else "moe") for i in range(f.layers())]
    mtp = f.count("num_nextn_predict_layers", default=0, null=0)
    return decoder(f, style, Build(keys=keys, ffn=ffn, mtp=mtp))
