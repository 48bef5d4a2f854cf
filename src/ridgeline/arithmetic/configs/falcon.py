"""Falcon 7B, 40B, 180B and RW: three decoder layouts behind three flags."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import PRE_NORMS, Heads, assemble, attention, check_divides, norms
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLP, Layer, ModelSpec, embedding_block


@reads("falcon", "RefinedWeb", "RefinedWebModel")
def falcon(f: Fields) -> ModelSpec:
    """Falcon. ``new_decoder_architecture`` (40B, 180B) overrides ``multi_query``; 7B and RW go by the other flags."""
    d_model = f.dim("hidden_size", "n_embed")
    n, heads = f.layers("num_hidden_layers", "n_layer"), f.dim("num_attention_heads", "n_head")
    f.skip("apply_residual_connection_post_layernorm", "alibi", "unk_token_id")
    bias = f.flag("bias", default=False)
    grouped = f.flag("new_decoder_architecture", default=f.model_type == "RefinedWeb")
    multi_query = f.flag("multi_query", default=True)
    kv_named = f.dim("num_kv_heads", "n_head_kv", default=heads, null=heads)
    kv_heads = kv_named if grouped else 1 if multi_query else heads
    if d_model % heads:
        raise f.error("num_attention_heads", f"a divisor of hidden_size ({d_model})", heads)
    check_divides(f, "num_kv_heads", kv_heads, heads)
    d_ff = f.optional("ffn_hidden_size", lowest=1) or f.derived("ffn_hidden_size", 4 * d_model)
    if f.has("ff_factor") and f.dim("ff_factor") * d_model != d_ff:
        raise f.error("ff_factor", f"ffn_hidden_size / hidden_size ({d_ff} / {d_model})")
    layer = Layer(
        mixers=(attention(Heads(d_model, heads, kv_heads, d_model // heads), qkv_bias=bias, out_bias=bias),),
        ffns=(MLP(d_model=d_model, d_ff=d_ff, gated=False, bias=bias),),
        norms=norms(d_model, *_norm_names(f, grouped=grouped), bias=True),
    )
    tied = f.flag("tie_word_embeddings", default=True)
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied, norm_bias=True)
    return assemble(f, embed, ((layer,), (0,) * n), tied=tied)


def _norm_names(f: Fields, *, grouped: bool) -> tuple[str, ...]:
    """Parallel blocks share one norm in 7B and have two in the new architecture, unless the config counts them."""
    parallel = f.flag("parallel_attn", default=True)
    count = f.optional("num_ln_in_parallel_attn")
    if not parallel:
        return PRE_NORMS
    return ("attention_norm", "mlp_norm") if (count or (2 if grouped else 1)) == 2 else ("input_norm",)
