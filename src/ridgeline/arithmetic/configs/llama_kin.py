"""Families published with code of their own and Llama's layers: InternLM 1, XVERSE, Aquila, MiniCPM, Orion, DeciLM."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import (
    PLAIN,
    PRE_NORMS,
    Heads,
    Style,
    assemble,
    attention,
    check_divides,
    decoder,
    dense_mlp,
    expand,
    norms,
    read_head_dim,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import Layer, ModelSpec, embedding_block


@reads("internlm")
def internlm(f: Fields) -> ModelSpec:
    """InternLM 1: biases on all four attention projections unless ``bias`` is off."""
    bias = f.flag("bias", default=True)
    return decoder(f, Style(qkv_bias=bias, out_bias=bias))


@reads("xverse", "aquila", "Yi")
def renamed(f: Fields) -> ModelSpec:
    """XVERSE, Aquila and the first Yi: Llama under another name."""
    f.skip("max_tokenizer_truncation")
    return decoder(f, PLAIN)


@reads("minicpm")
def minicpm(f: Fields) -> ModelSpec:
    """MiniCPM 1, 2 and 4: Llama with scaled residuals, tied unless the config says otherwise; the MoE is not read."""
    f.require("num_experts", 0)
    f.skip("scale_emb", "scale_depth", "dim_model_base")
    return decoder(f, Style(tied=True))


@reads("orion")
def orion(f: Fields) -> ModelSpec:
    """Orion: Llama with LayerNorm (gain and bias) for RMSNorm."""
    return decoder(f, Style(norm_bias=True))


@reads("deci")
def deci(f: Fields) -> ModelSpec:
    """DeciLM 6B and 7B: every layer has its own number of key-value heads."""
    d_model, heads, n = f.dim("hidden_size"), f.dim("num_attention_heads"), f.layers()
    for name in ("attention_bias", "mlp_bias"):
        f.require(name, False)
    name = "num_key_value_heads_per_layer"
    per_layer = f.integers(name, length=n, lowest=1)
    if per_layer is None:
        raise f.error(name, "a list with one entry per layer")
    for kv_heads in per_layer:
        check_divides(f, name, kv_heads, heads)
    f.optional("num_key_value_heads")  # the largest of them; the code reads the list alone
    head_dim = read_head_dim(f, d_model, heads)
    mlp, gains = dense_mlp(f, PLAIN), norms(d_model, *PRE_NORMS)

    def build(kv_heads: int) -> Layer:
        return Layer(mixers=(attention(Heads(d_model, heads, kv_heads, head_dim)),), ffns=(mlp,), norms=gains)

    tied = f.flag("tie_word_embeddings", default=False)
    return assemble(f, embedding_block(d_model, f.dim("vocab_size"), tied=tied), expand(per_layer, build), tied=tied)
