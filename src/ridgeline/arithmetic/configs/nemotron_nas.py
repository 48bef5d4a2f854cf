"""Nemotron NAS (Llama-Nemotron Super and Ultra): a Llama whose layers were searched one by one."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Heads, assemble, attention, expand, norms
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLP, Layer, ModelSpec, embedding_block


@reads("nemotron-nas")
def nemotron_nas(f: Fields) -> ModelSpec:
    """Each block says its query heads per group and MLP multiplier, or that it is absent."""
    for name in ("attention_bias", "mlp_bias"):
        f.require(name, False)
    f.require("num_key_value_heads", None)
    f.require("intermediate_size", None)
    d_model, heads, n = f.dim("hidden_size"), f.dim("num_attention_heads"), f.layers()
    if d_model % heads:
        raise f.error("num_attention_heads", f"a divisor of hidden_size ({d_model})", heads)
    entries = f.items("block_configs", length=n)
    if entries is None:
        raise f.error("block_configs", "a list with one entry per layer")
    keys = [_key(f, i, heads) for i in range(n)]

    def build(key: tuple[int, int]) -> Layer:
        kv_heads, d_ff = key
        shape = Heads(d_model, heads, kv_heads or 1, d_model // heads)
        names = (("input_norm",) if kv_heads else ()) + (("post_attention_norm",) if d_ff else ())
        return Layer(
            mixers=(attention(shape),) if kv_heads else (),
            ffns=(MLP(d_model=d_model, d_ff=d_ff),) if d_ff else (),
            norms=norms(d_model, *names),
        )

    tied = f.flag("tie_word_embeddings", default=False)
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=tied)
    return assemble(f, embed, expand(keys, build), tied=tied)


def _key(f: Fields, layer: int, heads: int) -> tuple[int, int]:
    """Key-value heads and MLP width of a layer; 0 where the block is absent."""
    block = f.entry("block_configs", layer)
    inner, outer = block.sub("attention"), block.sub("ffn")
    for part in (inner, outer):
        part.require("replace_with_linear", False)
        part.require("sparsify", None)
    inner.skip("num_sink_tokens", "unshifted_sink", "use_prefill_window_in_sink_attention", "window_length")
    kv_heads = 0
    if not inner.flag("no_op", default=False):
        group = inner.dim("n_heads_in_group")
        if heads % group:
            raise inner.error("n_heads_in_group", f"a divisor of the {heads} attention heads", group)
        kv_heads = heads // group
    inner.optional("n_heads_in_group")
    d_ff = 0
    if not outer.flag("no_op", default=False):
        d_ff = _width(f.dim("hidden_size"), outer.number("ffn_mult"))
    outer.skip("ffn_mult")
    return kv_heads, f.derived(f"block_configs[{layer}].d_ff", d_ff)


def _width(d_model: int, multiplier: float) -> int:
    """Two thirds of multiplier times width, rounded up to 256, as the model's own code does."""
    return -(-int(2 * multiplier * d_model / 3) // 256) * 256
