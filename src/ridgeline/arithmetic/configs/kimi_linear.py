"""Kimi Linear and Ling 3 (Bailing hybrid): Kimi delta attention with latent attention in between."""

from dataclasses import dataclass

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.hybrid_parts import FULL, LINEAR, layer_types
from ridgeline.arithmetic.configs.parts import PRE_NORMS, Extra, assemble, check_top_k, expand, extend, norms
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.mixers import KimiDelta
from ridgeline.arithmetic.spec import MLA, MLP, Layer, Mixer, ModelSpec, MoE, Part, embedding_block, linear

_DENSE, _SPARSE = "dense", "sparse"


@dataclass(frozen=True)
class Pieces:
    """The two token mixers and the two feed-forward blocks, and which layer has which."""

    mixers: dict[str, MLA | Mixer]
    ffns: dict[str, MLP | MoE]
    keys: list[tuple[str, str]]


@reads("kimi_linear")
def kimi_linear(f: Fields) -> ModelSpec:
    """Kimi Linear; the published configs keep the sizes of the delta attention in ``linear_attn_config``."""
    n = f.layers()
    inner = f.sub("linear_attn_config", required=False)
    delta = KimiDelta(
        d_model=f.dim("hidden_size"),
        heads=inner.dim("num_heads", default=f.dim("linear_num_heads", default=32)),
        head_dim=inner.dim("head_dim", default=f.dim("linear_head_dim", default=128)),
        conv_kernel=inner.dim("short_conv_kernel_size", default=f.dim("linear_conv_kernel_dim", default=4)),
    )
    f.assume(intermediate_size=9216, moe_intermediate_size=1024, num_experts=256, num_experts_per_token=8)
    f.assume(num_shared_experts=1, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128)
    f.require("num_nextn_predict_layers", 0)
    kinds = mixer_kinds(f, inner, n)
    mixers: dict[str, MLA | Mixer] = {LINEAR: delta.mixer(), FULL: latent_attention(f)}
    return build(f, Pieces(mixers, ffns(f), list(zip(kinds, ffn_kinds(f, n, first=1), strict=True))))


def mixer_kinds(f: Fields, inner: Fields, n: int) -> list[str]:
    """By layer: the list, or the two one-based index lists, or full attention in every fourth after the first."""
    given = layer_types(f, "layer_types", length=n)
    full, delta = inner.integers("full_attn_layers", lowest=1), inner.integers("kda_layers", lowest=1)
    if given is not None:
        return given
    if full is None or delta is None:
        return [FULL if index and index % 4 == 0 else LINEAR for index in range(n)]
    if sorted(full + delta) != list(range(1, n + 1)):
        raise inner.error("kda_layers", f"with full_attn_layers, each of the layers 1 to {n} once", delta)
    return [FULL if index + 1 in full else LINEAR for index in range(n)]


@reads("bailing_hybrid")
def bailing_hybrid(f: Fields) -> ModelSpec:
    """Ling 3: full-rank decay and gate in the delta attention, a gate per head on the latent attention."""
    n, heads = f.layers(), f.dim("num_attention_heads")
    delta = KimiDelta(
        d_model=f.dim("hidden_size"),
        heads=heads,
        head_dim=f.dim("head_dim", default=128),
        conv_kernel=f.dim("short_conv_kernel_size", default=4),
        low_rank=False,
    )
    f.assume(intermediate_size=6144, moe_intermediate_size=768, num_experts=512, num_experts_per_token=8)
    f.assume(num_shared_experts=1, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128)
    f.skip("kda_safe_gate", "kda_lower_bound", "mtp_loss_scaling_factor")
    if f.count("num_mtp_layers", "num_nextn_predict_layers", default=1):
        f.note("multi-token-prediction layers are not counted: their weights are not known here")
    group = f.dim("layer_group_size", default=6)
    kinds = layer_types(f, "layer_types", length=n) or [LINEAR if (i + 1) % group else FULL for i in range(n)]
    gate = Extra(linear("head_gate", Part.ATTENTION, "d_model", "heads"))
    mixers: dict[str, MLA | Mixer] = {LINEAR: delta.mixer(), FULL: extend(latent_attention(f), gate)}
    return build(f, Pieces(mixers, ffns(f), list(zip(kinds, ffn_kinds(f, n, first=2), strict=True))))


def latent_attention(f: Fields) -> MLA:
    """The full-attention layers."""
    f.skip("num_key_value_heads", "head_dim", "qk_head_dim", "mla_use_nope")
    return MLA(
        d_model=f.dim("hidden_size"),
        heads=f.dim("num_attention_heads"),
        q_rank=f.optional("q_lora_rank", lowest=1),
        kv_rank=f.dim("kv_lora_rank"),
        qk_nope=f.count("qk_nope_head_dim"),
        qk_rope=f.count("qk_rope_head_dim"),
        v_head_dim=f.dim("v_head_dim"),
        bias=f.flag("attention_bias", default=False),
    )


def ffn_kinds(f: Fields, n: int, *, first: int) -> list[str]:
    """Dense or sparse, for each layer; the ``first`` ones are dense where the config does not say."""
    f.require("moe_layer_freq", 1)
    dense = f.count("first_k_dense_replace", default=first)
    kinds = f.names("mlp_layer_types", among=(_DENSE, _SPARSE), length=n)
    return kinds or [_DENSE if index < dense else _SPARSE for index in range(n)]


def ffns(f: Fields) -> dict[str, MLP | MoE]:
    """The dense block and the mixture, by the kind of their layers."""
    d_model, width = f.dim("hidden_size"), f.dim("moe_intermediate_size")
    experts = f.dim("num_experts", "num_local_experts")
    top_k = f.dim("num_experts_per_token", "num_experts_per_tok")
    check_top_k(f, "num_experts_per_token", top_k, experts)
    shared = f.count("num_shared_experts", "n_shared_experts")
    f.skip("moe_renormalize", "moe_router_activation_func", "num_expert_group", "use_grouped_topk", "model_max_length")
    dense = MLP(d_model=d_model, d_ff=f.dim("intermediate_size"))
    sparse = MoE(d_model=d_model, experts=experts, top_k=top_k, expert_ff=width, shared_ff=shared * width)
    return {_DENSE: dense, _SPARSE: sparse}


def build(f: Fields, pieces: Pieces) -> ModelSpec:
    """The whole decoder."""
    d_model = f.dim("hidden_size")
    f.require("tie_word_embeddings", False)

    def layer(key: tuple[str, str]) -> Layer:
        mixer, ffn = pieces.mixers[key[0]], pieces.ffns[key[1]]
        return Layer(mixers=(mixer,), ffns=(ffn,), norms=norms(d_model, *PRE_NORMS))

    embed = embedding_block(d_model, f.dim("vocab_size"), tied=False)
    return assemble(f, embed, expand(pieces.keys, layer), tied=False)
