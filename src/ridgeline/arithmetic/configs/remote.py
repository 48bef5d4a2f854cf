"""Families published with code of their own: InternLM, Baichuan, Qwen 1, ChatGLM."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import (
    PRE_NORMS,
    Build,
    Heads,
    Style,
    assemble,
    attention,
    check_divides,
    decoder,
    norms,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLP, Layer, ModelSpec, embedding_block


@reads("internlm2", "internlm3")
def internlm(f: Fields) -> ModelSpec:
    """InternLM 2 and 3: Llama with one flag for the attention biases (and in 3 for those of the MLP)."""
    if f.model_type == "internlm2":
        bias, mlp_bias = f.flag("bias", default=True), False
    else:
        f.assume(num_key_value_heads=2, head_dim=128)
        bias = f.flag("qkv_bias", "attention_bias", default=False)
        mlp_bias = f.flag("bias", "mlp_bias", default=False)
    return decoder(f, Style(qkv_bias=bias, out_bias=bias, mlp_bias=mlp_bias))


@reads("baichuan")
def baichuan(f: Fields) -> ModelSpec:
    """Baichuan 1 and 2: Llama without grouped heads; the 13B has ALiBi."""
    f.skip("model_max_length", "z_loss_weight")
    return decoder(f, Style())


@reads("qwen")
def qwen(f: Fields) -> ModelSpec:
    """Qwen 1: query, key and value biases; ``intermediate_size`` counts gate and up together."""
    f.require("no_bias", True)
    f.skip(
        "use_dynamic_ntk", "use_logn_attn", "use_cache_*", "softmax_in_fp32", "onnx_safe", "seq_length", "bf16", "fp16"
    )
    d_model, heads = f.dim("hidden_size"), f.dim("num_attention_heads")
    width = f.dim("intermediate_size")
    if width % 2:
        raise f.error("intermediate_size", "an even number: half gate, half up")
    mlp = MLP(d_model=d_model, d_ff=f.derived("d_ff", width // 2))
    shape = Heads(d_model, heads, heads, f.dim("kv_channels"))
    return decoder(f, Style(), Build(mixer=lambda _: attention(shape, qkv_bias=True), ffn=lambda _: mlp))


@reads("chatglm")
def chatglm(f: Fields) -> ModelSpec:
    """ChatGLM 2, 3 and GLM-4 9B in their first format: grouped heads, RMSNorm, an untied head."""
    f.require("rmsnorm", True)
    f.require("pre_seq_len", None)
    f.skip(
        "seq_length",
        "fp32_residual_connection",
        "apply_*",
        "attention_softmax_in_fp32",
        "original_rope",
        "add_bias_linear",
    )
    f.skip(
        "post_layer_norm", "multi_query_attention", "multi_query_group_num", "prefix_projection", "bias_dropout_fusion"
    )
    f.skip("interleaved_qkv", "use_cache", "rope_ratio", "vocab_size", "quantization_bit")
    bias = f.flag("add_bias_linear", default=False)
    qkv_bias = f.flag("add_qkv_bias", default=False) or bias
    d_model, heads = f.dim("hidden_size"), f.dim("num_attention_heads")
    grouped = f.flag("multi_query_attention", default=False)
    kv_heads = f.dim("multi_query_group_num", default=1) if grouped else heads
    check_divides(f, "multi_query_group_num", kv_heads, heads)
    shape = Heads(d_model, heads, kv_heads, f.dim("kv_channels", default=128))
    layer = Layer(
        mixers=(attention(shape, qkv_bias=qkv_bias, out_bias=bias),),
        ffns=(MLP(d_model=d_model, d_ff=f.dim("ffn_hidden_size"), bias=bias),),
        norms=norms(d_model, *PRE_NORMS),
    )
    tied = f.flag("tie_word_embeddings", default=False)
    final = f.flag("post_layer_norm", default=True)
    embed = embedding_block(d_model, f.dim("padded_vocab_size"), tied=tied, final_norm=final)
    return assemble(f, embed, ((layer,), (0,) * f.layers("num_layers", "num_hidden_layers")), tied=tied)
