"""RWKV-4: time mixing and channel mixing, LayerNorms, no attention."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Extra, assemble, extend, norms
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.mixers import rwkv4_channel_mix, rwkv4_time_mix
from ridgeline.arithmetic.spec import Layer, ModelSpec, embedding_block, norm


@reads("rwkv")
def rwkv(f: Fields) -> ModelSpec:
    """RWKV-4; the first layer's extra norm is counted with the embedding."""
    d_model = f.dim("hidden_size")
    width = f.dim("attention_hidden_size", default=d_model, null=d_model)
    d_ff = f.dim("intermediate_size", default=4 * d_model, null=4 * d_model)
    f.skip("context_length", "rescale_every")
    tied = f.flag("tie_word_embeddings", default=False)
    layer = Layer(
        mixers=(rwkv4_time_mix(d_model, width),),
        ffns=(rwkv4_channel_mix(d_model, d_ff),),
        norms=norms(d_model, "time_mix_norm", "channel_mix_norm", bias=True),
    )
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied, norm_bias=True)
    embed = extend(embed, Extra(norm("embed_norm", "d_model", bias=True)))
    return assemble(f, embed, ((layer,), (0,) * f.layers()), tied=tied)
