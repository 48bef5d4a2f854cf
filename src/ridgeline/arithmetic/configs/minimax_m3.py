"""MiniMax M3: grouped-query attention with a block indexer, first layers dense, one shared expert; with vision."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Build, Extra, Style, decoder, dense_mlp, extend, routed, styled_attention
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.configs.vision import Tower, vit_dims
from ridgeline.arithmetic.spec import MLP, Attention, ModelSpec, MoE, Part, linear, norm

_STYLE = Style(qk_norm="head")
_SPARSE = "minimax_m3_sparse"


@reads("minimax_m3", "minimax_m3_vl_text")
def minimax_m3(f: Fields) -> ModelSpec:
    """The language model of MiniMax M3."""
    return _text(f, Build())


@reads("minimax_m3_vl")
def minimax_m3_vl(f: Fields) -> ModelSpec:
    """MiniMax M3 with its vision tower; either tie flag ties."""
    f.skip("image_grid_pinpoints", "process_image_mode", "multimodal_projector_bias", "projector_hidden_act")
    f.skip("img_token_compression_config")
    f.require("num_reward_heads", 0)
    text = f.sub("text_config")
    tied = f.flag("tie_word_embeddings", default=False) or text.flag("tie_word_embeddings", default=False)
    tower = _tower(f, f.sub("vision_config"), text.dim("hidden_size"))
    return _text(text, Build(embed=tower.extra, tied=tied))


def _text(f: Fields, build: Build) -> ModelSpec:
    f.assume(num_key_value_heads=4, head_dim=128, num_local_experts=128, num_experts_per_tok=4)
    f.require("attention_output_gate", False)
    f.require("use_qk_norm", True)
    f.require("qk_norm_type", "per_head")
    f.skip("dense_intermediate_size", "use_gemma_norm", "swiglu_*", "use_routing_bias")
    f.skip("moe_intermediate_size", "num_mtp_modules")
    if f.count("num_nextn_predict_layers", default=0, null=0) or f.config.get("num_mtp_modules"):
        f.note("multi-token-prediction modules are declared; they are not counted")
    n = f.layers()
    sparse = f.sub("sparse_attention_config", required=False)
    keys = list(zip(_indexed(f, sparse, n), _kinds(f, n), strict=True))
    index, kept = _indexer(f, sparse), _kept(f, sparse)

    def mixer(own: int | None) -> Attention:
        if own is None:
            return styled_attention(f, _STYLE)
        return extend(styled_attention(f, _STYLE, sparse_top_k=kept), index)

    def ffn(kind: str) -> MLP | MoE:
        if kind == "dense":
            return dense_mlp(f, _STYLE, name="dense_intermediate_size")
        shared = f.count("n_shared_experts", default=1) * f.dim("shared_intermediate_size", default=3072)
        return routed(f, experts="num_local_experts", width="intermediate_size", shared_ff=shared)

    return decoder(f, _STYLE, Build(keys=keys, mixer=mixer, ffn=ffn, embed=build.embed, tied=build.tied))


def _kinds(f: Fields, n: int) -> list[str]:
    """Dense or routed, from ``mlp_layer_types``, the 0/1 list ``moe_layer_freq``, or all routed."""
    kinds = f.names("mlp_layer_types", among=("dense", "sparse"), length=n)
    freq = f.integers("moe_layer_freq", length=n)
    first = f.optional("first_k_dense_replace")
    if kinds is None and freq is not None:
        kinds = ["sparse" if flag else "dense" for flag in freq]
    kinds = kinds or ["sparse" if i >= (first or 0) else "dense" for i in range(n)]
    if first is not None and kinds.count("dense") != first:
        raise f.error("first_k_dense_replace", f"the number of dense layers ({kinds.count('dense')})", first)
    return ["moe" if kind == "sparse" else "dense" for kind in kinds]


def _indexed(f: Fields, sparse: Fields, n: int) -> list[int | None]:
    """1 for a layer with an indexer, else None: the window slot of the layer key."""
    sparse.skip("use_sparse_attention", "sparse_score_type", "sparse_init_block", "sparse_local_block")
    sparse.skip("sparse_disable_index_value")
    freq = sparse.integers("sparse_attention_freq", length=n)
    kinds = f.names("layer_types", among=("full_attention", _SPARSE), length=n)
    if kinds is None:
        kinds = [_SPARSE if flag else "full_attention" for flag in freq or [0] * n]
    return [1 if kind == _SPARSE else None for kind in kinds]


def _kept(f: Fields, sparse: Fields) -> int:
    """Keys that a query reads: so many blocks of so many keys."""
    blocks = sparse.dim("sparse_topk_blocks", default=f.dim("index_topk_blocks", default=16))
    return blocks * sparse.dim("sparse_block_size", default=f.dim("index_block_size", default=128))


def _indexer(f: Fields, sparse: Fields) -> Extra:
    """Scores blocks of keys: a few query heads against one key head, both normalised."""
    f.skip("index_local_blocks")
    heads = sparse.dim("sparse_num_index_heads", default=f.dim("index_n_heads", default=4))
    width = sparse.dim("sparse_index_dim", default=f.dim("index_head_dim", default=128))
    weights = (
        *linear("indexer.q_proj", Part.ATTENTION, "d_model", "index_heads*index_dim"),
        *linear("indexer.k_proj", Part.ATTENTION, "d_model", "index_dim"),
        *norm("indexer.q_norm", "index_dim"),
        *norm("indexer.k_norm", "index_dim"),
    )
    return Extra(weights, {"index_heads": heads, "index_dim": width})


def _tower(f: Fields, v: Fields, text_width: int) -> Tower:
    v.assume(hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=16, patch_size=14)
    v.skip("projection_dim", "position_embedding_type", "rope_mode", "model_type", "vocab_size", "image_size")
    v.skip("vision_segment_max_frames")
    squeeze = v.sub("img_token_compression_config", required=False)
    squeeze.skip("image_token_compression_method")
    merge = squeeze.dim("spatial_merge_size", default=v.dim("spatial_merge_size", default=2))
    frames = squeeze.dim("temporal_patch_size", default=v.dim("temporal_patch_size", default=2))
    tower = Tower(
        **vit_dims(v),
        v_frames=frames,
        v_projector=f.dim("projector_hidden_size", default=6144),
        v_merged=f.derived("merged_hidden_size", text_width * merge * merge),
        v_text=text_width,
    )
    tower.linear("patch_embed", "v_channels*v_frames*v_patch*v_patch", "v_width", bias=False)
    tower.norm("pre_norm")
    tower.encoder()
    tower.linear("projector.fc1", "v_width", "v_projector")
    tower.linear("projector.fc2", "v_projector", "v_text")
    tower.linear("merger.fc1", "v_merged", "v_projector")
    tower.linear("merger.fc2", "v_projector", "v_text")
    return tower
