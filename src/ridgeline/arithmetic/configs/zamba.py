"""Zamba and Zamba2: a Mamba backbone with shared transformer blocks that read the residual beside the embedding.

A hybrid layer is two residual layers here: the shared block (stored once, or ``num_mem_blocks`` times, however often it
is applied) and the Mamba layer it feeds through a projection of its own.
"""

from dataclasses import dataclass

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.hybrid_parts import LINEAR, check_splits, layer_types, mamba1_fields
from ridgeline.arithmetic.configs.parts import (
    Extra,
    assemble,
    check_divides,
    expand,
    extend,
    norms,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.mixers import Mamba2
from ridgeline.arithmetic.spec import (
    MLP,
    Attention,
    Block,
    Layer,
    Mixer,
    ModelSpec,
    Part,
    Weight,
    embedding_block,
    linear,
    norm,
)

_HYBRID = "hybrid"
_TIED_BLOCKS = "true: the shared blocks are tied together with the embeddings"


@dataclass(frozen=True)
class _Family:
    """The pieces of one model: its Mamba layer, its shared block, what a hybrid layer adds, and the layer order."""

    mixer: Mixer
    attention: Attention
    mlp: MLP
    adapters: Extra
    blocks: int  # shared blocks stored
    kinds: list[str]


@reads("zamba")
def zamba(f: Fields) -> ModelSpec:
    """Zamba: Mamba with per-head selection and one shared block."""
    n, heads = f.layers(), f.dim("n_mamba_heads", default=2)
    mamba = mamba1_fields(f, heads=heads)
    check_splits(f, "n_mamba_heads", heads, mamba.d_inner, "inner width of the Mamba layer")
    f.skip("hidden_mamba_act", "use_mamba_kernels", "use_associative_scan", "time_step_*")
    kinds = layer_types(f, "layers_block_type", "layer_types", among=(LINEAR, _HYBRID), length=n)
    period, offset = f.dim("attn_layer_period", default=6), f.count("attn_layer_offset", default=4)
    if kinds is None:
        if n < 3:
            raise f.error("num_hidden_layers", "at least 3 layers: the third is the first hybrid layer", n)
        rest = [_HYBRID if i % period == offset else LINEAR for i in range(n - 3)]
        kinds = [LINEAR, LINEAR, _HYBRID, *rest]
    mlp = MLP(d_model=mamba.d_model, d_ff=f.dim("intermediate_size", default=14848))
    attn = _attention(f, f.dim("num_key_value_heads", default=16))
    return _build(f, _Family(mamba.mixer(), attn, mlp, Extra(), 1, kinds))


@reads("zamba2")
def zamba2(f: Fields) -> ModelSpec:
    """Zamba2: Mamba-2, ``num_mem_blocks`` shared blocks in turn, and low-rank adapters of each application."""
    bias, kinds = f.flag("add_bias_linear", default=False), _zamba2_kinds(f)
    mixer = _zamba2_mixer(f, bias=bias)
    d_model = mixer.d_model
    mlp = MLP(
        d_model=d_model,
        d_ff=f.dim("intermediate_size", "ffn_hidden_size", default=4 * d_model, null=4 * d_model),
        bias=bias,
    )
    f.skip("kv_channels", "num_query_groups", "use_mem_rope", "use_mem_eff_path", "use_long_context", "chunk_size")
    f.skip("time_step_*", "use_mamba_kernels", "use_conv_bias", "conv_dimension", "mamba_headdim")
    f.require("gated_linear_unit", True)
    f.require("use_shared_mlp_adapter", True)
    attn = _attention(f, f.dim("num_key_value_heads", default=f.dim("num_attention_heads")))
    adapters = _adapters(f, attn, mlp)
    blocks = f.dim("num_mem_blocks", default=1)
    return _build(f, _Family(mixer, attn, mlp, adapters, blocks, kinds))


def _zamba2_kinds(f: Fields) -> list[str]:
    n = f.layers()
    kinds = layer_types(f, "layers_block_type", "layer_types", among=(LINEAR, _HYBRID), length=n)
    if kinds is None:
        early = [LINEAR, *([LINEAR] * 5 + [_HYBRID]) * 7]
        kinds = [*early, *[LINEAR] * 4, _HYBRID, *[LINEAR] * 3, _HYBRID, *[LINEAR] * 2]
    if len(kinds) != n:
        raise f.error("num_hidden_layers", f"{len(kinds)}, or a list layers_block_type", n)
    hybrid = [i for i, kind in enumerate(kinds) if kind == _HYBRID]
    given = f.integers("hybrid_layer_ids")
    if given is not None and given != hybrid:
        raise f.error("hybrid_layer_ids", f"the hybrid layers of layers_block_type ({hybrid})")
    return kinds


def _zamba2_mixer(f: Fields, *, bias: bool) -> Mixer:
    d_model = f.dim("hidden_size")
    d_inner = f.dim("mamba_expand", default=2) * d_model
    mamba = Mamba2(
        d_model=d_model,
        d_inner=d_inner,
        heads=f.dim("n_mamba_heads", default=8),
        d_state=f.dim("mamba_d_state", default=64),
        groups=f.dim("mamba_ngroups", default=1),
        conv_kernel=f.dim("mamba_d_conv", default=4),
        in_bias=bias,
        out_bias=bias,
    )
    check_splits(f, "n_mamba_heads", mamba.heads, d_inner, "inner width of the Mamba layer")
    return mamba.mixer()


def _adapters(f: Fields, attn: Attention, mlp: MLP) -> Extra:
    """Low-rank adapters that every application of a shared block has to itself."""
    rank = f.dim("adapter_rank", default=128)
    pairs = [("mlp", Part.MLP, "d_model", "2*d_ff")]
    if f.flag("use_shared_attention_adapter", default=False):
        pairs += [(name, Part.ATTENTION, "d_in", "d_in") for name in ("q", "k", "v")]
    weights: tuple[Weight, ...] = ()
    for name, part, rows, cols in pairs:
        weights += linear(f"{name}_adapter_down", part, rows, "rank") + linear(f"{name}_adapter_up", part, "rank", cols)
    return Extra(weights, {"rank": rank, "d_ff": mlp.d_ff, "d_in": attn.d_in or attn.d_model})


def _attention(f: Fields, kv_heads: int) -> Attention:
    d_model, heads = f.dim("hidden_size"), f.dim("num_attention_heads")
    check_divides(f, "num_key_value_heads", kv_heads, heads)
    d_in = f.dim("attention_hidden_size", default=2 * d_model, null=2 * d_model)
    if d_in != 2 * d_model:
        raise f.error("attention_hidden_size", f"twice hidden_size ({2 * d_model})", d_in)
    head_dim = f.dim("attention_head_dim", "head_dim", default=d_in // heads, null=d_in // heads)
    return Attention(d_model=d_model, d_in=d_in, heads=heads, kv_heads=kv_heads, head_dim=head_dim, v_head_dim=head_dim)


def _build(f: Fields, family: _Family) -> ModelSpec:
    d_model, d_in = family.mixer.d_model, family.attention.d_in or family.mixer.d_model
    if not f.flag("tie_word_embeddings", default=True):
        raise f.error("tie_word_embeddings", _TIED_BLOCKS)
    uses = family.kinds.count(_HYBRID)
    fed = Extra(linear("shared_block_proj", Part.OTHER, "d_model", "d_model")) + family.adapters
    gains = Block(
        d_model=d_model, extra=norm("input_norm", "d_in") + norm("ffn_norm", "d_model"), extra_dims={"d_in": d_in}
    )

    def build(kind: str) -> Layer:
        if kind == "shared":
            stored = min(family.blocks, uses)
            return Layer(mixers=(family.attention,), ffns=(family.mlp,), norms=gains, stored=stored)
        mixer = extend(family.mixer, fed) if kind == _HYBRID else family.mixer
        return Layer(mixers=(mixer,), norms=norms(d_model, "input_norm"))

    order = [key for kind in family.kinds for key in (("shared", _HYBRID) if kind == _HYBRID else (kind,))]
    if uses:
        f.note(f"each of the {uses} hybrid layers counts as two: the shared block and the Mamba layer it feeds")
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=True)
    return assemble(f, embed, expand(order, build), tied=True)
