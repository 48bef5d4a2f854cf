"""A model in a dozen keys: what a TOML file or a candidate of a search says, made into a `ModelSpec`.

name = "mid-30b"
layers = 60
d_model = 6656
d_ff = 17920          # width of the dense MLP; needed unless every layer is a mixture of experts
heads = 52
kv_heads = 4          # default: as many as heads
head_dim = 128        # default: d_model / heads
vocab = 128256
tied = false          # one table for input and output
gated = true          # SwiGLU: three matmuls, not two

experts = 64          # with top_k and expert_ff: a mixture of experts
top_k = 8
expert_ff = 1536
shared_ff = 0         # total width of the shared experts
dense_layers = 1      # the first layers that stay dense

window = 4096         # sliding-window attention ...
full_every = 4        # ... except every fourth layer; without it every layer has the window
qk_norm = false
qkv_bias = false
context = 8192        # the longest context it is trained for
"""

from typing import Annotated

from pydantic import Field, model_validator

from ridgeline.arithmetic.spec import (
    MLP,
    Attention,
    Block,
    Count,
    Dim,
    Layer,
    ModelSpec,
    MoE,
    embedding_block,
    norm,
)
from ridgeline.core.errors import InputError
from ridgeline.core.specs import Spec

Layers = Annotated[int, Field(gt=0, le=2**16)]  # one entry of the pattern each


class Shape(Spec):
    """The keys above. Sizes are positive integers; an unknown key is refused."""

    name: str = "model"
    layers: Layers
    d_model: Dim
    d_ff: Dim | None = None
    heads: Dim
    kv_heads: Dim | None = None
    head_dim: Dim | None = None
    vocab: Dim
    tied: bool = False
    gated: bool = True
    experts: Dim | None = None
    top_k: Dim | None = None
    expert_ff: Dim | None = None
    shared_ff: Count = 0
    dense_layers: Count = 0
    window: Dim | None = None
    full_every: Dim | None = None
    qk_norm: bool = False
    qkv_bias: bool = False
    context: Dim | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> "Shape":
        self._check_heads()
        self._check_experts()
        if self.d_ff is None and (self.experts is None or self.dense_layers):
            raise InputError.expected("d_ff, the width of the dense MLP", None, where="$.d_ff")
        if self.full_every is not None and self.window is None:
            raise InputError.expected("a window beside full_every", None, where="$.window")
        return self

    def _check_heads(self) -> None:
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise InputError.expected(f"a divisor of the {self.heads} heads", self.kv_heads, where="$.kv_heads")
        if self.head_dim is None and self.d_model % self.heads:
            expected = f"a divisor of d_model ({self.d_model}), or a head_dim"
            raise InputError.expected(expected, self.heads, where="$.heads")

    def _check_experts(self) -> None:
        keys = {"experts": self.experts, "top_k": self.top_k, "expert_ff": self.expert_ff}
        missing = [key for key, value in keys.items() if value is None]
        if missing and (len(missing) < len(keys) or self.shared_ff or self.dense_layers):
            raise InputError.expected("experts, top_k and expert_ff together", None, where=f"$.{missing[0]}")
        if self.experts is not None and self.top_k is not None and self.top_k > self.experts:
            raise InputError.expected(f"at most the {self.experts} experts there are", self.top_k, where="$.top_k")
        if self.dense_layers > self.layers:
            raise InputError.expected(f"at most the {self.layers} layers", self.dense_layers, where="$.dense_layers")


def model(shape: Shape) -> ModelSpec:
    """The whole model: pre-norm RMSNorm decoder layers, token table, final norm and head."""
    keys = [(_is_dense(shape, i), _has_window(shape, i)) for i in range(shape.layers)]
    distinct = list(dict.fromkeys(keys))
    given = shape.model_dump(exclude_unset=True)
    return ModelSpec(
        name=shape.name,
        family="shape",
        d_model=shape.d_model,
        vocab=shape.vocab,
        tied=shape.tied,
        kinds=tuple(_layer(shape, dense=dense, windowed=windowed) for dense, windowed in distinct),
        pattern=tuple(distinct.index(key) for key in keys),
        embed=embedding_block(shape.d_model, shape.vocab, tied=shape.tied),
        max_context=shape.context,
        provenance={key: "user" if key in given else "default" for key in Shape.model_fields},
    )


def _is_dense(shape: Shape, layer: int) -> bool:
    return shape.experts is None or layer < shape.dense_layers


def _has_window(shape: Shape, layer: int) -> bool:
    return shape.window is not None and (shape.full_every is None or (layer + 1) % shape.full_every != 0)


def _layer(shape: Shape, *, dense: bool, windowed: bool) -> Layer:
    head_dim = shape.head_dim or shape.d_model // shape.heads
    mixer = Attention(
        d_model=shape.d_model,
        heads=shape.heads,
        kv_heads=shape.kv_heads or shape.heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        window=shape.window if windowed else None,
        qkv_bias=shape.qkv_bias,
        qk_norm="head" if shape.qk_norm else "none",
    )
    gains = norm("input_norm", "d_model") + norm("post_attention_norm", "d_model")
    return Layer(mixers=(mixer,), ffns=(_ffn(shape, dense=dense),), norms=Block(d_model=shape.d_model, extra=gains))


def _ffn(shape: Shape, *, dense: bool) -> MLP | MoE:
    if dense:
        assert shape.d_ff is not None
        return MLP(d_model=shape.d_model, d_ff=shape.d_ff, gated=shape.gated)
    assert shape.experts is not None
    assert shape.top_k is not None
    assert shape.expert_ff is not None
    return MoE(
        d_model=shape.d_model,
        experts=shape.experts,
        top_k=shape.top_k,
        expert_ff=shape.expert_ff,
        gated=shape.gated,
        shared_ff=shape.shared_ff,
    )
