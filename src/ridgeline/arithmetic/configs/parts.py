"""The pieces that most families share, read from a config by their usual field names."""

import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ridgeline.arithmetic.configs.fields import MOST_LAYERS, Fields
from ridgeline.arithmetic.spec import (
    MLA,
    MLP,
    Attention,
    Block,
    Layer,
    ModelSpec,
    MoE,
    Part,
    Weight,
    embedding_block,
    linear,
    norm,
)
from ridgeline.core.errors import InputError

PRE_NORMS = ("input_norm", "post_attention_norm")
Layers = tuple[tuple[Layer, ...], tuple[int, ...]]  # kinds, pattern

Key = TypeVar("Key", bound=Hashable)
BlockT = TypeVar("BlockT", bound=Block)


@dataclass(frozen=True)
class Extra:
    """Weights to add to a block, and the dims they name."""

    weights: tuple[Weight, ...] = ()
    dims: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def __add__(self, other: "Extra") -> "Extra":
        return Extra(self.weights + other.weights, {**self.dims, **other.dims})


def extend(block: BlockT, extra: Extra | None) -> BlockT:
    """The block with more weights."""
    if extra is None:
        return block
    dims = {**block.extra_dims, **extra.dims}
    return block.model_copy(update={"extra": block.extra + extra.weights, "extra_dims": dims})


@dataclass(frozen=True)
class Heads:
    """Head counts of one attention layer."""

    d_model: int
    heads: int
    kv_heads: int
    head_dim: int


def read_heads(f: Fields, *, kv_default: int | None = None) -> Heads:
    """``num_attention_heads``, ``num_key_value_heads``, ``head_dim``, checked to divide.

    Null key-value heads mean as many as heads, and so do absent ones unless ``kv_default`` is given; an absent or null
    head_dim means hidden_size / heads. A family can also say what absent fields mean with ``Fields.assume``.
    """
    d_model, heads = f.dim("hidden_size"), f.dim("num_attention_heads")
    kv_heads = f.dim("num_key_value_heads", default=kv_default or heads, null=heads)
    check_divides(f, "num_key_value_heads", kv_heads, heads)
    return Heads(d_model, heads, kv_heads, read_head_dim(f, d_model, heads))


def read_head_dim(f: Fields, d_model: int, heads: int, name: str = "head_dim") -> int:
    """``head_dim``, or hidden_size / heads when the config does not say (refused when that is not whole)."""
    value = f.optional(name, lowest=1)
    if value is not None:
        return value
    if d_model % heads:
        raise f.error("num_attention_heads", f"a divisor of hidden_size ({d_model}), or a {name}", heads)
    return f.derived(name, d_model // heads)


def check_divides(f: Fields, name: str, part: int, whole: int) -> None:
    """Refuse key-value heads that do not divide the heads."""
    if whole % part:
        raise f.error(name, f"a divisor of the {whole} attention heads", part)


def check_top_k(f: Fields, name: str, top_k: int, experts: int) -> None:
    """Refuse a router that picks more experts than there are."""
    if top_k > experts:
        raise f.error(name, f"at most the {experts} experts there are", top_k)


def attention(heads: Heads, **options: Any) -> Attention:
    """An ``Attention`` block from head counts; ``options`` are its other fields."""
    sizes = {"d_model": heads.d_model, "heads": heads.heads, "kv_heads": heads.kv_heads, "head_dim": heads.head_dim}
    return Attention.model_validate({"v_head_dim": heads.head_dim, **sizes, **options})


def norms(d_model: int, *names: str, bias: bool = False) -> Block:
    """The norms of one layer, each over the residual width."""
    return Block(d_model=d_model, extra=tuple(w for name in names for w in norm(name, "d_model", bias=bias)))


def expand(keys: Sequence[Key], build: Callable[[Key], Layer]) -> Layers:
    """Distinct layers and the order they are applied in: ``build`` is called once per distinct key."""
    distinct = list(dict.fromkeys(keys))
    index = {key: i for i, key in enumerate(distinct)}
    return tuple(build(key) for key in distinct), tuple(index[key] for key in keys)


_CONTEXT = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "max_seq_len")


def assemble(
    f: Fields, embed: Block, layers: Layers, *, tied: bool, mtp: tuple[Layer, ...] = (), mtp_extra: Block | None = None
) -> ModelSpec:
    """The spec from its layers and what is outside them; ``embed`` is an ``embedding_block``, perhaps extended."""
    kinds, pattern = layers
    found = [f.optional(name) for name in _CONTEXT if f.has(name)]
    return ModelSpec(
        name="",
        family=f.model_type,
        d_model=embed.d_model,
        vocab=embed.extra_dims["vocab"],
        tied=tied,
        kinds=kinds,
        pattern=pattern,
        embed=embed,
        mtp=mtp,
        mtp_extra=mtp_extra,
        max_context=(found[0] if found else None) or None,
    )


@dataclass(frozen=True)
class Style:
    """What a family fixes in its code rather than in the config. Field names are those of ``Attention`` and ``MLP``."""

    tied: bool = False  # what an absent tie_word_embeddings means
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: Literal["none", "head", "full"] = "none"
    qk_norm_bias: bool = False
    gated: bool = True
    mlp_bias: bool = False
    norms: tuple[str, ...] = PRE_NORMS
    norm_bias: bool = False
    final_norm: bool = True
    head_bias: bool = False


PLAIN = Style()
LayerKey = tuple[int | None, str]  # attention window (None: full) and the kind of feed-forward


@dataclass(frozen=True)
class Build:
    """Where a family departs from the usual decoder; None keeps the usual."""

    keys: Sequence[LayerKey] | None = None  # one per layer; None: num_hidden_layers equal dense layers
    mixer: Callable[[int | None], Attention | MLA] | None = None  # the token mixer of a window
    ffn: Callable[[str], MLP | MoE | None] | None = None  # the feed-forward of a kind
    embed: Extra | None = None  # more weights outside the layers: positions, a vision tower
    tied: bool | None = None  # the tie flag when it is not this config's own
    mtp: int = 0  # multi-token-prediction modules: one more layer of the last kind each


def decoder(f: Fields, style: Style, build: Build | None = None) -> ModelSpec:
    """The usual decoder: grouped-query attention, a feed-forward block, norms, token table, head."""
    build = build or Build()
    d_model = f.dim("hidden_size")
    keys = build.keys if build.keys is not None else [(None, "dense")] * f.layers()
    make_mixer = build.mixer or (lambda window: styled_attention(f, style, window))
    make_ffn = build.ffn or (lambda _: dense_mlp(f, style))
    gains = norms(d_model, *style.norms, bias=style.norm_bias)
    tied = f.flag("tie_word_embeddings", default=style.tied) if build.tied is None else build.tied

    def layer(key: LayerKey) -> Layer:
        ffn = make_ffn(key[1])
        return Layer(mixers=(make_mixer(key[0]),), ffns=(ffn,) if ffn else (), norms=gains)

    embed = embedding_block(
        d_model,
        f.dim("vocab_size"),
        tied=tied,
        final_norm=style.final_norm,
        norm_bias=style.norm_bias,
        head_bias=style.head_bias,
    )
    layers = expand(keys, layer)
    spec = assemble(f, extend(embed, build.embed), layers, tied=tied)
    return with_mtp(f, spec, build.mtp)


def with_mtp(f: Fields, spec: ModelSpec, modules: int) -> ModelSpec:
    """The spec with multi-token-prediction modules as DeepSeek-V3 publishes them.

    Each is one more layer of the last kind, two norms and a projection of the concatenated states back to the width;
    the token table and the head are those of the model. They are not part of the count.
    """
    if not modules:
        return spec
    block = prediction_join(f, spec.d_model, modules)
    return spec.model_copy(update={"mtp": (spec.kinds[spec.pattern[-1]],) * modules, "mtp_extra": block})


def prediction_join(f: Fields, d_model: int, modules: int) -> Block:
    """What every prediction module has beside its layers: the projection of [token, state], and three norms."""
    if modules > MOST_LAYERS:
        raise InputError.expected(f"at most {MOST_LAYERS} multi-token-prediction modules", modules, where=f.where)
    gains = (w for name in ("embed_norm", "hidden_norm", "final_norm") for w in norm(name, "d_model"))
    weights = (*linear("join_proj", Part.MTP, "2*d_model", "d_model"), *gains)
    f.note(f"{modules} multi-token-prediction module(s) are listed apart and not counted in the total")
    each = {"part": Part.MTP, "copies": "modules"}
    extra = tuple(weight.model_copy(update=each) for weight in weights)
    return Block(d_model=d_model, extra=extra, extra_dims={"modules": modules})


def styled_attention(f: Fields, style: Style, window: int | None = None, **options: Any) -> Attention:
    """The attention block of one layer, from the config's head counts and the family's style."""
    fixed = {"qkv_bias": style.qkv_bias, "out_bias": style.out_bias, "qk_norm": style.qk_norm}
    return attention(read_heads(f), window=window, qk_norm_bias=style.qk_norm_bias, **{**fixed, **options})


def dense_mlp(f: Fields, style: Style, *, name: str = "intermediate_size") -> MLP:
    """The dense feed-forward block of width ``intermediate_size``."""
    return MLP(d_model=f.dim("hidden_size"), d_ff=f.dim(name), gated=style.gated, bias=style.mlp_bias)


_EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "num_routed_experts")


def routed(f: Fields, *, experts: str, top_k: str = "num_experts_per_tok", width: str, **options: Any) -> MoE:
    """A routed feed-forward block; the arguments name the config fields (other names of the count must agree)."""
    others = [name for name in _EXPERT_COUNTS if name != experts]
    sizes = {"d_model": f.dim("hidden_size"), "experts": f.dim(experts, *others), "top_k": f.dim(top_k)}
    check_top_k(f, top_k, sizes["top_k"], sizes["experts"])
    return MoE.model_validate({**sizes, "expert_ff": f.dim(width), **options})


def windows(f: Fields, n: int, default: Sequence[str] = (), *, field: str = "sliding_window") -> list[int | None]:
    """The attention window of each layer from ``layer_types`` (None: full attention)."""
    kinds = f.names("layer_types", among=("full_attention", "sliding_attention"), length=n) or list(default)
    window = f.optional(field)
    return [window or None if kind == "sliding_attention" else None for kind in kinds or ["full_attention"] * n]


def dense(per_layer: Sequence[int | None]) -> list[LayerKey]:
    """Keys of all-dense layers with these windows."""
    return [(window, "dense") for window in per_layer]


def every(n: int, period: int, *, last: str = "full_attention", other: str = "sliding_attention") -> list[str]:
    """Layer types where each ``period``-th layer is ``last``."""
    return [other if (i + 1) % period else last for i in range(n)]
