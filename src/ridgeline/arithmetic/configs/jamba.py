"""Jamba: Mamba with an attention layer every few layers, and experts in every other feed-forward block."""

from collections.abc import Callable

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.hybrid_parts import mamba1_fields
from ridgeline.arithmetic.configs.parts import (
    PRE_NORMS,
    assemble,
    attention,
    check_top_k,
    expand,
    norms,
    read_heads,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLP, Layer, ModelSpec, MoE, embedding_block


@reads("jamba")
def jamba(f: Fields) -> ModelSpec:
    """Jamba 1 to 1.7: dt, B and C are normed inside the Mamba layers; a single expert means a dense block."""
    heads, mixer = read_heads(f.assume(num_key_value_heads=8)), mamba1_fields(f, inner_norms=True).mixer()
    f.require("mamba_inner_layernorms", True)
    f.skip("use_mambapy", "use_associative_scan", "use_mamba_kernels", "n_ctx", "calc_logits_for_entire_prompt")
    d_model, width = heads.d_model, f.dim("intermediate_size", default=14336)
    experts = f.dim("num_experts", "num_local_experts", default=16)
    top_k = f.dim("num_experts_per_tok", default=2)
    full, sparse = _every(f, "attn_layer", 8, 4), _every(f, "expert_layer", 2, 1)
    keys = [(full(i), experts > 1 and sparse(i)) for i in range(f.layers())]
    if experts > 1:
        check_top_k(f, "num_experts_per_tok", top_k, experts)

    def build(key: tuple[bool, bool]) -> Layer:
        is_full, is_sparse = key
        ffn: MLP | MoE = MLP(d_model=d_model, d_ff=width)
        if is_sparse:
            ffn = MoE(d_model=d_model, experts=experts, top_k=top_k, expert_ff=width)
        return Layer(mixers=(attention(heads) if is_full else mixer,), ffns=(ffn,), norms=norms(d_model, *PRE_NORMS))

    tied = f.flag("tie_word_embeddings", default=False)
    return assemble(f, embedding_block(d_model, f.dim("vocab_size"), tied=tied), expand(keys, build), tied=tied)


def _every(f: Fields, what: str, period_default: int, offset_default: int) -> Callable[[int], bool]:
    """Whether a layer index is one of every ``<what>_period`` layers, from ``<what>_offset`` on."""
    period = f.dim(f"{what}_period", default=period_default)
    offset = f.count(f"{what}_offset", default=offset_default)
    if offset >= period:
        raise f.error(f"{what}_offset", f"less than the period ({period})", offset)
    return lambda index: index % period == offset
