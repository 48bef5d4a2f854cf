"""DeepSeek V2 to V3.2, Kimi K2, GLM-5: multi-head latent attention, shared experts, first layers dense."""

from collections.abc import Callable, Sequence

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import (
    Build,
    Extra,
    LayerKey,
    Style,
    decoder,
    dense_mlp,
    extend,
    read_head_dim,
    routed,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLA, MLP, ModelSpec, MoE, Part, linear, norm

_MLA_DEFAULTS = {
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
}
_INDEXED = ("indexed_attention", "deepseek_sparse_attention")


def deepseek_keys(f: Fields, n: int) -> list[LayerKey]:
    """Dense for the first ``first_k_dense_replace`` layers, routed after, unless ``mlp_layer_types`` says."""
    f.require("moe_layer_freq", 1)
    first = f.count("first_k_dense_replace", default=0, null=0)
    kinds = f.names("mlp_layer_types", among=("dense", "sparse"), length=n)
    kinds = kinds or ["dense" if i < first else "sparse" for i in range(n)]
    return [(None, "dense" if kind == "dense" else "moe") for kind in kinds]


def deepseek_ffn(f: Fields, style: Style) -> Callable[[str], MLP | MoE]:
    """Dense or routed feed-forward under the DeepSeek field names; the shared experts act as one wide expert."""

    def build(kind: str) -> MLP | MoE:
        if kind == "dense":
            return dense_mlp(f, style)
        shared = f.count("n_shared_experts", "num_shared_experts", default=0, null=0) * f.dim("moe_intermediate_size")
        return routed(f, experts="n_routed_experts", width="moe_intermediate_size", shared_ff=shared)

    f.skip("n_shared_experts", "num_shared_experts", "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size")
    f.skip("intermediate_size")
    return build


def mla(f: Fields, v_head_dim: int | None = None) -> MLA:
    """The latent attention of one layer; ``v_head_dim`` when it is not the config that says it."""
    heads, nope, rope = f.dim("num_attention_heads"), f.count("qk_nope_head_dim"), f.count("qk_rope_head_dim")
    f.skip("num_key_value_heads", "head_dim")
    if f.has("qk_head_dim") and f.dim("qk_head_dim") != nope + rope:
        raise f.error("qk_head_dim", f"qk_nope_head_dim + qk_rope_head_dim ({nope + rope})")
    return MLA(
        d_model=f.dim("hidden_size"),
        heads=heads,
        q_rank=f.optional("q_lora_rank", lowest=1),
        kv_rank=f.dim("kv_lora_rank"),
        qk_nope=nope,
        qk_rope=rope,
        v_head_dim=v_head_dim or f.dim("v_head_dim"),
        bias=f.flag("attention_bias", default=False),
    )


def deepseek(f: Fields, build_mixer: Callable[[int | None], MLA], keys: Sequence[LayerKey], mtp: int) -> ModelSpec:
    """The decoder around a given latent attention."""
    style = Style(mlp_bias=f.flag("mlp_bias", default=False))
    if style.mlp_bias:
        raise f.error("mlp_bias", "false: the experts of a biased variant are not known")
    return decoder(f, style, Build(keys=keys, mixer=build_mixer, ffn=deepseek_ffn(f, style), mtp=mtp))


@reads("deepseek_v2")
def deepseek_v2(f: Fields) -> ModelSpec:
    """DeepSeek V2, V2 Lite and Coder V2."""
    f.assume(n_routed_experts=64, n_shared_experts=2, moe_intermediate_size=1407, **_MLA_DEFAULTS)
    return deepseek(f, lambda _: mla(f), deepseek_keys(f, f.layers()), mtp=0)


@reads("deepseek_v3", "kimi_k2")
def deepseek_v3(f: Fields) -> ModelSpec:
    """DeepSeek V3, R1 and Kimi K2. The router's score correction is a buffer, not a parameter."""
    f.assume(n_routed_experts=256, n_shared_experts=1, moe_intermediate_size=2048, num_experts_per_tok=8)
    f.assume(first_k_dense_replace=3, **_MLA_DEFAULTS)
    mtp = f.count("num_nextn_predict_layers", "num_mtp_layers", default=0, null=0)
    return deepseek(f, lambda _: mla(f), deepseek_keys(f, f.layers()), mtp=mtp)


@reads("glm4_moe_lite")
def glm4_moe_lite(f: Fields) -> ModelSpec:
    """GLM-4.7-Flash: the DeepSeek V3 layout with its own default ranks."""
    f.assume(n_routed_experts=64, n_shared_experts=1, moe_intermediate_size=1536, num_experts_per_tok=4)
    f.assume(kv_lora_rank=512, q_lora_rank=768, qk_rope_head_dim=64, qk_nope_head_dim=192, v_head_dim=256)
    f.assume(first_k_dense_replace=1)
    mtp = f.count("num_nextn_predict_layers", "num_mtp_layers", default=0, null=0)
    return deepseek(f, lambda _: mla(f), deepseek_keys(f, f.layers()), mtp=mtp)


@reads("mistral4")
def mistral4(f: Fields) -> ModelSpec:
    """Mistral Small 4: the DeepSeek V3 layout with smaller ranks, every layer routed."""
    f.assume(n_routed_experts=128, n_shared_experts=1, moe_intermediate_size=2048, num_experts_per_tok=4)
    f.assume(kv_lora_rank=256, q_lora_rank=1024, qk_rope_head_dim=64, qk_nope_head_dim=64, v_head_dim=128)
    return deepseek(f, lambda _: mla(f), deepseek_keys(f, f.layers()), mtp=0)


@reads("minicpm3", "youtu")
def dense_mla(f: Fields) -> ModelSpec:
    """MiniCPM 3 and Youtu-LLM: latent attention with a dense MLP in every layer, tied."""
    youtu = f.model_type == "youtu"
    f.assume(kv_lora_rank=512 if youtu else 256, q_lora_rank=1536 if youtu else 768)
    f.assume(qk_nope_head_dim=128 if youtu else 64, qk_rope_head_dim=64 if youtu else 32)
    if youtu:
        f.assume(v_head_dim=128)
    elif not f.has("v_head_dim"):
        return _dense_mla(f, read_head_dim(f, f.dim("hidden_size"), f.dim("num_attention_heads"), "v_head_dim"))
    return _dense_mla(f, None)


def _dense_mla(f: Fields, v_head_dim: int | None) -> ModelSpec:
    f.skip("scale_emb", "scale_depth", "dim_model_base", "mup_*", "embedding_initializer_range")
    style = Style(tied=True, mlp_bias=f.flag("mlp_bias", default=False))
    return decoder(f, style, Build(mixer=lambda _: mla(f, v_head_dim)))


def indexer(f: Fields) -> Extra:
    """The lightning indexer of DeepSeek sparse attention: query from the query latent, one shared key, head weights."""
    a = Part.ATTENTION
    weights = (
        *linear("indexer.q_proj", a, "q_rank", "index_heads*index_dim"),
        *linear("indexer.k_proj", a, "d_model", "index_dim"),
        *norm("indexer.k_norm", "index_dim", bias=True),
        *linear("indexer.head_weights", a, "d_model", "index_heads"),
    )
    return Extra(weights, {"index_heads": f.dim("index_n_heads"), "index_dim": f.dim("index_head_dim")})


def sparse_mla(f: Fields, *, indexed: bool) -> MLA:
    """Latent attention that reads the ``index_topk`` keys its indexer, or that of an earlier layer, picks."""
    f.dim("q_lora_rank")  # the indexer reads the query latent
    block = mla(f).model_copy(update={"sparse_top_k": f.dim("index_topk")})
    return extend(block, indexer(f)) if indexed else block


@reads("deepseek_v32")
def deepseek_v32(f: Fields) -> ModelSpec:
    """DeepSeek V3.2: V3 with an indexer in every layer."""
    f.assume(index_topk=2048, index_head_dim=128, index_n_heads=64)
    f.names("layer_types", among=_INDEXED)
    f.assume(n_routed_experts=256, n_shared_experts=1, moe_intermediate_size=2048, num_experts_per_tok=8)
    f.assume(first_k_dense_replace=3, **_MLA_DEFAULTS)
    mtp = f.count("num_nextn_predict_layers", default=0, null=0)
    return deepseek(f, lambda _: sparse_mla(f, indexed=True), deepseek_keys(f, f.layers()), mtp=mtp)


@reads("glm_moe_dsa")
def glm_moe_dsa(f: Fields) -> ModelSpec:
    """GLM-5: DeepSeek sparse attention whose indexer may be shared by the layers that follow it."""
    f.assume(index_topk=2048, index_head_dim=128, index_n_heads=32)
    f.assume(n_routed_experts=256, n_shared_experts=1, moe_intermediate_size=2048, num_experts_per_tok=8)
    f.assume(first_k_dense_replace=3, kv_lora_rank=512, q_lora_rank=2048, qk_rope_head_dim=64)
    f.assume(qk_nope_head_dim=192, v_head_dim=256)
    f.names("layer_types", among=_INDEXED)
    n = f.layers()
    full = indexer_layers(f, n)
    # The window slot of the key tells the layers with their own indexer (1) from those that share one (None).
    keys = [(1 if own else None, kind) for own, (_, kind) in zip(full, deepseek_keys(f, n), strict=True)]
    mtp = f.count("num_nextn_predict_layers", default=0, null=0)
    return deepseek(f, lambda own: sparse_mla(f, indexed=own is not None), keys, mtp=mtp)


def indexer_layers(f: Fields, n: int) -> list[bool]:
    """Which layers have their own indexer: a list, a pattern of F and S, or a period after an offset."""
    f.skip("index_share_for_mtp_iteration", "indexer_rope_interleave")
    kinds = f.names("indexer_types", among=("full", "shared"), length=n)
    period = max(f.count("index_topk_freq", default=1), 1)
    offset = f.count("index_skip_topk_offset", default=2)
    if kinds:
        return [kind == "full" for kind in kinds]
    if f.has("index_topk_pattern"):
        return [letter == "F" for letter in f.text("index_topk_pattern")[:n].ljust(n, "F")]
    return [max(i - offset + 1, 0) % period == 0 for i in range(n)]
