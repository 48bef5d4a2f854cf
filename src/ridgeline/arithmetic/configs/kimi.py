"""Kimi K2.5: the DeepSeek V3 decoder of Kimi K2 with the MoonViT tower."""

from ridgeline.arithmetic.configs.deepseek import deepseek_v3
from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import extend
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.configs.vision import Tower
from ridgeline.arithmetic.spec import ModelSpec


@reads("kimi_k25")
def kimi_k25(f: Fields) -> ModelSpec:
    """Kimi K2.5 and K2.7 Code."""
    f.skip("use_unified_vision_chunk", "projection_layer_norm_eps", "projection_hidden_act")
    text = f.sub("text_config")
    spec = deepseek_v3(text)
    outer = f.flag("tie_word_embeddings", default=True)
    if outer != spec.tied:
        raise f.error("tie_word_embeddings", f"the value of text_config.tie_word_embeddings ({spec.tied})")
    tower = _moonvit(f.sub("vision_config"), spec.d_model)
    if f.dim("projection_hidden_size", default=1152) != tower.dims["v_width"]:
        raise f.error("projection_hidden_size", f"the width of the tower ({tower.dims['v_width']})")
    return spec.model_copy(update={"embed": extend(spec.embed, tower.extra)})


def _moonvit(f: Fields, text_width: int) -> Tower:
    """MoonViT: a learned grid of positions, biases everywhere, patches merged before a two-layer projector."""
    f.skip("init_pos_emb_time", "pos_emb_time", "merge_type", "mm_projector_type", "pos_emb_type", "model_type")
    f.skip("projector_hidden_act", "text_hidden_size", "video_attn_type", "pos_emb_interpolation_mode")
    f.require("norm_type", "layernorm")
    width = f.dim("vt_hidden_size", "hidden_size", default=1152)
    f.dim("vt_num_attention_heads", "num_attention_heads", default=16)
    if f.dim("mm_hidden_size", default=width) != width:
        raise f.error("mm_hidden_size", f"the width of the tower ({width})")
    merge = f.integers("merge_kernel_size", length=2, lowest=1) or [2, 2]
    tower = Tower(
        v_width=width,
        v_heads_width=width,
        v_depth=f.layers("vt_num_hidden_layers", "num_hidden_layers", default=27),
        v_ff=f.dim("vt_intermediate_size", "intermediate_size", default=4304),
        v_patch=f.dim("patch_size", default=14),
        v_rows=f.dim("init_pos_emb_height", "pos_emb_height", default=64),
        v_columns=f.dim("init_pos_emb_width", "pos_emb_width", default=64),
        v_merged=f.derived("merged_size", width * merge[0] * merge[1]),
        v_text=text_width,
    )
    tower.linear("patch_embed", "3*v_patch*v_patch", "v_width")
    tower.add("positions", "v_rows", "v_columns", "v_width", matmul=False)
    tower.encoder()
    tower.norm("final_norm")
    tower.norm("projector.norm")
    tower.linear("projector.in", "v_merged", "v_merged")
    tower.linear("projector.out", "v_merged", "v_text")
    return tower
