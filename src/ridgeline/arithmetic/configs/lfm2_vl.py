"""LFM2-VL: an LFM2 language model, a SigLIP 2 tower and a projector of merged patches."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.lfm2 import lfm2, lfm2_moe
from ridgeline.arithmetic.configs.parts import extend
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.configs.vision import Tower, vit_dims
from ridgeline.arithmetic.spec import ModelSpec, embedding_block

_TOWER = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "patch_size": 16,
    "num_patches": 256,
}


@reads("lfm2_vl", "lfm2-vl")
def lfm2_vl(f: Fields) -> ModelSpec:
    """LFM2-VL; the tie flag is the outer one."""
    text = f.sub("text_config")
    spec = (lfm2_moe if text.model_type == "lfm2_moe" else lfm2)(text)
    tower = _siglip2(f.sub("vision_config").assume(**_TOWER))
    _project(f, tower, spec.d_model)
    f.skip("do_image_splitting", "encoder_patch_size", "max_image_tokens", "min_image_tokens", "max_num_patches")
    f.skip("max_pixels_tolerance", "max_tiles", "min_tiles", "tile_size", "use_image_special_tokens", "use_thumbnail")
    f.skip("vision_feature_layer", "projector_hidden_act")
    tied = f.flag("tie_embedding", default=f.flag("tie_word_embeddings", default=True))
    embed = extend(embedding_block(spec.d_model, spec.vocab, tied=tied), tower.extra)
    return spec.model_copy(update={"embed": embed, "tied": tied, "family": f.model_type})


def _siglip2(f: Fields) -> Tower:
    """The SigLIP 2 vision transformer: a table of ``num_patches`` positions, no pooling head."""
    if f.flag("vision_use_head", default=True):
        raise f.error("vision_use_head", "false: the pooling head is not part of a language model's tower", True)
    tower = Tower(**vit_dims(f), v_patches=f.dim("num_patches"))
    tower.linear("patch_embed", "v_channels*v_patch*v_patch", "v_width")
    tower.add("positions", "v_patches", "v_width", matmul=False)
    tower.encoder()
    tower.norm("post_norm")
    return tower


def _project(f: Fields, tower: Tower, d_model: int) -> None:
    """Two projections of ``downsample_factor`` squared patches side by side, a norm before them."""
    factor, bias = f.dim("downsample_factor", default=2), f.flag("projector_bias", default=True)
    tower.dims["v_merged"] = f.derived("merged_size", tower.dims["v_width"] * factor * factor)
    tower.dims["v_projector"] = f.dim("projector_hidden_size", default=2560)
    tower.dims["v_text"] = d_model
    if f.flag("projector_use_layernorm", default=True):
        tower.norm("projector.norm", "v_merged")
    tower.linear("projector.fc1", "v_merged", "v_projector", bias=bias)
    tower.linear("projector.fc2", "v_projector", "v_text", bias=bias)
