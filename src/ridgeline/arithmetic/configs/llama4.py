"""Llama 4: routed and dense layers in turn, a shared expert as wide as a routed one, chunked attention."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Build, Style, decoder, routed, styled_attention
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.configs.vision import Tower, patches, vit_dims
from ridgeline.arithmetic.spec import MLP, Attention, ModelSpec, MoE

_TEXT = {
    "vocab_size": 202048,
    "hidden_size": 5120,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16384,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_local_experts": 16,
    "num_experts_per_tok": 1,
    "attention_chunk_size": 8192,
}
_VISION = {
    "hidden_size": 768,
    "num_hidden_layers": 34,
    "num_attention_heads": 16,
    "intermediate_size": 5632,
    "vision_output_dim": 7680,
    "image_size": 448,
    "patch_size": 14,
    "projector_input_dim": 4096,
    "projector_output_dim": 4096,
}


@reads("llama4_text")
def llama4_text(f: Fields) -> ModelSpec:
    """The language model of Llama 4."""
    return _text(f, Build(tied=f.flag("tie_word_embeddings", default=False)))


@reads("llama4")
def llama4(f: Fields) -> ModelSpec:
    """Llama 4, whose inner tie flag decides; without ``vision_config`` the language model alone is counted."""
    text = f.sub("text_config").assume(**_TEXT)
    f.skip("tie_word_embeddings")
    tied = text.flag("tie_word_embeddings", default=False)
    if not f.has("vision_config"):
        f.note("no vision_config: the language model alone is counted")
        f.skip("vision_config")
        return _text(text, Build(tied=tied))
    tower = _tower(f.sub("vision_config").assume(**_VISION), text.dim("hidden_size"))
    return _text(text, Build(embed=tower.extra, tied=tied))


def _text(f: Fields, build: Build) -> ModelSpec:
    sizes = ("num_key_value_heads", "head_dim", "num_experts_per_tok", "num_local_experts", "attention_chunk_size")
    f.assume(**{name: _TEXT[name] for name in sizes})
    f.skip("use_qk_norm", "attn_temperature_tuning", "floor_scale", "attn_scale", "for_llm_compressor")
    n, style = f.layers(), _style(f)
    step = f.dim("interleave_moe_layer_step", default=1)
    sparse = f.integers("moe_layers")
    sparse = list(range(step - 1, n, step)) if sparse is None else sparse
    # The window slot of the key carries the chunk.
    keys = [(chunk, "moe" if i in sparse else "dense") for i, chunk in enumerate(_chunks(f, n))]

    def mixer(chunk: int | None) -> Attention:
        return styled_attention(f, style, chunk=chunk)

    def ffn(kind: str) -> MLP | MoE:
        width = f.dim("intermediate_size")
        if kind == "moe":
            return routed(f, experts="num_local_experts", width="intermediate_size", shared_ff=width)
        return MLP(d_model=f.dim("hidden_size"), d_ff=f.dim("intermediate_size_mlp", default=16384))

    f.optional("intermediate_size_mlp")
    return decoder(f, style, Build(keys=keys, mixer=mixer, ffn=ffn, embed=build.embed, tied=build.tied))


def _style(f: Fields) -> Style:
    bias = f.flag("attention_bias", default=False)
    return Style(qkv_bias=bias, out_bias=bias)


def _chunks(f: Fields, n: int) -> list[int | None]:
    """The chunk of each layer: layers without rotary positions attend to everything."""
    chunk = f.optional("attention_chunk_size", lowest=1)
    kinds = f.names("layer_types", among=("full_attention", "chunked_attention"), length=n)
    interval = f.dim("no_rope_layer_interval", default=4)
    rotary = f.integers("no_rope_layers") or [int((i + 1) % interval != 0) for i in range(n)]
    kinds = kinds or ["chunked_attention" if flag else "full_attention" for flag in rotary]
    return [chunk if kind == "chunked_attention" else None for kind in kinds]


def _tower(f: Fields, text_width: int) -> Tower:
    f.require("multi_modal_projector_bias", False)
    f.skip("pixel_shuffle_ratio", "vision_feature_*", "model_type", "projector_dropout")
    dims = vit_dims(f)
    names = ("vision_output_dim", "projector_input_dim", "projector_output_dim")
    tower = Tower(**dims, **{f"v_{name}": f.dim(name) for name in names}, v_patches=patches(f) + 1, v_text=text_width)
    tower.linear("patch_embed", "v_channels*v_patch*v_patch", "v_width", bias=False)
    tower.add("class_embedding", "v_width", matmul=False)
    tower.add("positions", "v_patches", "v_width", matmul=False)
    tower.norm("pre_norm")
    tower.encoder()
    tower.norm("post_norm")
    tower.linear("adapter.fc1", "v_ff", "v_projector_input_dim", bias=False)
    tower.linear("adapter.fc2", "v_projector_output_dim", "v_projector_output_dim", bias=False)
    tower.linear("projector", "v_vision_output_dim", "v_text", bias=False)
    return tower
