"""The closed forms of the napkin: ``C = 6*N*D`` and where it stops being true. Numbers or arrays of candidates alike.

Legend: N = parameters, D = tokens, C = training FLOPs, T = positions in a sequence, L = layers, d = residual width,
m, k, n = a matmul [m, k] x [k, n]. Source of 6ND: Kaplan et al. 2020 (arXiv:2001.08361), section 2.1.
"""

from dataclasses import dataclass

from ridgeline.arithmetic.inputs import require_not_negative, require_positive, under
from ridgeline.arithmetic.tiles import MatmulShape
from ridgeline.core.quantity import Quantity, derive


@dataclass(frozen=True)
class Shape6ND:
    """What the attention term of the napkin needs: ``n`` parameters, ``layers``, ``d_model``, ``seq`` tokens."""

    n: Quantity
    layers: Quantity
    d_model: Quantity
    seq: Quantity


def training_compute(n: Quantity, d: Quantity, prefix: str = "") -> Quantity:
    """``training.compute`` (FLOP): 6 N D, attention scores left out."""
    require_positive(n, d)
    return derive(under(prefix, "training.compute"), "6*N*D", "FLOP", N=n, D=d).titled("Training compute")


def tokens_per_param(n: Quantity, d: Quantity, prefix: str = "") -> Quantity:
    """``training.tokens_per_param``: D/N, a plain number."""
    require_positive(n, d)
    name = under(prefix, "training.tokens_per_param")
    return derive(name, "count(D)/count(N)", "1", N=n, D=d).titled("Tokens per parameter")


def flops_per_token(n: Quantity, recomputed: Quantity, prefix: str = "") -> Quantity:
    """``flops.napkin_per_token`` (FLOP/token): 6N, and 2N more for the share of the forward pass that is recomputed.

    ``recomputed`` 0 gives the 6N of MFU, 1 the 8N of HFU under full recompute.
    """
    require_positive(n)
    require_not_negative(recomputed)
    name = under(prefix, "flops.napkin_per_token")
    return derive(name, "(6 + 2*recomputed)*N", "FLOP/token", N=n, recomputed=recomputed)


def attention_per_token(shape: Shape6ND, prefix: str = "") -> Quantity:
    """``flops.attention_per_token`` (FLOP/token): 12 L d T, training, mask not halved, heads*head_dim = d."""
    require_positive(shape.layers, shape.d_model, shape.seq)
    inputs = {"L": shape.layers, "d": shape.d_model, "T": shape.seq}
    return derive(under(prefix, "flops.attention_per_token"), "12*L*d*count(T)", "FLOP/token", **inputs)


def attention_share(shape: Shape6ND, prefix: str = "") -> Quantity:
    """``attention.share`` (percent): 12LdT/(6N + 12LdT). Past T = N/(2Ld) attention is the larger half."""
    core = attention_per_token(shape, prefix)
    found = derive(under(prefix, "attention.share"), "core/(6*N + core)", "%", core=core, N=shape.n)
    return found.titled("Attention's share of the FLOPs")


def error_of_6nd(shape: Shape6ND, prefix: str = "") -> Quantity:
    """``attention.error_of_6nd`` (percent): what 6ND leaves out, 12LdT/6N."""
    core = attention_per_token(shape, prefix)
    found = derive(under(prefix, "attention.error_of_6nd"), "core/(6*N)", "%", core=core, N=shape.n)
    return found.titled("FLOPs that 6ND leaves out")


def matmul_flops(shape: MatmulShape, prefix: str = "") -> Quantity:
    """``matmul.forward`` (FLOP): 2 m k n."""
    require_positive(*shape.sides.values())
    return derive(under(prefix, "matmul.forward"), "2*m*k*n", "FLOP", **shape.sides)


def matmul_backward(shape: MatmulShape, prefix: str = "") -> Quantity:
    """``matmul.backward`` (FLOP): the input's gradient [m, n] x [n, k] and the weight's [k, m] x [m, n]."""
    require_positive(*shape.sides.values())
    return derive(under(prefix, "matmul.backward"), "2*m*n*k + 2*k*m*n", "FLOP", **shape.sides)


@dataclass(frozen=True)
class GatedLayer:
    """One gated multi-head layer: B sequences of T positions, width D, MLP width F, N heads of H."""

    b: Quantity
    t: Quantity
    d: Quantity
    f: Quantity
    heads: Quantity
    head_dim: Quantity


def gated_layer_flops(layer: GatedLayer, prefix: str = "") -> Quantity:
    """``flops.gated_layer`` (FLOP): 18BTDF + 24BTDNH of training, which is 6BT(3DF + 4DNH): 6 per weight and token."""
    inputs = {"B": layer.b, "T": layer.t, "D": layer.d, "F": layer.f, "N": layer.heads, "H": layer.head_dim}
    name = under(prefix, "flops.gated_layer")
    return derive(name, "18*B*count(T)*D*F + 24*B*count(T)*D*N*H", "FLOP", **inputs)
