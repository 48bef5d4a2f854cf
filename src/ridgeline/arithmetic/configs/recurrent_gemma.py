"""RecurrentGemma (Griffin): RG-LRU blocks with a windowed attention layer in every three."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.hybrid_parts import check_splits
from ridgeline.arithmetic.configs.parts import assemble, attention, expand, norms, read_heads
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.mixers import rg_lru
from ridgeline.arithmetic.spec import MLP, Layer, ModelSpec, embedding_block

_BLOCKS = ("recurrent", "attention")


@reads("recurrent_gemma")
def recurrent_gemma(f: Fields) -> ModelSpec:
    """RecurrentGemma; ``intermediate_size`` is the gate and up projections together, each half of it."""
    n, heads = f.layers(), read_heads(f)
    d_model = heads.d_model
    blocks = f.names("block_types", "_block_types", among=_BLOCKS) or ["recurrent", "recurrent", "attention"]
    f.skip("*w_init_variance_scale", "embeddings_scale_by_sqrt_dim")
    window = f.dim("attention_window_size", "sliding_window", default=2048)
    bias = f.flag("attention_bias", default=False)
    attn = attention(heads, qkv_bias=bias, out_bias=True, window=window)
    width = f.dim("lru_width", default=d_model, null=d_model)
    check_splits(f, "num_attention_heads", heads.heads, width, "RG-LRU width")
    recurrent = rg_lru(d_model, width, heads.heads, f.dim("conv1d_width", default=4))
    d_ff = f.dim("intermediate_size", default=7680)
    check_splits(f, "intermediate_size", 2, d_ff, "two projections it holds")
    mlp = MLP(d_model=d_model, d_ff=d_ff // 2, bias=True)

    def build(kind: str) -> Layer:
        mixer = attn if kind == "attention" else recurrent
        return Layer(mixers=(mixer,), ffns=(mlp,), norms=norms(d_model, "temporal_norm", "channel_norm"))

    kinds = [blocks[index % len(blocks)] for index in range(n)]
    tied = f.flag("tie_word_embeddings", default=True)
    return assemble(f, embedding_block(d_model, f.dim("vocab_size"), tied=tied), expand(kinds, build), tied=tied)
