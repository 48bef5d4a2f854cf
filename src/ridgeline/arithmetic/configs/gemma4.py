"""Gemma 3n (text) and Gemma 4: per-layer inputs, shared keys and values, wide global heads, dense beside routed."""

from dataclasses import dataclass

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.gemma import FOUR_NORMS
from ridgeline.arithmetic.configs.gemma4_towers import audio_tower, vision_tower
from ridgeline.arithmetic.configs.parts import (
    Extra,
    Heads,
    assemble,
    attention,
    check_divides,
    every,
    expand,
    extend,
    norms,
    routed,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import (
    MLP,
    Layer,
    ModelSpec,
    MoE,
    Part,
    Weight,
    embedding_block,
    linear,
    norm,
)

_TEXT = {
    "vocab_size": 262_144,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 30,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "sliding_window": 512,
    "vocab_size_per_layer_input": 262_144,
    "hidden_size_per_layer_input": 256,
}


@dataclass(frozen=True)
class LayerShape:
    """What may differ from layer to layer."""

    window: int | None
    head_dim: int
    kv_heads: int
    shared: bool  # keys and values come from an earlier layer
    joint: bool  # one projection serves keys and values
    d_ff: int


@reads("gemma4")
def gemma4(f: Fields) -> ModelSpec:
    """Gemma 4 with its vision tower and, in the small models, its audio tower; the tie flag is the outer one."""
    f.skip("vision_soft_tokens_per_image", "audio_*token*", "audio_seq_length")
    text = f.sub("text_config").assume(**_TEXT)
    text.skip("tie_word_embeddings")
    width = text.dim("hidden_size")
    towers = vision_tower(f.sub("vision_config"), width)
    if f.has("audio_config"):
        towers += audio_tower(f.sub("audio_config"), width)
    f.skip("audio_config")
    return _text(text, towers, tied=f.flag("tie_word_embeddings", default=True))


@reads("gemma4_text")
def gemma4_text(f: Fields) -> ModelSpec:
    """The language model of Gemma 4."""
    f.assume(**{k: v for k, v in _TEXT.items() if k not in ("vocab_size", "hidden_size", "num_hidden_layers")})
    return _text(f, Extra(), tied=f.flag("tie_word_embeddings", default=True))


def _text(f: Fields, towers: Extra, *, tied: bool) -> ModelSpec:
    f.skip("use_bidirectional_attention", "expert_intermediate_size", "global_head_dim", "num_global_key_value_heads")
    d_model, heads, bias = f.dim("hidden_size"), f.dim("num_attention_heads"), f.flag("attention_bias", default=False)
    gains = extend(norms(d_model, *FOUR_NORMS), per_layer_gate(f))
    moe = _routed(f) if f.flag("enable_moe_block", default=False) else None
    if moe:
        extra_norms = ("post_mlp_norm", "post_experts_norm", "pre_experts_norm")
        gains = extend(gains, Extra(tuple(w for name in extra_norms for w in norm(name, "d_model"))))

    def build(shape: LayerShape) -> Layer:
        mixer = attention(
            Heads(d_model, heads, shape.kv_heads, shape.head_dim),
            window=shape.window,
            qkv_bias=bias,
            out_bias=bias,
            qk_norm="head",
            kv_shared=shape.shared,
            k_equals_v=shape.joint,
        )
        mlp = MLP(d_model=d_model, d_ff=shape.d_ff)
        return Layer(mixers=(mixer,), ffns=(mlp, moe) if moe else (mlp,), norms=gains)

    f.skip("num_experts", "top_k_experts", "moe_intermediate_size")
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied)
    embed = extend(extend(embed, per_layer_table(f)), towers)
    return assemble(f, embed, expand(_shapes(f, heads), build), tied=tied)


def _routed(f: Fields) -> MoE:
    block = routed(f, experts="num_experts", top_k="top_k_experts", width="moe_intermediate_size")
    scales = (
        Weight(name="router.scale", part=Part.ROUTER, shape=("d_model",), matmul=False),
        Weight(name="router.per_expert_scale", part=Part.ROUTER, shape=("experts",), matmul=False),
    )
    return extend(block, Extra(scales))


def _shapes(f: Fields, heads: int) -> list[LayerShape]:
    n, window, d_ff = f.layers(), f.optional("sliding_window"), f.dim("intermediate_size")
    kinds = f.names("layer_types", among=("sliding_attention", "full_attention"), length=n) or every(n, 6)
    kinds = [*kinds[:-1], "full_attention"]  # the model class forces the last layer to full attention
    joint = f.flag("attention_k_eq_v", default=False)
    first_shared = n - f.count("num_kv_shared_layers", default=0)
    if first_shared < 0:
        raise f.error("num_kv_shared_layers", f"at most the {n} layers")
    wide = f.flag("use_double_wide_mlp", default=False)
    shapes = []
    for i, (kind, (head_dim, kv_heads)) in enumerate(zip(kinds, _head_shapes(f, kinds, joint), strict=True)):
        check_divides(f, "num_key_value_heads", kv_heads, heads)
        full, shared = kind == "full_attention", i >= first_shared
        width = d_ff * 2 if wide and shared else d_ff
        shapes.append(LayerShape(None if full else window, head_dim, kv_heads, shared, joint and full, width))
    return shapes


def _head_shapes(f: Fields, kinds: list[str], joint: bool) -> list[tuple[int, int]]:
    """head_dim and key-value heads by layer: overrides by layer index, or one override for all global layers."""
    usual = (f.dim("head_dim"), f.dim("num_key_value_heads"))
    if f.has("per_layer_config"):
        return [_override(f.sub("per_layer_config"), i, usual) for i in range(len(kinds))]
    f.optional("per_layer_config")
    wide = f.dim("global_head_dim", default=512, null=512)
    shared_kv = f.optional("num_global_key_value_heads", lowest=1)
    kv_heads = shared_kv if joint and shared_kv else usual[1]
    return [(wide, kv_heads) if kind == "full_attention" else usual for kind in kinds]


def _override(table: Fields, layer: int, usual: tuple[int, int]) -> tuple[int, int]:
    key = next((k for k in (str(layer), f"{layer:02d}") if k in table.config), None)
    table.skip("*")
    if key is None:
        return usual
    own = table.sub(key)
    return own.dim("head_dim", default=usual[0]), own.dim("num_key_value_heads", default=usual[1])


def per_layer_gate(f: Fields) -> Extra:
    """In each layer: a gate on the token's per-layer input, its way back to the width, and a norm."""
    width = f.count("hidden_size_per_layer_input", default=256, null=0)
    if not width:
        return Extra()
    weights = (
        *linear("per_layer_gate", Part.OTHER, "d_model", "per_layer"),
        *linear("per_layer_proj", Part.OTHER, "per_layer", "d_model"),
        *norm("per_layer_norm", "d_model"),
    )
    return Extra(weights, {"per_layer": width})


def per_layer_table(f: Fields) -> Extra:
    """Outside the layers: a table with one row of per-layer inputs a token, and their projection from the state."""
    width = f.count("hidden_size_per_layer_input", default=256, null=0)
    vocab = f.dim("vocab_size_per_layer_input", default=262_144)
    if not width:
        return Extra()
    table = Weight(
        name="embed_per_layer", part=Part.EMBEDDING, shape=("vocab_per_layer", "layers*per_layer"), matmul=False
    )
    weights = (
        table,
        *linear("per_layer_model_proj", Part.OTHER, "d_model", "layers*per_layer"),
        *norm("per_layer_model_norm", "per_layer"),
    )
    return Extra(weights, {"per_layer": width, "vocab_per_layer": vocab, "layers": f.layers()})


@reads("gemma3n_text")
def gemma3n_text(f: Fields) -> ModelSpec:
    """The language model of Gemma 3n: parallel residual streams (AltUp), low-rank residuals (LAuReL)."""
    f.assume(num_key_value_heads=2, head_dim=256, sliding_window=512, num_kv_shared_layers=15)
    f.skip("activation_sparsity_pattern", "altup_active_idx", "altup_coef_clip", "altup_correct_scale")
    f.skip("query_pre_attn_scalar", "use_bidirectional_attention")
    d_model, heads, bias = f.dim("hidden_size"), f.dim("num_attention_heads"), f.flag("attention_bias", default=False)
    n = f.layers()
    f.dim("hidden_size_per_layer_input", default=256)
    gains = extend(extend(norms(d_model, *FOUR_NORMS), per_layer_gate(f)), _altup(f))

    def build(shape: LayerShape) -> Layer:
        mixer = attention(
            Heads(d_model, heads, shape.kv_heads, shape.head_dim),
            window=shape.window,
            qkv_bias=bias,
            out_bias=bias,
            qk_norm="head",
            kv_shared=shape.shared,
        )
        return Layer(mixers=(mixer,), ffns=(MLP(d_model=d_model, d_ff=shape.d_ff),), norms=gains)

    tied = f.flag("tie_word_embeddings", default=True)
    embed = extend(embedding_block(d_model, f.dim("vocab_size"), tied=tied), per_layer_table(f))
    streams = tuple(
        Weight(name=name, part=Part.OTHER, shape=("d_model", "d_model"), copies="altup_streams-1")
        for name in ("altup_in", "altup_out")
    )
    embed = extend(embed, Extra(streams, {"altup_streams": f.dim("altup_num_inputs", default=4)}))
    return assemble(f, embed, expand(_shapes_3n(f, n, heads), build), tied=tied)


def _shapes_3n(f: Fields, n: int, heads: int) -> list[LayerShape]:
    widths = f.config.get("intermediate_size")
    per_layer = f.integers("intermediate_size", length=n, lowest=1) if isinstance(widths, list) else None
    per_layer = per_layer or [f.dim("intermediate_size", default=16_384)] * n
    kinds = f.names("layer_types", among=("sliding_attention", "full_attention"), length=n) or every(n, 5)
    window, head_dim, kv_heads = f.optional("sliding_window"), f.dim("head_dim"), f.dim("num_key_value_heads")
    check_divides(f, "num_key_value_heads", kv_heads, heads)
    first = n - f.count("num_kv_shared_layers", default=15)
    if first < 0:
        raise f.error("num_kv_shared_layers", f"at most the {n} layers (absent means 15)")
    return [
        LayerShape(None if kind == "full_attention" else window, head_dim, kv_heads, i >= first > 0, False, d_ff)
        for i, (kind, d_ff) in enumerate(zip(kinds, per_layer, strict=True))
    ]


def _altup(f: Fields) -> Extra:
    o = Part.OTHER
    weights = (
        Weight(name="altup.correct_scale", part=o, shape=("d_model",), matmul=False),
        Weight(name="altup.correction", part=o, shape=("altup_streams", "altup_streams")),
        Weight(name="altup.prediction", part=o, shape=("altup_streams", "altup_streams*altup_streams")),
        *linear("altup.router", o, "d_model", "altup_streams"),
        *norm("altup.router_norm", "d_model"),
        *linear("laurel.left", o, "d_model", "laurel_rank"),
        *linear("laurel.right", o, "laurel_rank", "d_model"),
        *norm("laurel.norm", "d_model"),
    )
    dims = {"altup_streams": f.dim("altup_num_inputs", default=4), "laurel_rank": f.dim("laurel_rank", default=64)}
    return Extra(weights, dims)
