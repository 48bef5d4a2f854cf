"""Cohere Command R and R7B: parallel block with one bias-free LayerNorm, tied."""

from dataclasses import replace

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Build, Style, decoder, dense, every, windows
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import ModelSpec


def _style(f: Fields) -> Style:
    bias = f.flag("attention_bias", default=False)
    return Style(tied=True, qkv_bias=bias, out_bias=bias, norms=("input_norm",))


@reads("cohere")
def cohere(f: Fields) -> ModelSpec:
    """Command R and R+. Its QK norms have one gain per head and channel."""
    style = _style(f)
    if f.flag("use_qk_norm", default=False):
        style = replace(style, qk_norm="full")
    f.skip("use_parallel_block")
    return decoder(f, style)


@reads("cohere2")
def cohere2(f: Fields) -> ModelSpec:
    """Command R7B and A: three windowed layers to one full."""
    f.assume(sliding_window=4096)
    n = f.layers()
    period = f.dim("sliding_window_pattern", "_sliding_window_pattern", default=4)
    f.skip("use_embedding_sharing", "use_gated_activation", "use_parallel_block", "use_parallel_embedding")
    f.skip("layer_switch", "order_of_interleaved_layers", "position_embedding_type")
    f.require("use_qk_norm", False)
    return decoder(f, _style(f), Build(keys=dense(windows(f, n, every(n, period)))))
