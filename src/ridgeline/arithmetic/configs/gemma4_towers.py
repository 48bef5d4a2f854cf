"""The vision and audio towers of Gemma 4."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Extra
from ridgeline.arithmetic.configs.vision import Tower

_VISION = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 16,
    "num_attention_heads": 12,
    "num_key_value_heads": 12,
    "head_dim": 64,
    "patch_size": 16,
    "position_embedding_size": 10 * 1024,
}
_AUDIO = {
    "hidden_size": 1024,
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "conv_kernel_size": 5,
    "output_proj_dims": 1536,
}
_AUDIO_CHANNELS = [128, 32]


def vision_tower(f: Fields, text_width: int) -> Extra:
    """A transformer with rotary and learned two-axis positions, gated MLP, QK norm and four norms a layer."""
    f.assume(**_VISION)
    f.require("attention_bias", False)
    f.skip("pooling_kernel_size", "default_output_length", "standardize", "use_clipped_linears", "global_head_dim")
    heads, kv_heads, head_dim = f.dim("num_attention_heads"), f.dim("num_key_value_heads"), f.dim("head_dim")
    patch = f.dim("patch_size")
    tower = Tower(
        v_width=f.dim("hidden_size"),
        v_heads_width=heads * head_dim,
        v_kv_width=kv_heads * head_dim,
        v_head_dim=head_dim,
        v_depth=f.layers(),
        v_ff=f.dim("intermediate_size"),
        v_patch_values=f.derived("patch_values", 3 * patch * patch),
        v_positions=f.dim("position_embedding_size"),
        v_text=text_width,
    )
    tower.linear("patch_embed", "v_patch_values", "v_width", bias=False)
    tower.add("positions", "2", "v_positions", "v_width", matmul=False)
    for name, width in (("q_proj", "v_heads_width"), ("k_proj", "v_kv_width"), ("v_proj", "v_kv_width")):
        tower.linear(name, "v_width", width, bias=False, copies="v_depth")
    tower.linear("o_proj", "v_heads_width", "v_width", bias=False, copies="v_depth")
    for name in ("q_norm", "k_norm"):
        tower.norm(name, "v_head_dim", bias=False, copies="v_depth")
    for name in ("gate_proj", "up_proj"):
        tower.linear(name, "v_width", "v_ff", bias=False, copies="v_depth")
    tower.linear("down_proj", "v_ff", "v_width", bias=False, copies="v_depth")
    for name in ("input_norm", "post_attention_norm", "pre_feedforward_norm", "post_feedforward_norm"):
        tower.norm(name, bias=False, copies="v_depth")
    tower.linear("projector", "v_width", "v_text", bias=False)
    return tower.extra


def audio_tower(f: Fields, text_width: int) -> Extra:
    """A Conformer over mel frames: two strided convolutions, then layers of two MLPs around attention and a filter."""
    f.assume(**_AUDIO, subsampling_conv_channels=_AUDIO_CHANNELS)
    f.skip("residual_weight", "attention_*", "use_clipped_linears", "gradient_clipping")
    channels = f.integers("subsampling_conv_channels", length=2, lowest=1) or _AUDIO_CHANNELS
    width, heads = f.dim("hidden_size"), f.dim("num_attention_heads")
    if width % heads:
        raise f.error("num_attention_heads", f"a divisor of hidden_size ({width})")
    tower = Tower(
        a_width=width,
        a_head_dim=width // heads,
        a_depth=f.layers(),
        a_conv1=channels[0],
        a_conv2=channels[1],
        a_frame=channels[0] // 4 * channels[1],  # two strides of 2; the class takes as many mel bins as channels
        a_kernel=f.dim("conv_kernel_size"),
        a_out=f.dim("output_proj_dims"),
        a_text=text_width,
    )
    tower.add("audio.conv1", "9", "a_conv1")
    tower.add("audio.conv2", "9*a_conv1", "a_conv2")
    tower.norm("audio.conv1_norm", "a_conv1", bias=False)
    tower.norm("audio.conv2_norm", "a_conv2", bias=False)
    tower.linear("audio.input_proj", "a_frame", "a_width", bias=False)
    _conformer_layers(tower)
    tower.linear("audio.output_proj", "a_width", "a_out")
    tower.linear("audio.projector", "a_out", "a_text", bias=False)
    return tower.extra


def _conformer_layers(tower: Tower) -> None:
    for half in ("ff1", "ff2"):
        tower.linear(f"audio.{half}.up", "a_width", "4*a_width", bias=False, copies="a_depth")
        tower.linear(f"audio.{half}.down", "4*a_width", "a_width", bias=False, copies="a_depth")
    for name in ("q_proj", "k_proj", "v_proj", "o_proj", "relative_k_proj"):
        tower.linear(f"audio.{name}", "a_width", "a_width", bias=False, copies="a_depth")
    tower.add("audio.dim_scale", "a_head_dim", matmul=False, copies="a_depth")
    tower.linear("audio.conv_in", "a_width", "2*a_width", bias=False, copies="a_depth")
    tower.linear("audio.conv_out", "a_width", "a_width", bias=False, copies="a_depth")
    tower.add("audio.conv", "a_kernel", "a_width", copies="a_depth")
    norms = ("ff1.pre", "ff1.post", "ff2.pre", "ff2.post", "conv.pre", "conv.mid", "attn.pre", "attn.post", "out")
    for name in norms:
        tower.norm(f"audio.{name}_norm", "a_width", bias=False, copies="a_depth")
