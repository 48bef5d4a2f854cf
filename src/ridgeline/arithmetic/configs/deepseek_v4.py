"""DeepSeek V4: window plus compressed past, every layer routed, hyper-connections instead of a residual sum."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import PRE_NORMS, Extra, assemble, expand, extend, norms, routed
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import CompressedAttention, Layer, ModelSpec, Part, Weight, embedding_block

_KINDS = ("sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention")
_SPANS = {0: _KINDS[0], 4: _KINDS[1], 128: _KINDS[2]}
_DEFAULTS = {
    "head_dim": 512,
    "q_lora_rank": 1024,
    "num_experts_per_tok": 6,
    "n_routed_experts": 256,
    "moe_intermediate_size": 2048,
    "hc_mult": 4,
    "sliding_window": 128,
    "o_groups": 8,
    "o_lora_rank": 1024,
    "index_n_heads": 64,
    "index_head_dim": 128,
    "index_topk": 512,
}


@reads("deepseek_v4", "deepseek_ref")
def deepseek_v4(f: Fields) -> ModelSpec:
    """DeepSeek V4 Flash and Pro. Layers that route by token hash have the same weights as the others."""
    f.assume(**_DEFAULTS)
    for name in ("attention_bias", "mlp_bias"):
        f.require(name, False)
    f.require("num_key_value_heads", 1)
    f.require("n_shared_experts", 1)
    f.skip("num_hash_layers", "mlp_layer_types", "hc_sinkhorn_iters", "swiglu_limit", "compress_rope_theta")
    f.skip("qk_rope_head_dim", "index_n_heads", "index_head_dim", "index_topk")
    if f.count("num_nextn_predict_layers", default=0, null=0):
        f.note("multi-token-prediction modules are declared; they are not counted")
    d_model, n = f.dim("hidden_size"), f.layers()
    spans = _spans(f)
    residual = extend(norms(d_model, *PRE_NORMS), _hyper_connections(f))

    def build(kind: str) -> Layer:
        shared = f.dim("moe_intermediate_size")
        ffn = routed(f, experts="n_routed_experts", width="moe_intermediate_size", shared_ff=shared)
        return Layer(mixers=(_attention(f, kind, spans.get(kind, 0)),), ffns=(ffn,), norms=residual)

    tied = f.flag("tie_word_embeddings", default=False)
    embed = extend(embedding_block(d_model, f.dim("vocab_size"), tied=tied), _final_collapse(f))
    return assemble(f, embed, expand(_kinds(f, n), build), tied=tied)


def _kinds(f: Fields, n: int) -> list[str]:
    """Layer kinds, as such or as the older list of spans, which may go on for the prediction modules."""
    ratios = f.integers("compress_ratios")
    types = f.names("layer_types", among=_KINDS)
    if types is None and ratios is not None:
        unknown = next((r for r in ratios if r not in _SPANS), None)
        if unknown is not None:
            raise f.error("compress_ratios", "spans out of 0, 4 and 128", unknown)
        types = [_SPANS[r] for r in ratios]
    if types is None:
        types = [_KINDS[2]] * min(n, 2) + [_KINDS[1] if i % 2 else _KINDS[2] for i in range(max(n - 2, 0))]
    if len(types) < n:
        raise f.error("compress_ratios", f"an entry for each of the {n} layers", f"{len(types)} entries")
    return types[:n]


def _spans(f: Fields) -> dict[str, int]:
    rates = f.sub("compress_rates", required=False).assume(**{_KINDS[1]: 4, _KINDS[2]: 128})
    return {kind: rates.dim(kind) for kind in _KINDS[1:]}


def _attention(f: Fields, kind: str, span: int) -> CompressedAttention:
    indexed = kind == "compressed_sparse_attention"
    groups, heads, head_dim = f.dim("o_groups"), f.dim("num_attention_heads"), f.dim("head_dim")
    if heads * head_dim % groups:
        raise f.error("o_groups", f"a divisor of num_attention_heads*head_dim ({heads * head_dim})", groups)
    return CompressedAttention(
        d_model=f.dim("hidden_size"),
        heads=heads,
        head_dim=head_dim,
        q_rank=f.dim("q_lora_rank"),
        out_groups=groups,
        group_width=heads * head_dim // groups,
        out_rank=f.dim("o_lora_rank"),
        window=f.dim("sliding_window"),
        compress=span,
        overlap=indexed,
        index_heads=f.dim("index_n_heads") if indexed else 0,
        index_dim=f.dim("index_head_dim") if indexed else 0,
        sparse_top_k=f.dim("index_topk") if indexed else None,
    )


def _hyper_connections(f: Fields) -> Extra:
    """Around each of the two blocks: streams are collapsed, expanded and mixed by weights computed from them."""
    weights: list[Weight] = []
    for name in ("attention_hc", "mlp_hc"):
        weights += [
            Weight(name=f"{name}.fn", part=Part.OTHER, shape=("hc_mult*d_model", "(2+hc_mult)*hc_mult")),
            Weight(name=f"{name}.base", part=Part.OTHER, shape=("(2+hc_mult)*hc_mult",), matmul=False),
            Weight(name=f"{name}.scale", part=Part.OTHER, shape=("3",), matmul=False),
        ]
    return Extra(tuple(weights), {"hc_mult": f.dim("hc_mult")})


def _final_collapse(f: Fields) -> Extra:
    weights = (
        Weight(name="final_hc.fn", part=Part.OTHER, shape=("hc_mult*d_model", "hc_mult")),
        Weight(name="final_hc.base", part=Part.OTHER, shape=("hc_mult",), matmul=False),
        Weight(name="final_hc.scale", part=Part.OTHER, shape=("1",), matmul=False),
    )
    return Extra(weights, {"hc_mult": f.dim("hc_mult")})
