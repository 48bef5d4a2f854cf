"""Mistral Small 3.1 and Ministral 3 with vision: a Mistral decoder and a Pixtral tower."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.llama import ministral3, mistral
from ridgeline.arithmetic.configs.parts import extend
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.configs.vision import Tower, vit_dims
from ridgeline.arithmetic.spec import ModelSpec

_PIXTRAL = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16}
_READERS = {"mistral": mistral, "ministral3": ministral3}


@reads("mistral3")
def mistral3(f: Fields) -> ModelSpec:
    """Mistral 3. The tie flag has to be given: the class ties when it is absent, the published weights are not tied."""
    text = f.sub("text_config")
    reader = _READERS.get(text.text("model_type", default="mistral"))
    if reader is None:
        raise text.error("model_type", f"one of {', '.join(_READERS)}")
    outer = f if f.has("tie_word_embeddings") else text
    if not outer.has("tie_word_embeddings"):
        raise f.error("tie_word_embeddings", "true or false (the model class and the published weights disagree)", None)
    tied = outer.flag("tie_word_embeddings")
    if outer is text:
        f.note("the tie flag is that of text_config; the model class would tie, as the outer flag is absent")
    text.skip("tie_word_embeddings")
    spec = reader(text.assume(tie_word_embeddings=tied))
    if spec.tied != tied:
        raise text.error("tie_word_embeddings", f"the outer value ({tied})")
    return spec.model_copy(update={"embed": extend(spec.embed, _tower(f, spec.d_model).extra)})


def _tower(f: Fields, text_width: int) -> Tower:
    """Pixtral: gated MLP, RMSNorm, no biases; patches merged, then two projections."""
    v = f.sub("vision_config").assume(**_PIXTRAL, patch_size=16)
    v.skip("image_size")
    dims = vit_dims(v)
    head_dim = v.optional("head_dim", lowest=1)
    if head_dim is not None and head_dim * v.dim("num_attention_heads") != dims["v_width"]:
        raise v.error("head_dim", "hidden_size / heads")
    merge = f.dim("spatial_merge_size", default=2)
    layer = f.config.get("vision_feature_layer", -1)
    taken = len(layer) if isinstance(layer, list) else 1
    tower = Tower(**dims, v_merge=merge, v_taken=taken, v_text=text_width)
    tower.linear("patch_embed", "v_channels*v_patch*v_patch", "v_width", bias=False)
    tower.norm("pre_norm", bias=False)
    tower.encoder(gated=True, bias=False, norm_bias=False)
    bias = f.flag("multimodal_projector_bias", default=False)
    tower.norm("projector.norm", bias=False)
    tower.linear("projector.merge", "v_width*v_merge*v_merge", "v_width", bias=False)
    tower.linear("projector.fc1", "v_width*v_taken", "v_text", bias=bias)
    tower.linear("projector.fc2", "v_text", "v_text", bias=bias)
    return tower
