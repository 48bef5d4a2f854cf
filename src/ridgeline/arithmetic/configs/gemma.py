"""Gemma 1, 2 and 3: tied, wide heads, and from Gemma 2 on four norms a layer."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import PRE_NORMS, Build, Style, decoder, dense, every, windows
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.configs.vision import Tower, patches, vit_dims
from ridgeline.arithmetic.spec import ModelSpec

FOUR_NORMS = (*PRE_NORMS, "pre_feedforward_norm", "post_feedforward_norm")
_GEMMA3_TEXT = {
    "vocab_size": 262_208,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "sliding_window": 4096,
}
_SIGLIP = {"num_channels": 3, "image_size": 224, "patch_size": 16}


def _style(f: Fields, **options: object) -> Style:
    bias = f.flag("attention_bias", default=False)
    f.skip("query_pre_attn_scalar", "use_bidirectional_attention", "use_bidirectional_attn")
    return Style(tied=True, qkv_bias=bias, out_bias=bias, **options)  # type: ignore[arg-type]


@reads("gemma")
def gemma(f: Fields) -> ModelSpec:
    """Gemma 1."""
    f.assume(num_key_value_heads=16, head_dim=256)
    return decoder(f, _style(f))


@reads("gemma2")
def gemma2(f: Fields) -> ModelSpec:
    """Gemma 2: windowed and full layers in turn."""
    f.assume(num_key_value_heads=4, head_dim=256, sliding_window=4096)
    n = f.layers()
    return decoder(f, _style(f, norms=FOUR_NORMS), Build(keys=dense(windows(f, n, every(n, 2)))))


@reads("vaultgemma")
def vaultgemma(f: Fields) -> ModelSpec:
    """VaultGemma: Gemma 2 with the norms before the blocks alone."""
    f.assume(num_key_value_heads=4, head_dim=256, sliding_window=4096)
    n = f.layers()
    norms = ("input_norm", "pre_feedforward_norm")
    return decoder(f, _style(f, norms=norms), Build(keys=dense(windows(f, n, every(n, 2)))))


@reads("gemma3_text")
def gemma3_text(f: Fields) -> ModelSpec:
    """Gemma 3 without vision: per-head QK norm, five windowed layers to one full."""
    return _gemma3(f, Build())


def _gemma3(f: Fields, build: Build) -> ModelSpec:
    f.assume(num_key_value_heads=4, head_dim=256, sliding_window=4096)
    n = f.layers()
    f.skip("_sliding_window_pattern")
    period = f.dim("sliding_window_pattern", default=6, null=6)
    keys = dense(windows(f, n, every(n, period)))
    style = _style(f, norms=FOUR_NORMS, qk_norm="head")
    return decoder(f, style, Build(keys=keys, embed=build.embed, tied=build.tied))


@reads("gemma3")
def gemma3(f: Fields) -> ModelSpec:
    """Gemma 3 with its SigLIP tower; the tie flag is the outer one."""
    f.skip("mm_tokens_per_image")
    text = f.sub("text_config").assume(**_GEMMA3_TEXT)
    text.skip("tie_word_embeddings")
    tower = siglip(f.sub("vision_config").assume(**_SIGLIP))
    tower.dims["v_text"] = text.dim("hidden_size")
    tower.norm("projector_norm", bias=False)
    tower.linear("projector", "v_width", "v_text", bias=False)
    tied = f.flag("tie_word_embeddings", default=True)
    return _gemma3(text, Build(embed=tower.extra, tied=tied))


def siglip(f: Fields) -> Tower:
    """The SigLIP vision transformer without its pooling head."""
    if f.flag("vision_use_head", default=True):
        raise f.error("vision_use_head", "false: the pooling head is not part of a language model's tower", True)
    f.skip("projection_dim", "model_type")
    tower = Tower(**vit_dims(f), v_patches=patches(f))
    tower.linear("patch_embed", "v_channels*v_patch*v_patch", "v_width")
    tower.add("positions", "v_patches", "v_width", matmul=False)
    tower.encoder()
    tower.norm("post_norm")
    return tower
