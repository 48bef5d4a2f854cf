"""Kimi K3: the layers of Kimi Linear with full output gates, and experts in a latent width; with a vision tower."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.hybrid_parts import FULL, LINEAR
from ridgeline.arithmetic.configs.kimi_linear import Pieces, build, ffn_kinds, ffns, latent_attention, mixer_kinds
from ridgeline.arithmetic.configs.parts import Extra, extend
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.mixers import KimiDelta
from ridgeline.arithmetic.spec import MLA, MLP, Mixer, ModelSpec, MoE, Part, linear, norm


@reads("kimi_k3")
def kimi_k3(f: Fields) -> ModelSpec:
    """Kimi K3, the language model alone.

    The cache and the matmuls of its layers follow from the config. No published count of parameters is known to
    compare with: the output gates are taken as full projections, the decay as in Kimi Linear, and what is left out
    (vision tower, residual mixing) is noted.
    """
    f.sub("vision_config", required=False).skip("*")
    f.skip("image_placeholder", "media_placeholder_token_id", "tie_word_embeddings", "ignore_index")
    text = f.sub("text_config")
    n, inner = text.layers(), text.sub("linear_attn_config")
    inner.require("use_full_rank_gate", True)
    inner.skip("gate_lower_bound")
    text.skip("activation_situ_*", "topk_method", "routed_scaling_factor")
    text.require("num_nextn_predict_layers", 0)
    delta = KimiDelta(
        d_model=text.dim("hidden_size"),
        heads=inner.dim("num_heads"),
        head_dim=inner.dim("head_dim"),
        conv_kernel=inner.dim("short_conv_kernel_size"),
        full_gate=True,
    )
    mixers: dict[str, MLA | Mixer] = {LINEAR: delta.mixer(), FULL: _gated(text)}
    kinds = zip(mixer_kinds(text, inner, n), ffn_kinds(text, n, first=1), strict=True)
    if text.optional("attn_res_block_size"):
        f.note("the weights that mix residuals over blocks of layers are not counted: their shapes are not known here")
    f.note("language model alone: the vision tower is not counted; no published count to compare with")
    return build(text, Pieces(mixers, _latent(text), list(kinds)))


def _gated(f: Fields) -> MLA:
    """Latent attention, with an output gate as wide as its values where the config has one."""
    plain = latent_attention(f)
    if not f.flag("mla_use_output_gate", default=False):
        return plain
    return extend(plain, Extra(linear("output_gate", Part.ATTENTION, "d_model", "heads*v_head_dim")))


def _latent(f: Fields) -> dict[str, MLP | MoE]:
    """The feed-forward blocks; routed experts read and write ``routed_expert_hidden_size``."""
    found = ffns(f)
    width = f.optional("routed_expert_hidden_size", lowest=1)
    normed = f.flag("latent_moe_use_norm", default=False)
    if width is None:
        return found
    for name, block in found.items():
        if isinstance(block, MoE):
            narrow = block.model_copy(update={"latent": width})
            found[name] = extend(narrow, Extra(norm("latent_norm", "latent"))) if normed else narrow
    return found
