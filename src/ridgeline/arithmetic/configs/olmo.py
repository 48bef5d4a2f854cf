"""OLMo 1, 2, 3 and OLMoE."""

from dataclasses import replace

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Build, Style, decoder, dense, every, routed, windows
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import ModelSpec

_AFTER = ("post_attention_norm", "post_feedforward_norm")


def _style(f: Fields, usual: Style) -> Style:
    bias = f.flag("attention_bias", default=False)
    return replace(usual, qkv_bias=bias, out_bias=bias)


@reads("olmo")
def olmo(f: Fields) -> ModelSpec:
    """OLMo 1: LayerNorm without gain or bias, so the norms have no parameters."""
    return decoder(f, _style(f, Style(norms=(), final_norm=False)))


@reads("olmo2")
def olmo2(f: Fields) -> ModelSpec:
    """OLMo 2: norms after the blocks, QK norm over the whole projection."""
    return decoder(f, _style(f, Style(norms=_AFTER, qk_norm="full")))


@reads("olmo3")
def olmo3(f: Fields) -> ModelSpec:
    """OLMo 3: OLMo 2 with three windowed layers to one full."""
    f.assume(sliding_window=4096)
    n = f.layers()
    style = _style(f, Style(norms=_AFTER, qk_norm="full"))
    return decoder(f, style, Build(keys=dense(windows(f, n, every(n, 4)))))


@reads("flex_olmo")
def flex_olmo(f: Fields) -> ModelSpec:
    """FlexOlmo: OLMo 2 with routed experts."""
    f.assume(num_experts=7, num_experts_per_tok=5)
    return decoder(
        f,
        _style(f, Style(norms=_AFTER, qk_norm="full")),
        Build(
            keys=[(None, "moe")] * f.layers(),
            ffn=lambda _: routed(f, experts="num_experts", width="intermediate_size"),
        ),
    )


@reads("olmoe")
def olmoe(f: Fields) -> ModelSpec:
    """OLMoE: QK norm over the whole projection, no shared expert."""
    f.assume(num_experts=64, num_experts_per_tok=8)
    return decoder(
        f,
        _style(f, Style(qk_norm="full")),
        Build(
            keys=[(None, "moe")] * f.layers(),
            ffn=lambda _: routed(f, experts="num_experts", width="intermediate_size"),
        ),
    )
