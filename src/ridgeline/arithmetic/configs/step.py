"""Step 3.7 Flash: gated heads, more heads in windowed layers, a shared expert; with vision, or its text part alone."""

from collections.abc import Callable, Mapping

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import (
    Build,
    Heads,
    LayerKey,
    Style,
    attention,
    check_divides,
    decoder,
    dense_mlp,
    routed,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.configs.vision import Tower
from ridgeline.arithmetic.spec import MLP, Attention, ModelSpec, MoE, Part, linear

_FLASH = "Step3p7FlashForCausalLM"
_TEXT = {
    "vocab_size": 128_815,
    "hidden_size": 4096,
    "intermediate_size": 11264,
    "num_hidden_layers": 45,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 1280,
    "n_routed_experts": 288,
    "share_expert_dim": 1280,
}


@reads("step3p7")
def step3p7(f: Fields) -> ModelSpec:
    """Step 3.7 Flash.

    A config without ``text_config`` is read as the text part alone where its architecture is the causal language
    model, and otherwise refused: the model class with vision ignores top-level sizes. The text part has the count of
    the whole model's decoder at its own vocabulary.
    """
    if "text_config" not in f.config and _FLASH in (f.config.get("architectures") or ()):
        return _flash(f)
    f.require("projector_bias", False)
    f.skip("understand_projector_stride", "projector_bias")
    text = f.sub("text_config").assume(**_TEXT)
    text.skip("tie_word_embeddings")
    tower = _tower(f.sub("vision_config"), text.dim("hidden_size"))
    tied = f.flag("tie_word_embeddings", default=False)
    n, mtp = text.layers(), text.count("num_nextn_predict_layers", default=0, null=0)
    style = Style()
    ffn = _ffn(text, style)
    build = Build(keys=_keys(text, n, mtp), mixer=_mixer(text), ffn=ffn, embed=tower.extra, tied=tied)
    if mtp:
        f.note("multi-token-prediction modules are declared; they are not counted")
    return decoder(text, style, build)


def _flash(f: Fields) -> ModelSpec:
    """Sizes at the top level; the first layers are dense, and the prediction modules are not counted."""
    n, mtp, style = f.layers(), f.count("num_nextn_predict_layers", default=0, null=0), Style()
    dense = f.count("first_k_dense_replace", default=3)
    keys = [(span, "moe" if layer >= dense else "dense") for layer, (span, _) in enumerate(_keys(f, n, mtp))]
    f.note("read as the text part of Step 3.7 Flash: without vision, and without its prediction modules")
    ffn = _ffn(f, style, "num_experts")
    return decoder(
        f, style, Build(keys=keys, mixer=_mixer(f), ffn=ffn, tied=f.flag("tie_word_embeddings", default=False))
    )


def _mixer(f: Fields) -> Callable[[int | None], Attention]:
    heads, kv_heads = f.dim("num_attention_heads"), f.dim("num_key_value_heads")
    bias = f.flag("attention_bias", default=False)
    local = _local_heads(f, heads)
    gate = linear("gate_proj", Part.ATTENTION, "d_model", "heads")

    def build(window: int | None) -> Attention:
        count = local if window else heads
        check_divides(f, "num_key_value_heads", kv_heads, count)
        shape = Heads(f.dim("hidden_size"), count, kv_heads, f.dim("head_dim"))
        return attention(shape, window=window, qkv_bias=bias, out_bias=bias, qk_norm="head", extra=gate)

    return build


def _local_heads(f: Fields, heads: int) -> int:
    """Heads of the windowed layers, by name or in the older ``attention_other_setting``."""
    other = f.config.get("attention_other_setting")
    if isinstance(other, Mapping):
        nested = f.sub("attention_other_setting")
        nested.skip("attention_type", "num_attention_groups", "head_dim", "true_head_dim", "num_key_value_heads")
        return f.dim("num_sliding_attention_heads", default=nested.dim("num_attention_heads", default=heads))
    f.optional("attention_other_setting")
    return f.dim("num_sliding_attention_heads", default=heads, null=heads)


def _keys(f: Fields, n: int, mtp: int) -> list[LayerKey]:
    """Windows and kinds; older lists go on for the prediction modules."""
    f.require("gating", True, "per-head")
    f.require("use_head_wise_attn_gate", True)
    f.require("moe_every_n_layer", 1)
    f.skip("swiglu_limits*", "partial_rotary_factors", "query_pre_attn_scalar", "yarn_only_types")
    f.skip("use_moe", "moe_router_activation", "need_fp32_gate", "sink", "use_moe_router_bias")
    f.skip("moe_router_scaling_factor", "mtp_*", "norm_expert_weight")
    types = f.names("layer_types", among=("full_attention", "sliding_attention")) or ["full_attention"] * n
    kinds = f.names("mlp_layer_types", among=("dense", "sparse"))
    for name, found in (("layer_types", types), ("mlp_layer_types", kinds)):
        if found is not None and len(found) not in (n, n + mtp):
            raise f.error(name, f"a list with one entry per layer ({n})", f"{len(found)} entries")
    window = f.dim("sliding_window") if "sliding_attention" in types[:n] else f.optional("sliding_window")
    spans = [window if kind == "sliding_attention" else None for kind in types[:n]]
    if kinds is None:
        kinds = ["sparse" if i in _sparse(f, n) else "dense" for i in range(n)]
    return [(span, "moe" if kind == "sparse" else "dense") for span, kind in zip(spans, kinds[:n], strict=True)]


def _sparse(f: Fields, n: int) -> set[int]:
    """Routed layers: a list or a comma-separated string, or all from the fourth on."""
    listed = f.config.get("moe_layers_enum")
    if isinstance(listed, str):
        return {int(item) for item in f.text("moe_layers_enum").split(",") if item.strip().isdigit()}
    found = f.integers("moe_layers_enum")
    return set(range(3, n)) if found is None else set(found)


def _ffn(f: Fields, style: Style, experts: str = "n_routed_experts") -> Callable[[str], MLP | MoE]:
    f.skip("n_shared_experts", "num_local_experts", "moe_num_experts", "moe_top_k")

    def build(kind: str) -> MLP | MoE:
        if kind == "dense":
            return dense_mlp(f, style)
        shared = f.dim("share_expert_dim", "share_expert_dims")
        return routed(f, experts=experts, width="moe_intermediate_size", shared_ff=shared)

    return build


def _tower(f: Fields, text_width: int) -> Tower:
    """A ViT with layer scales and learned positions, two strided convolutions, a projector."""
    f.skip("model_type", "output_dim", "heads", "num_attention_heads", "pool_type", "use_rope2d", "use_abs_posemb")
    for name in ("use_cls_token", "ues_cls_token", "use_ln_post"):
        f.require(name, False)
    f.require("use_ln_pre", True)
    f.skip("ls_init_value", "layer_scale_init_value", "intermediate_size", "hidden_act")
    width = f.dim("width", "hidden_size", default=1536)
    side = f.dim("image_size", default=728) // f.dim("patch_size", default=14)
    ratio = f.number("mlp_ratio", default=8960 / 1536)
    tower = Tower(
        v_width=width,
        v_heads_width=width,
        v_depth=f.layers("layers", "num_hidden_layers", default=47),
        v_ff=f.derived("intermediate_size", int(width * ratio)),
        v_channels=f.dim("num_channels", default=3),
        v_patch=f.dim("patch_size", default=14),
        v_patches=f.derived("patches", side * side),
        v_text=text_width,
    )
    tower.linear("patch_embed", "v_channels*v_patch*v_patch", "v_width", bias=False)
    tower.add("positions", "v_patches", "v_width", matmul=False)
    tower.norm("pre_norm")
    tower.encoder()
    for name in ("attention_scale", "mlp_scale"):
        tower.add(name, "v_width", matmul=False, copies="v_depth")
    tower.linear("downsample1", "9*v_width", "2*v_width")
    tower.linear("downsample2", "18*v_width", "4*v_width")
    tower.linear("projector", "4*v_width", "v_text", bias=False)
    return tower
