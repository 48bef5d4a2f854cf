"""K-EXAONE, Hunyuan 3, Trinity: grouped-query attention with QK norm, dense layers first, shared experts."""

from collections.abc import Callable

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.llama import exaone_pattern
from ridgeline.arithmetic.configs.parts import (
    PRE_NORMS,
    Build,
    Extra,
    Style,
    decoder,
    dense_mlp,
    every,
    extend,
    routed,
    styled_attention,
    windows,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLP, Attention, ModelSpec, MoE, Part, Weight, linear

_SIZES = ("num_experts", "num_experts_per_tok", "moe_intermediate_size", "num_shared_experts", "intermediate_size")


def _kinds(f: Fields, n: int, first_dense: int) -> list[str]:
    """``mlp_layer_types``, or dense for the first layers and routed after."""
    kinds = f.names("mlp_layer_types", among=("dense", "sparse"), length=n)
    kinds = kinds or ["dense" if i < first_dense else "sparse" for i in range(n)]
    return ["moe" if kind == "sparse" else "dense" for kind in kinds]


def _ffn(f: Fields, style: Style, extra: tuple[Weight, ...] = ()) -> Callable[[str], MLP | MoE]:
    f.skip(*_SIZES)

    def build(kind: str) -> MLP | MoE:
        if kind == "dense":
            return dense_mlp(f, style)
        shared = f.count("num_shared_experts") * f.dim("moe_intermediate_size")
        return extend(routed(f, experts="num_experts", width="moe_intermediate_size", shared_ff=shared), Extra(extra))

    return build


@reads("exaone_moe")
def exaone_moe(f: Fields) -> ModelSpec:
    """K-EXAONE: three windowed layers to one full; the router's score correction is a buffer."""
    f.assume(num_key_value_heads=32, sliding_window=4096, first_k_dense_replace=1, num_experts_per_tok=8)
    f.assume(moe_intermediate_size=1024, num_experts=64, num_shared_experts=1)
    n, style = f.layers(), Style(qk_norm="head")
    pattern = f.config.get("sliding_window_pattern", 4)
    f.skip("sliding_window_pattern", "is_moe_layer")
    mtp = f.count("num_nextn_predict_layers", default=0, null=0)
    per_layer = windows(f, n, exaone_pattern(f, n, pattern))
    keys = list(zip(per_layer, _kinds(f, n, f.count("first_k_dense_replace")), strict=True))
    return decoder(f, style, Build(keys=keys, ffn=_ffn(f, style), mtp=mtp))


@reads("hy_v3")
def hunyuan_v3(f: Fields) -> ModelSpec:
    """Hunyuan 3: the first layer dense."""
    f.assume(num_key_value_heads=8, head_dim=128, num_experts=192, num_experts_per_tok=8, num_shared_experts=1)
    f.assume(moe_intermediate_size=1536)
    f.dim("num_shared_experts")
    f.require("mlp_bias", False)
    f.require("qk_norm", True)
    f.skip("router_scaling_factor", "enable_moe_fp32_combine")
    bias = f.flag("attention_bias", default=False)
    style = Style(qkv_bias=bias, out_bias=bias, qk_norm="head")
    keys = [(None, kind) for kind in _kinds(f, f.layers(), f.count("first_k_dense_replace", default=1))]
    mtp = f.count("num_nextn_predict_layers", default=0, null=0)
    return decoder(f, style, Build(keys=keys, ffn=_ffn(f, style), mtp=mtp))


@reads("afmoe")
def afmoe(f: Fields) -> ModelSpec:
    """Trinity: a gate as wide as the attention output, four norms a layer, a trained bias on the router's choice."""
    f.assume(head_dim=128, sliding_window=1024, num_experts=64, num_experts_per_tok=6, num_shared_experts=2)
    f.assume(moe_intermediate_size=1408)
    f.skip(
        "route_norm", "score_func", "load_balance_coeff", "num_expert_groups", "num_limited_groups", "use_grouped_mm"
    )
    n, bias = f.layers(), f.flag("attention_bias", default=False)
    norms = (*PRE_NORMS, "pre_mlp_norm", "post_mlp_norm")
    style = Style(qkv_bias=bias, out_bias=bias, qk_norm="head", norms=norms)
    gate = linear("gate_proj", Part.ATTENTION, "d_model", "heads*head_dim")
    period = f.dim("global_attn_every_n_layers", default=4)
    keys = list(zip(windows(f, n, every(n, period)), _kinds(f, n, f.count("num_dense_layers", default=1)), strict=True))
    choice = Weight(name="router.choice_bias", part=Part.ROUTER, shape=("experts",), matmul=False)

    def mixer(window: int | None) -> Attention:
        return styled_attention(f, style, window, extra=gate)

    return decoder(f, style, Build(keys=keys, mixer=mixer, ffn=_ffn(f, style, (choice,))))
