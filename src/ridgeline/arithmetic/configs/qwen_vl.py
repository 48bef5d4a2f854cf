"""Qwen 2, 2.5 and 3 with vision: a language model of the family, a vision transformer and a patch merger."""

from collections.abc import Sequence

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Build, Style, decoder, dense
from ridgeline.arithmetic.configs.qwen import QWEN2, qwen3_style, qwen_ffn, qwen_sparse_keys, qwen_windows
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.configs.vision import Tower, vit_dims
from ridgeline.arithmetic.spec import ModelSpec

_MERGER = {"patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3}
_QWEN2_TEXT = {"num_key_value_heads": 8, "max_window_layers": 80}


def merging_tower(f: Fields, *, patch_bias: bool) -> Tower:
    """Patch embedding over space and time, and the symbols of the merger."""
    dims = vit_dims(f, depth="depth", heads="num_heads")
    dims["v_frames"] = f.dim("temporal_patch_size")
    merge = f.dim("spatial_merge_size")
    dims["v_merged"] = f.derived("merged_size", dims["v_width"] * merge * merge)
    dims["v_out"] = f.dim("out_hidden_size")
    tower = Tower(**dims)
    tower.linear("patch_embed", "v_channels*v_frames*v_patch*v_patch", "v_width", bias=patch_bias)
    return tower


def qwen3_tower(f: Fields, *, deepstack: Sequence[int] = (8, 16, 24)) -> Tower:
    """The Qwen 3 vision transformer: learned positions, a merger, and one more merger a deepstack layer.

    ``deepstack`` is what an absent ``deepstack_visual_indexes`` means.
    """
    f.assume(depth=27, hidden_size=1152, intermediate_size=4304, num_heads=16, out_hidden_size=3584)
    f.assume(**_MERGER, num_position_embeddings=2304, deepstack_visual_indexes=list(deepstack))
    f.assume(patch_size=16)
    tower = merging_tower(f, patch_bias=True)
    tower.dims["v_positions"] = f.dim("num_position_embeddings")
    tower.dims["v_stacks"] = len(f.integers("deepstack_visual_indexes") or [])
    tower.add("positions", "v_positions", "v_width", matmul=False)
    tower.encoder()
    tower.norm("merger.norm")
    tower.linear("merger.fc1", "v_merged", "v_merged")
    tower.linear("merger.fc2", "v_merged", "v_out")
    if tower.dims["v_stacks"]:
        tower.norm("deepstack.norm", "v_merged", copies="v_stacks")
        tower.linear("deepstack.fc1", "v_merged", "v_merged", copies="v_stacks")
        tower.linear("deepstack.fc2", "v_merged", "v_out", copies="v_stacks")
    return tower


@reads("qwen3_vl")
def qwen3_vl(f: Fields) -> ModelSpec:
    """Qwen 3 VL dense; the tie flag is the outer one."""
    text = f.sub("text_config").assume(num_key_value_heads=32, head_dim=128)
    text.skip("tie_word_embeddings")
    tower = qwen3_tower(f.sub("vision_config"))
    tied = f.flag("tie_word_embeddings", default=False)
    keys = dense(qwen_windows(text, text.layers()))
    return decoder(text, qwen3_style(text), Build(keys=keys, embed=tower.extra, tied=tied))


@reads("qwen3_vl_moe")
def qwen3_vl_moe(f: Fields) -> ModelSpec:
    """Qwen 3 VL mixture of experts; the tie flag is the outer one."""
    text = f.sub("text_config").assume(num_key_value_heads=16, moe_intermediate_size=1408)
    text.assume(num_experts_per_tok=4, num_experts=60)
    text.skip("tie_word_embeddings")
    tower = qwen3_tower(f.sub("vision_config"))
    tied = f.flag("tie_word_embeddings", default=False)
    style = qwen3_style(text)
    keys = qwen_sparse_keys(text, qwen_windows(text, text.layers()))
    return decoder(text, style, Build(keys=keys, ffn=qwen_ffn(text, style), embed=tower.extra, tied=tied))


@reads("qwen2_5_vl")
def qwen2_5_vl(f: Fields) -> ModelSpec:
    """Qwen 2.5 VL: RMSNorm and a gated MLP in the tower."""
    v = f.sub("vision_config").assume(**_MERGER, depth=32, hidden_size=3584, intermediate_size=3420)
    v.assume(num_heads=16, out_hidden_size=3584)
    v.skip("fullatt_block_indexes", "window_size", "tokens_per_second", "spatial_patch_size")
    tower = merging_tower(v, patch_bias=False)
    tower.encoder(gated=True, norm_bias=False)
    _merger(tower, norm_bias=False)
    return _qwen2_text(f, tower, QWEN2)


@reads("qwen2_vl")
def qwen2_vl(f: Fields) -> ModelSpec:
    """Qwen 2 VL: the tower's output width is its ``hidden_size``, its own width ``embed_dim``."""
    v = f.sub("vision_config").assume(**_MERGER, depth=32, embed_dim=1280, hidden_size=3584, num_heads=16, mlp_ratio=4)
    v.skip("spatial_patch_size")
    width, merge = v.dim("embed_dim"), v.dim("spatial_merge_size")
    v.dim("num_heads")
    tower = Tower(
        v_width=width,
        v_heads_width=width,
        v_depth=v.layers("depth"),
        v_ff=v.derived("intermediate_size", width * v.dim("mlp_ratio")),
        v_channels=v.dim("in_channels", "in_chans"),
        v_patch=v.dim("patch_size"),
        v_frames=v.dim("temporal_patch_size"),
        v_merged=v.derived("merged_size", width * merge * merge),
        v_out=v.dim("hidden_size"),
    )
    tower.linear("patch_embed", "v_channels*v_frames*v_patch*v_patch", "v_width", bias=False)
    tower.encoder()
    _merger(tower, norm_bias=True)
    return _qwen2_text(f, tower, QWEN2)


def _merger(tower: Tower, *, norm_bias: bool) -> None:
    tower.norm("merger.norm", bias=norm_bias)
    tower.linear("merger.fc1", "v_merged", "v_merged")
    tower.linear("merger.fc2", "v_merged", "v_out")


def _qwen2_text(f: Fields, tower: Tower, style: Style) -> ModelSpec:
    """The language model, nested or (as published) at the top level; either place may tie the table."""
    flat = not f.has("text_config")
    text = f if flat else f.sub("text_config")
    text.assume(**_QWEN2_TEXT)
    tied = f.flag("tie_word_embeddings", default=False)
    if not flat:
        tied = text.flag("tie_word_embeddings", default=False) or tied
    keys = dense(qwen_windows(text, text.layers()))
    return decoder(text, style, Build(keys=keys, embed=tower.extra, tied=tied))
