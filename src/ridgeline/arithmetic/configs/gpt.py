"""GPT-2 and its kin: GPT-BigCode, GPT-Neo, GPT-J, CodeGen, Phi in its first format, OPT, XGLM, BLOOM, MPT."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import (
    PRE_NORMS,
    Extra,
    Heads,
    assemble,
    attention,
    check_divides,
    expand,
    extend,
    norms,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLP, Block, Layer, ModelSpec, Part, Weight, embedding_block, linear, norm


def positions(rows: int) -> Extra:
    """A learned table of positions."""
    table = Weight(name="embed_positions", part=Part.EMBEDDING, shape=("positions", "d_model"), matmul=False)
    return Extra((table,), {"positions": rows})


def _heads(f: Fields, name: str, *aliases: str, d_model: int, kv_heads: int | None = None) -> Heads:
    heads = f.dim(name, *aliases)
    if d_model % heads:
        raise f.error(name, f"a divisor of the width ({d_model})", heads)
    check_divides(f, name, kv_heads or heads, heads)
    return Heads(d_model, heads, kv_heads or heads, d_model // heads)


def _gpt_layer(
    heads: Heads,
    d_ff: int,
    *,
    qkv_bias: bool,
    out_bias: bool,
    names: tuple[str, ...] = PRE_NORMS,
    mlp_bias: bool = True,
) -> Layer:
    return Layer(
        mixers=(attention(heads, qkv_bias=qkv_bias, out_bias=out_bias),),
        ffns=(MLP(d_model=heads.d_model, d_ff=d_ff, gated=False, bias=mlp_bias),),
        norms=norms(heads.d_model, *names, bias=True),
    )


@reads("gpt2", "gpt_bigcode", "gpt-sw3")
def gpt2(f: Fields) -> ModelSpec:
    """GPT-2, and StarCoder 1 (one key-value head unless ``multi_query`` is off)."""
    f.require("add_cross_attention", False)
    f.skip("reorder_and_upcast_attn", "inference_runner", "validate_runner_input", "pad_key_length", "pre_allocate_*")
    f.skip("max_batch_size", "max_sequence_length", "attention_softmax_in_fp32", "n_ctx", "predict_special_tokens")
    f.require("n_special", 0)  # the first library added these rows to the vocabulary
    d_model = f.dim("n_embd", "hidden_size")
    multi_query = f.model_type == "gpt_bigcode" and f.flag("multi_query", default=True)
    heads = _heads(f, "n_head", "num_attention_heads", d_model=d_model, kv_heads=1 if multi_query else None)
    f.optional("num_key_value_heads")
    layer = _gpt_layer(heads, _inner(f, d_model), qkv_bias=True, out_bias=True)
    tied = f.flag("tie_word_embeddings", default=True)
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied, norm_bias=True)
    embed = extend(embed, positions(f.dim("n_positions", "max_position_embeddings", default=1024)))
    return assemble(f, embed, ((layer,), (0,) * f.layers("n_layer", "num_hidden_layers")), tied=tied)


def _inner(f: Fields, d_model: int) -> int:
    inner = f.optional("n_inner", lowest=1)
    return f.derived("n_inner", 4 * d_model) if inner is None else inner


@reads("gptj", "codegen")
def gptj(f: Fields) -> ModelSpec:
    """GPT-J and CodeGen: parallel block, rotary positions, no attention biases, a head with bias."""
    d_model = f.dim("n_embd", "hidden_size")
    f.skip("n_ctx", "scale_attn_weights")
    heads = _heads(f, "n_head", "num_attention_heads", d_model=d_model)
    layer = _gpt_layer(heads, _inner(f, d_model), qkv_bias=False, out_bias=False, names=("input_norm",))
    tied = f.flag("tie_word_embeddings", default=False)
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied, norm_bias=True, head_bias=True)
    return assemble(f, embed, ((layer,), (0,) * f.layers("n_layer", "num_hidden_layers")), tied=tied)


@reads("phi-msft")
def phi_msft(f: Fields) -> ModelSpec:
    """Phi 1.5 and 2 in their first format: GPT-J's block with biases everywhere."""
    d_model = f.dim("n_embd")
    f.skip("flash_attn", "flash_rotary", "fused_dense")
    f.require("img_processor", None)
    heads = _heads(f, "n_head", d_model=d_model, kv_heads=f.optional("n_head_kv", lowest=1))
    layer = _gpt_layer(heads, _inner(f, d_model), qkv_bias=True, out_bias=True, names=("input_norm",))
    tied = f.flag("tie_word_embeddings", default=False)
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied, norm_bias=True, head_bias=True)
    return assemble(f, embed, ((layer,), (0,) * f.layers("n_layer")), tied=tied)


@reads("gpt_neo")
def gpt_neo(f: Fields) -> ModelSpec:
    """GPT-Neo: windowed and full layers in turn, a bias on the output projection alone."""
    d_model, n = f.dim("hidden_size"), f.layers("num_layers", "num_hidden_layers")
    heads = _heads(f, "num_heads", "num_attention_heads", d_model=d_model)
    d_ff = f.optional("intermediate_size", lowest=1) or f.derived("intermediate_size", 4 * d_model)
    window = f.dim("window_size", default=256)
    f.skip("attention_types", "n_inner")

    def build(kind: str) -> Layer:
        layer = _gpt_layer(heads, d_ff, qkv_bias=False, out_bias=True)
        if kind == "global":
            return layer
        return layer.model_copy(update={"mixers": (attention(heads, out_bias=True, window=window),)})

    kinds = f.names("attention_layers", among=("global", "local"), length=n)
    kinds = kinds or ["local" if i % 2 else "global" for i in range(n)]
    tied = f.flag("tie_word_embeddings", default=True)
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied, norm_bias=True)
    embed = extend(embed, positions(f.dim("max_position_embeddings", default=2048)))
    return assemble(f, embed, expand(kinds, build), tied=tied)


@reads("opt")
def opt(f: Fields) -> ModelSpec:
    """OPT: two extra position rows, and a narrower token table with projections in the 350M model."""
    f.skip("has_no_defaults_at_init")
    d_model, bias = f.dim("hidden_size"), f.flag("enable_bias", default=True)
    affine = f.flag("layer_norm_elementwise_affine", default=True)
    names = PRE_NORMS if affine else ()
    heads = _heads(f, "num_attention_heads", d_model=d_model)
    layer = _gpt_layer(heads, f.dim("ffn_dim", default=3072), qkv_bias=bias, out_bias=bias, names=names, mlp_bias=bias)
    tied = f.flag("tie_word_embeddings", default=True)
    removed = f.flag("_remove_final_layer_norm", default=False)
    final = f.flag("do_layer_norm_before", default=True) and not removed
    width = f.optional("word_embed_proj_dim", lowest=1) or d_model
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied, final_norm=final and affine, norm_bias=True)
    if width != d_model:
        embed = _narrow_table(embed.extra, d_model, f.dim("vocab_size"), width)
    embed = extend(embed, positions(f.dim("max_position_embeddings", default=2048) + 2))
    return assemble(f, embed, ((layer,), (0,) * f.layers()), tied=tied)


def _narrow_table(weights: tuple[Weight, ...], d_model: int, vocab: int, width: int) -> Block:
    """Token table and head of another width than the residual stream, and the projections between."""
    narrow = [
        w.model_copy(update={"shape": tuple("embed_width" if s == "d_model" else s for s in w.shape)})
        if w.name in ("embed_tokens", "lm_head")
        else w
        for w in weights
    ]
    between = (
        *linear("project_in", Part.EMBEDDING, "embed_width", "d_model"),
        *linear("project_out", Part.HEAD, "d_model", "embed_width"),
    )
    return Block(d_model=d_model, extra=(*narrow, *between), extra_dims={"vocab": vocab, "embed_width": width})


@reads("xglm")
def xglm(f: Fields) -> ModelSpec:
    """XGLM: biases everywhere, fixed sinusoidal positions."""
    f.require("add_cross_attention", False)
    d_model = f.dim("d_model", "hidden_size")
    heads = _heads(f, "attention_heads", "num_attention_heads", d_model=d_model)
    layer = _gpt_layer(heads, f.dim("ffn_dim", default=4096), qkv_bias=True, out_bias=True)
    tied = f.flag("tie_word_embeddings", default=True)
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied, norm_bias=True)
    return assemble(f, embed, ((layer,), (0,) * f.layers("num_layers", "num_hidden_layers")), tied=tied)


@reads("bloom")
def bloom(f: Fields) -> ModelSpec:
    """BLOOM: ALiBi, a LayerNorm on the token table, tied."""
    d_model = f.dim("n_embed", "hidden_size", "n_embd")
    f.skip("apply_residual_connection_post_layernorm", "seq_length", "offset_alibi", "skip_bias_*")
    heads = _heads(f, "n_head", "num_attention_heads", d_model=d_model)
    layer = _gpt_layer(heads, 4 * d_model, qkv_bias=True, out_bias=True)
    tied = f.flag("tie_word_embeddings", default=True)
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied, norm_bias=True)
    embed = extend(embed, Extra(norm("embed_norm", "d_model", bias=True)))
    return assemble(f, embed, ((layer,), (0,) * f.layers("n_layer", "num_hidden_layers")), tied=tied)


@reads("mpt")
def mpt(f: Fields) -> ModelSpec:
    """MPT: ALiBi, no biases at all, norms with a gain only. Its model class has no other variant."""
    f.require("no_bias", True)
    f.skip("verbose", "logit_scale", "norm_type", "learned_pos_emb", "embedding_fraction", "init_config")
    f.skip("tokenizer_name", "ffn_config", "fc_type")
    inner = f.sub("attn_config", required=False)
    inner.require("qk_ln", False)
    inner.require("attn_type", "multihead_attention")
    inner.skip("attn_impl", "prefix_lm", "attn_uses_sequence_id", "attn_pdrop", "rope*", "use_cache")
    if inner.config.get("alibi") is False:
        raise inner.error("alibi", "true: learned positions are not part of the model class")
    d_model = f.dim("d_model", "hidden_size")
    heads = _heads(f, "n_heads", "num_attention_heads", d_model=d_model)
    f.require("expansion_ratio", 4)  # the published code scales by it, the model class has 4 fixed
    layer = Layer(
        mixers=(attention(heads),),
        ffns=(MLP(d_model=d_model, d_ff=f.derived("d_ff", 4 * d_model), gated=False),),
        norms=norms(d_model, *PRE_NORMS),
    )
    tied = f.flag("tie_word_embeddings", default=True)
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied)
    return assemble(f, embed, ((layer,), (0,) * f.layers("n_layers", "num_hidden_layers")), tied=tied)
