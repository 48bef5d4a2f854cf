"""What a model *is*: frozen blocks with symbolic weight shapes.

A block lists its weights with shapes written over its own dimensions (``"d_model" x "heads*head_dim"``).
Parameter counts, matmuls, FLOPs and memory all walk that one list, so no cost model can disagree with
the parameter count about what the model contains.

Legend: d_model = residual width, d_ff = MLP width, heads/kv_heads = query/key-value heads,
head_dim = width of one query/key head, v_head_dim = width of one value head.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

# 2**40 is far above any dimension ever trained; it keeps products exact in Python integers.
Dim = Annotated[int, Field(gt=0, le=2**40)]
Count = Annotated[int, Field(ge=0, le=2**40)]


class Part(StrEnum):
    """Where a parameter is accounted. The names are those of ``params.<part>`` in a Case."""

    EMBEDDING = "embedding"  # input token table (the tied table is counted here, once), positions, per-layer tables
    HEAD = "head"  # an untied output projection and its bias
    ATTENTION = "attention"
    MIXER = "mixer"  # state-space, linear-attention, convolution and recurrent token mixers
    MLP = "mlp"  # dense feed-forward
    EXPERTS = "experts"  # routed experts
    SHARED_EXPERTS = "shared_experts"
    ROUTER = "router"
    NORM = "norm"
    MTP = "mtp"  # multi-token-prediction modules
    VISION = "vision"  # vision or audio towers and projectors
    OTHER = "other"


class Frozen(BaseModel):
    """Immutable, no unknown fields: a misspelt field is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Weight(Frozen):
    """One trainable tensor, ``copies`` times.

    ``shape`` holds expressions over the owning block's dims (``"heads*head_dim"``) or plain integers.
    ``copies`` is the number stored, ``active`` the number one token uses (experts: all against top-k).
    ``matmul`` is true when a token multiplies by it; a table that is only looked up, a norm, a bias or a
    scale is not a matmul.
    """

    name: str
    part: Part
    shape: tuple[str, ...]
    matmul: bool = True
    copies: str = "1"
    active: str | None = None  # None: the same as copies

    def per_copy(self) -> str:
        """The size of one copy as a product."""
        return "*".join(_paren(side) for side in self.shape)

    def formula(self, *, active: bool = False) -> str:
        """The parameter count as a printable product over the block's dims."""
        copies = (self.active or self.copies) if active else self.copies
        return self.per_copy() if copies == "1" else f"{_paren(copies)}*{self.per_copy()}"


def _paren(term: str) -> str:
    return f"({term})" if any(sign in term for sign in "+-/ ") else term


def norm(name: str, width: str, *, bias: bool = False, copies: str = "1") -> tuple[Weight, ...]:
    """A norm's gain, and its bias when it has one (LayerNorm has, RMSNorm has not)."""
    gain = Weight(name=name, part=Part.NORM, shape=(width,), matmul=False, copies=copies)
    return (gain, gain.model_copy(update={"name": f"{name}.bias"})) if bias else (gain,)


class Block(Frozen):
    """Anything with weights. ``dims`` gives every symbol that a weight's shape may use."""

    d_model: Dim
    extra: tuple[Weight, ...] = ()  # what the family adds: sinks, indexers, scales; same symbols, plus extra_dims
    extra_dims: Mapping[str, int] = Field(default_factory=dict)

    def own_weights(self) -> tuple[Weight, ...]:
        """The weights every block of this class has; ``extra`` comes on top."""
        return ()

    @cached_property
    def weights(self) -> tuple[Weight, ...]:
        """All weights of the block, in reading order."""
        return self.own_weights() + self.extra

    @cached_property
    def dims(self) -> dict[str, int]:
        """Symbol -> integer for every integer field, and ``extra_dims``."""
        fields = {k: v for k, v in self.__dict__.items() if isinstance(v, int) and not isinstance(v, bool)}
        return fields | dict(self.extra_dims)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


class Attention(Block):
    """Multi-head, grouped-query or multi-query attention, full or windowed.

    ``window`` is the number of keys a query sees (itself included); ``chunk`` restarts attention at block
    borders (Llama 4); ``sparse_top_k`` keeps that many keys per query after an indexer (DeepSeek sparse
    attention). ``kv_shared`` reuses an earlier layer's keys and values: no k/v weights, no cache of its own.
    ``out_gate`` adds a gate as wide as the attention output to the query projection (Qwen3-Next).
    ``d_in`` is the width that queries, keys and values read when it is not d_model (Zamba).
    """

    kind: Literal["attention"] = "attention"
    heads: Dim
    kv_heads: Dim
    head_dim: Dim
    v_head_dim: Dim
    window: Dim | None = None
    chunk: Dim | None = None
    sparse_top_k: Dim | None = None
    causal: bool = True
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: Literal["none", "head", "full"] = "none"  # per head_dim, or over the whole projection
    qk_norm_bias: bool = False
    kv_shared: bool = False
    k_equals_v: bool = False  # one projection serves keys and values (Gemma 4 global layers)
    out_gate: bool = False
    d_in: Dim | None = None

    @model_validator(mode="after")
    def _heads_divide(self) -> "Attention":
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads ({self.kv_heads}) must divide heads ({self.heads})")
        return self

    def own_weights(self) -> tuple[Weight, ...]:
        q_width = "2*heads*head_dim" if self.out_gate else "heads*head_dim"
        d_in = "d_model" if self.d_in is None else "d_in"
        sides = [("q_proj", d_in, q_width, self.qkv_bias)]
        if not self.kv_shared:
            sides.append(("k_proj", d_in, "kv_heads*head_dim", self.qkv_bias))
            if not self.k_equals_v:
                sides.append(("v_proj", d_in, "kv_heads*v_head_dim", self.qkv_bias))
        sides.append(("o_proj", "heads*v_head_dim", "d_model", self.out_bias))
        weights = [w for name, rows, cols, bias in sides for w in linear(name, Part.ATTENTION, rows, cols, bias=bias)]
        return (*weights, *self._qk_norm_weights())

    def _qk_norm_weights(self) -> tuple[Weight, ...]:
        if self.qk_norm == "none":
            return ()
        full = self.qk_norm == "full"
        weights = norm("q_norm", "heads*head_dim" if full else "head_dim", bias=self.qk_norm_bias)
        if self.kv_shared:
            return weights
        return weights + norm("k_norm", "kv_heads*head_dim" if full else "head_dim", bias=self.qk_norm_bias)


class MLA(Block):
    """Multi-head latent attention (DeepSeek-V2): keys and values rebuilt from a cached low-rank latent.

    head_dim of the score is ``qk_nope + qk_rope``; ``q_rank`` None means a full-rank query projection.
    """

    kind: Literal["mla"] = "mla"
    heads: Dim
    q_rank: Dim | None = None
    kv_rank: Dim
    qk_nope: Count
    qk_rope: Count
    v_head_dim: Dim
    bias: bool = False  # on the down-projections and the output projection
    sparse_top_k: Dim | None = None
    causal: bool = True

    def own_weights(self) -> tuple[Weight, ...]:
        a = Part.ATTENTION
        if self.q_rank is None:
            query = linear("q_proj", a, "d_model", "heads*(qk_nope+qk_rope)")
        else:
            query = (
                *linear("q_a_proj", a, "d_model", "q_rank", bias=self.bias),
                *norm("q_a_norm", "q_rank"),
                *linear("q_b_proj", a, "q_rank", "heads*(qk_nope+qk_rope)"),
            )
        return (
            *query,
            *linear("kv_a_proj", a, "d_model", "kv_rank+qk_rope", bias=self.bias),
            *norm("kv_a_norm", "kv_rank"),
            *linear("kv_b_proj", a, "kv_rank", "heads*(qk_nope+v_head_dim)"),
            *linear("o_proj", a, "heads*v_head_dim", "d_model", bias=self.bias),
        )


class CompressedAttention(Block):
    """Attention over a window and over a compressed past (DeepSeek-V4): one shared head serves as keys and values.

    Queries and the output pass through low-rank projections, the output one in ``out_groups`` blocks. ``compress``
    is the number of tokens that become one entry of the compressed past (0: window only). With ``overlap`` entries
    are built from two neighbouring spans, and an indexer of ``index_heads`` picks ``sparse_top_k`` of them.
    """

    kind: Literal["compressed_attention"] = "compressed_attention"
    heads: Dim
    head_dim: Dim
    q_rank: Dim
    out_groups: Dim
    group_width: Dim  # heads*head_dim / out_groups
    out_rank: Dim
    window: Dim
    compress: Count = 0
    overlap: bool = False
    index_heads: Count = 0
    index_dim: Count = 0
    sparse_top_k: Dim | None = None
    causal: bool = True

    @model_validator(mode="after")
    def _groups_divide(self) -> "CompressedAttention":
        if self.out_groups * self.group_width != self.heads * self.head_dim:
            raise ValueError(f"{self.out_groups} groups of {self.group_width} must make up heads*head_dim")
        return self

    def own_weights(self) -> tuple[Weight, ...]:
        a = Part.ATTENTION
        weights = (
            *linear("q_a_proj", a, "d_model", "q_rank"),
            *norm("q_a_norm", "q_rank"),
            *linear("q_b_proj", a, "q_rank", "heads*head_dim"),
            *linear("kv_proj", a, "d_model", "head_dim"),
            *norm("kv_norm", "head_dim"),
            # Block-diagonal: group g maps its share of the heads to its own out_rank columns.
            Weight(name="o_a_proj", part=a, shape=("group_width", "out_rank"), copies="out_groups"),
            *linear("o_b_proj", a, "out_groups*out_rank", "d_model"),
            Weight(name="sinks", part=a, shape=("heads",), matmul=False),
        )
        if not self.compress:
            return weights
        weights += self._compressor("compressor", "2*head_dim" if self.overlap else "head_dim", "head_dim")
        if not self.index_heads:
            return weights
        return (
            *weights,
            *self._compressor("indexer", "2*index_dim", "index_dim"),
            *linear("indexer.q_b_proj", a, "q_rank", "index_heads*index_dim"),
            *linear("indexer.head_weights", a, "d_model", "index_heads"),
        )

    @staticmethod
    def _compressor(name: str, width: str, normed: str) -> tuple[Weight, ...]:
        """Entry and gate projections, a bias per position in the span, and a norm on the entries."""
        a = Part.ATTENTION
        return (
            *linear(f"{name}.kv_proj", a, "d_model", width),
            *linear(f"{name}.gate_proj", a, "d_model", width),
            Weight(name=f"{name}.position_bias", part=a, shape=("compress", width), matmul=False),
            *norm(f"{name}.kv_norm", normed),
        )


class Mixer(Block):
    """Any other token mixer: Mamba, Mamba-2, gated delta net, RWKV, RG-LRU, short convolution.

    The family file lists every weight in ``extra`` over ``extra_dims``. ``state`` is the number of elements
    one sequence keeps between tokens (its whole "cache", independent of length). ``core_flops`` is the
    forward FLOPs per token that are not multiplications by a weight (scan, recurrence).
    """

    kind: str
    state: Count = 0
    core_flops: Count = 0


class MLP(Block):
    """Feed-forward block: two matmuls, three when gated (SwiGLU, GeGLU)."""

    kind: Literal["mlp"] = "mlp"
    d_ff: Dim
    gated: bool = True
    bias: bool = False

    def own_weights(self) -> tuple[Weight, ...]:
        return mlp_weights(Part.MLP, "d_ff", gated=self.gated, bias=self.bias)


class MoE(Block):
    """Routed experts of width ``expert_ff``, ``top_k`` per token, plus an always-on shared expert.

    ``shared_ff`` is the total width of the shared experts (0: none). ``shared_gate`` is a d_model -> 1 gate on it.
    ``latent`` is the width the routed experts read and write when a projection shared by all of them goes down to it
    and another comes back (Nemotron 3); None: d_model.
    """

    kind: Literal["moe"] = "moe"
    experts: Dim
    top_k: Dim
    expert_ff: Dim
    gated: bool = True
    bias: bool = False  # on the experts
    shared_ff: Count = 0
    shared_gate: bool = False
    router_bias: bool = False
    latent: Dim | None = None

    @model_validator(mode="after")
    def _top_k_fits(self) -> "MoE":
        if self.top_k > self.experts:
            raise ValueError(f"top_k ({self.top_k}) must not exceed experts ({self.experts})")
        return self

    def own_weights(self) -> tuple[Weight, ...]:
        width = "d_model" if self.latent is None else "latent"
        routed = mlp_weights(Part.EXPERTS, "expert_ff", gated=self.gated, bias=self.bias, d_model=width)
        weights = linear("router", Part.ROUTER, "d_model", "experts", bias=self.router_bias)
        weights += tuple(w.model_copy(update={"copies": "experts", "active": "top_k"}) for w in routed)
        if self.latent is not None:
            weights += linear("latent_down", Part.MLP, "d_model", "latent")
            weights += linear("latent_up", Part.MLP, "latent", "d_model")
        if self.shared_ff:
            weights += mlp_weights(Part.SHARED_EXPERTS, "shared_ff", gated=self.gated, prefix="shared_")
        if self.shared_gate:
            weights += linear("shared_gate", Part.SHARED_EXPERTS, "d_model", "1")
        return weights


def linear(name: str, part: Part, rows: str, cols: str, *, bias: bool = False) -> tuple[Weight, ...]:
    """A projection from ``rows`` to ``cols``, and its bias when it has one."""
    weight = Weight(name=name, part=part, shape=(rows, cols))
    return (weight, Weight(name=f"{name}.bias", part=part, shape=(cols,), matmul=False)) if bias else (weight,)


def mlp_weights(
    part: Part, width: str, *, gated: bool, bias: bool = False, prefix: str = "", d_model: str = "d_model"
) -> tuple[Weight, ...]:
    """The matmuls of one feed-forward block of the given width, from ``d_model`` and back."""
    ups = ("gate_proj", "up_proj") if gated else ("up_proj",)
    weights = [w for name in ups for w in linear(prefix + name, part, d_model, width, bias=bias)]
    return (*weights, *linear(f"{prefix}down_proj", part, width, d_model, bias=bias))


AnyMixer = Attention | MLA | CompressedAttention | Mixer
AnyFfn = MLP | MoE | Mixer


class Layer(Frozen):
    """One residual layer: token mixer, feed-forward (either may be absent), and its norms.

    ``norms`` is a ``Block`` that holds the norms and whatever else sits on the residual stream: scales,
    hyper-connections, per-layer inputs. ``stored`` is how many physical copies the model keeps when layers share
    weights (Zamba's shared block); None: one per use.
    """

    mixers: tuple[AnyMixer, ...] = ()  # more than one: side by side (Falcon-H1) or in turn (LongCat)
    ffns: tuple[AnyFfn, ...] = ()  # more than one: dense beside MoE (Gemma 4, LongCat)
    norms: Block
    stored: Dim | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Every block of the layer."""
        return (*self.mixers, *self.ffns, self.norms)


class ModelSpec(Frozen):
    """A whole model.

    ``kinds`` are the distinct layers and ``pattern`` the order in which they are applied
    (``pattern[i]`` is the index into ``kinds`` of layer i). ``embed`` holds everything outside the layers:
    token table, positions, embedding norm, final norm, untied head, vision tower. ``mtp`` holds the
    multi-token-prediction modules, which are trained but not part of the served model.
    ``provenance`` says for each field where it came from: config, derived, default, user.
    ``ignored`` lists the config fields that are known not to change any count.
    """

    name: str
    family: str
    d_model: Dim
    vocab: Dim
    tied: bool
    kinds: tuple[Layer, ...]
    pattern: tuple[int, ...]
    embed: Block
    mtp: tuple[Layer, ...] = ()
    mtp_extra: Block | None = None
    max_context: Dim | None = None
    provenance: Mapping[str, str] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _pattern_indexes_kinds(self) -> "ModelSpec":
        bad = [i for i in self.pattern if not 0 <= i < len(self.kinds)]
        if bad:
            raise ValueError(f"pattern names layer kind {bad[0]}, but there are {len(self.kinds)} kinds")
        return self

    @property
    def layers(self) -> int:
        """Number of residual layers applied to a token."""
        return len(self.pattern)

    def uses(self, kind: int) -> int:
        """How many layers are of this kind."""
        return self.pattern.count(kind)


def embedding_block(
    d_model: int, vocab: int, *, tied: bool, final_norm: bool = True, norm_bias: bool = False, head_bias: bool = False
) -> Block:
    """Token table, untied head and final norm: what almost every model has outside its layers."""
    weights = [Weight(name="embed_tokens", part=Part.EMBEDDING, shape=("vocab", "d_model"), matmul=tied)]
    if not tied:
        weights += linear("lm_head", Part.HEAD, "d_model", "vocab", bias=head_bias)
    elif head_bias:
        weights.append(Weight(name="lm_head.bias", part=Part.HEAD, shape=("vocab",), matmul=False))
    if final_norm:
        weights += norm("final_norm", "d_model", bias=norm_bias)
    return Block(d_model=d_model, extra=tuple(weights), extra_dims={"vocab": vocab})
