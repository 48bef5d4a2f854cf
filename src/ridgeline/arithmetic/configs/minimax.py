"""MiniMax-Text-01 and MiniMax-M1: lightning attention with softmax attention in between, experts everywhere."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.hybrid_parts import FULL, LINEAR, layer_types
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
from ridgeline.arithmetic.mixers import lightning_attention
from ridgeline.arithmetic.spec import Layer, ModelSpec, MoE, embedding_block


@reads("minimax", "minimax_text_01", "minimax_m1")
def minimax(f: Fields) -> ModelSpec:
    """Softmax attention where ``layer_types`` says or ``attn_type_list`` is 1; else in every even layer."""
    n, heads = f.layers(), read_heads(f.assume(num_key_value_heads=8))
    kinds, mixer = _kinds(f, n), lightning_attention(heads.d_model, heads.heads, heads.head_dim)
    experts, top_k = f.dim("num_local_experts", "num_experts", default=8), f.dim("num_experts_per_tok", default=2)
    check_top_k(f, "num_experts_per_tok", top_k, experts)
    width = f.dim("intermediate_size", default=14336)
    f.require("shared_intermediate_size", 0)
    f.skip("*_alpha_factor", "*_beta_factor", "layernorm_*", "block_size", "postnorm", "shared_moe_mode")
    moe = MoE(d_model=heads.d_model, experts=experts, top_k=top_k, expert_ff=width)

    def build(kind: str) -> Layer:
        block = attention(heads) if kind == FULL else mixer
        return Layer(mixers=(block,), ffns=(moe,), norms=norms(heads.d_model, *PRE_NORMS))

    tied = f.flag("tie_word_embeddings", default=False)
    return assemble(f, embedding_block(heads.d_model, f.dim("vocab_size"), tied=tied), expand(kinds, build), tied=tied)


def _kinds(f: Fields, n: int) -> list[str]:
    kinds = layer_types(f, "layer_types", length=n)
    numbered = f.integers("attn_type_list", length=n)
    unknown = [number for number in numbered or () if number not in (0, 1)]
    if unknown:
        raise f.error("attn_type_list", "0 (lightning) or 1 (softmax)", unknown[0])
    if numbered is not None and kinds is None:
        kinds = [FULL if number else LINEAR for number in numbered]
    return kinds or [LINEAR if index % 2 else FULL for index in range(n)]
