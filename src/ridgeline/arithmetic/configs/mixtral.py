"""Mixtral and the routed decoders without shared experts that follow it."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Build, Style, decoder, routed, styled_attention, windows
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import Attention, ModelSpec, Part, Weight


@reads("mixtral")
def mixtral(f: Fields) -> ModelSpec:
    """Mixtral 8x7B and 8x22B."""
    f.assume(num_key_value_heads=8, num_local_experts=8, num_experts_per_tok=2)
    per_layer = windows(f, n := f.layers(), ["sliding_attention"] * n)
    return decoder(
        f,
        Style(),
        Build(
            keys=[(w, "moe") for w in per_layer],
            ffn=lambda _: routed(f, experts="num_local_experts", width="intermediate_size"),
        ),
    )


@reads("phimoe")
def phimoe(f: Fields) -> ModelSpec:
    """Phi 3.5 MoE: LayerNorm with bias, optional attention and head biases."""
    f.assume(num_key_value_heads=8, num_local_experts=16, num_experts_per_tok=2)
    bias = f.flag("attention_bias", default=False)
    style = Style(qkv_bias=bias, out_bias=bias, norm_bias=True, head_bias=f.flag("lm_head_bias", default=False))
    per_layer = windows(f, n := f.layers(), ["sliding_attention"] * n)
    return decoder(
        f,
        style,
        Build(
            keys=[(w, "moe") for w in per_layer],
            ffn=lambda _: routed(f, experts="num_local_experts", width="intermediate_size"),
        ),
    )


@reads("granitemoe")
def granitemoe(f: Fields) -> ModelSpec:
    """Granite 3 mixture of experts."""
    f.assume(num_local_experts=8, num_experts_per_tok=2)
    bias = f.flag("attention_bias", default=False)
    return decoder(
        f,
        Style(qkv_bias=bias, out_bias=bias),
        Build(
            keys=[(None, "moe")] * f.layers(),
            ffn=lambda _: routed(f, experts="num_local_experts", width="intermediate_size"),
        ),
    )


@reads("granitemoeshared")
def granitemoeshared(f: Fields) -> ModelSpec:
    """Granite 3 mixture of experts with an ungated shared expert of width ``shared_intermediate_size``."""
    f.assume(num_local_experts=8, num_experts_per_tok=2)
    bias = f.flag("attention_bias", default=False)
    shared = f.count("shared_intermediate_size", default=0)
    return decoder(
        f,
        Style(qkv_bias=bias, out_bias=bias),
        Build(
            keys=[(None, "moe")] * f.layers(),
            ffn=lambda _: routed(f, experts="num_local_experts", width="intermediate_size", shared_ff=shared),
        ),
    )


@reads("gpt_oss")
def gpt_oss(f: Fields) -> ModelSpec:
    """gpt-oss: biases everywhere, one attention sink a head, windowed and full layers in turn."""
    f.assume(num_key_value_heads=8, head_dim=64, num_local_experts=128, sliding_window=128, num_experts_per_tok=4)
    bias = f.flag("attention_bias", default=True)
    style = Style(qkv_bias=bias, out_bias=bias)
    n = f.layers()
    default = ["full_attention" if i % 2 else "sliding_attention" for i in range(n)]
    f.skip("swiglu_limit", "swiglu_alpha")
    f.optional("experts_per_token")  # a second name of num_experts_per_tok in the published configs
    sink = Weight(name="sinks", part=Part.ATTENTION, shape=("heads",), matmul=False)

    def mixer(window: int | None) -> Attention:
        return styled_attention(f, style, window, extra=(sink,))

    return decoder(
        f,
        style,
        Build(
            keys=[(w, "moe") for w in windows(f, n, default)],
            mixer=mixer,
            ffn=lambda _: routed(
                f, experts="num_local_experts", width="intermediate_size", bias=True, router_bias=True
            ),
        ),
    )


@reads("minimax_m2")
def minimax_m2(f: Fields) -> ModelSpec:
    """MiniMax M2: QK norm over the whole projection; router scores are corrected by a buffer, not a parameter."""
    f.assume(num_key_value_heads=8, head_dim=128, num_local_experts=256, num_experts_per_tok=8)
    f.require("use_qk_norm", True)
    f.require("qk_norm_type", "per_layer")
    f.require("attn_type_list", [1] * f.layers())
    f.require("shared_intermediate_size", 0)
    f.skip("use_routing_bias", "use_mtp", "num_mtp_modules", "mtp_transformer_layers")
    if f.config.get("num_mtp_modules") and f.config.get("use_mtp", True):
        f.note("multi-token-prediction modules are declared; they are not counted")
    return decoder(
        f,
        Style(qk_norm="full"),
        Build(
            keys=[(None, "moe")] * f.layers(),
            ffn=lambda _: routed(f, experts="num_local_experts", width="intermediate_size"),
        ),
    )
