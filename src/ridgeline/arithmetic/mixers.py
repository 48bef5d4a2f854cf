"""Token mixers that are not softmax attention, as ``Mixer`` blocks: state space, linear attention, recurrence.

``core_flops`` counts the recurrence and the depthwise convolution of one token, forward: one FLOP per multiplication,
addition, division, exponential or maximum, in recurrent form (a chunked kernel trades more of them for matmuls).
Activations, norms and element-wise gates outside the recurrence are left out, as they are for a feed-forward block.
``state`` counts the elements of the recurrent state plus the last ``conv_kernel - 1`` inputs of the convolution.
"""

from dataclasses import dataclass

from ridgeline.arithmetic.spec import Mixer, Part, Weight, linear, norm

_M = Part.MIXER


def _table(name: str, *shape: str, copies: str = "1") -> Weight:
    """A tensor that no token multiplies by as a matrix: a decay, a skip, a bias, a convolution kernel."""
    return Weight(name=name, part=_M, shape=shape, matmul=False, copies=copies)


def _conv(channels: str, *, bias: bool) -> tuple[Weight, ...]:
    """A causal depthwise convolution of width ``conv_kernel``."""
    kernel = _table("conv", channels, "conv_kernel")
    return (kernel, _table("conv.bias", channels)) if bias else (kernel,)


@dataclass(frozen=True)
class Mamba1:
    """Sizes of a Mamba layer (Gu and Dao, 2023, arXiv:2312.00752).

    ``inner_norms`` are gains on dt, B and C (Jamba). ``heads`` splits the dt, B, C projections by channel (Zamba).
    """

    d_model: int
    d_inner: int
    d_state: int
    dt_rank: int
    conv_kernel: int
    proj_bias: bool = False
    conv_bias: bool = True
    inner_norms: bool = False
    heads: int = 1

    def mixer(self) -> Mixer:
        """The block."""
        width, copies = ("d_inner", "1") if self.heads == 1 else ("mixer_head_dim", "mixer_heads")
        select = Weight(name="x_proj", part=_M, shape=(width, "dt_rank+2*d_state"), copies=copies)
        step = Weight(name="dt_proj", part=_M, shape=("dt_rank", width), copies=copies)
        gains = norm("dt_norm", "dt_rank") + norm("b_norm", "d_state") + norm("c_norm", "d_state")
        weights = (
            *linear("in_proj", _M, "d_model", "2*d_inner", bias=self.proj_bias),
            *_conv("d_inner", bias=self.conv_bias),
            select,
            step,
            _table("dt_proj.bias", "d_inner"),
            _table("A_log", "d_inner", "d_state"),
            _table("D", "d_inner"),
            *linear("out_proj", _M, "d_inner", "d_model", bias=self.proj_bias),
            *(gains if self.inner_norms else ()),
        )
        dims = {"d_inner": self.d_inner, "d_state": self.d_state, "dt_rank": self.dt_rank}
        dims |= {"conv_kernel": self.conv_kernel}
        if self.heads > 1:
            dims |= {"mixer_heads": self.heads, "mixer_head_dim": self.d_inner // self.heads}
        # per state element: dt*A, exp, *B, decay*h, +, *C, + = 7; per channel: dt*x, D*x, + = 3
        scan_flops = self.d_inner * (7 * self.d_state + 3)
        return Mixer(
            kind="mamba",
            d_model=self.d_model,
            extra=weights,
            extra_dims=dims,
            state=self.d_inner * (self.d_state + self.conv_kernel - 1),
            core_flops=scan_flops + 2 * self.conv_kernel * self.d_inner,
        )


@dataclass(frozen=True)
class Mamba2:
    """Sizes of a Mamba-2 layer (Dao and Gu, 2024, arXiv:2405.21060); d_inner = heads * head_dim.

    ``gated_norm`` is the gain before the output projection.
    """

    d_model: int
    d_inner: int
    heads: int
    d_state: int
    groups: int
    conv_kernel: int
    in_bias: bool = False
    out_bias: bool = False
    conv_bias: bool = True
    gated_norm: bool = True

    def mixer(self) -> Mixer:
        """The block."""
        channels = "d_inner+2*groups*d_state"  # x, B and C go through the convolution
        weights = (
            *linear("in_proj", _M, "d_model", "2*d_inner+2*groups*d_state+mixer_heads", bias=self.in_bias),
            *_conv(channels, bias=self.conv_bias),
            *(_table(name, "mixer_heads") for name in ("dt_bias", "A_log", "D")),
            *(norm("gated_norm", "d_inner") if self.gated_norm else ()),
            *linear("out_proj", _M, "d_inner", "d_model", bias=self.out_bias),
        )
        dims = {"d_inner": self.d_inner, "mixer_heads": self.heads, "d_state": self.d_state}
        dims |= {"groups": self.groups, "conv_kernel": self.conv_kernel}
        conv_dim = self.d_inner + 2 * self.groups * self.d_state
        # per state element: decay*h, (dt*x)*B, +, *C, + = 5; per channel: dt*x, D*x, + = 3; per head: dt*A, exp = 2
        scan_flops = self.d_inner * (5 * self.d_state + 3) + 2 * self.heads
        return Mixer(
            kind="mamba2",
            d_model=self.d_model,
            extra=weights,
            extra_dims=dims,
            state=self.d_inner * self.d_state + conv_dim * (self.conv_kernel - 1),
            core_flops=scan_flops + 2 * self.conv_kernel * conv_dim,
        )


@dataclass(frozen=True)
class GatedDeltaNet:
    """Sizes of a gated delta net layer (Yang et al., 2024, arXiv:2412.06464) with an output gate and a head norm."""

    d_model: int
    k_heads: int
    v_heads: int
    k_dim: int
    v_dim: int
    conv_kernel: int

    def mixer(self) -> Mixer:
        """The block."""
        weights = (
            *linear("qkv_proj", _M, "d_model", "2*k_heads*k_dim+v_heads*v_dim"),
            *linear("gate_proj", _M, "d_model", "v_heads*v_dim"),
            *linear("ab_proj", _M, "d_model", "2*v_heads"),
            *_conv("2*k_heads*k_dim+v_heads*v_dim", bias=False),
            _table("dt_bias", "v_heads"),
            _table("A_log", "v_heads"),
            *norm("head_norm", "v_dim"),
            *linear("out_proj", _M, "v_heads*v_dim", "d_model"),
        )
        dims = {"k_heads": self.k_heads, "v_heads": self.v_heads, "k_dim": self.k_dim, "v_dim": self.v_dim}
        conv_dim = 2 * self.k_heads * self.k_dim + self.v_heads * self.v_dim
        state = self.v_heads * self.k_dim * self.v_dim
        # per state element: decay*S, S'k (2), + k*delta (2), S'q (2) = 7; per value channel: v - S'k, *beta = 2
        scan_flops = 7 * state + 2 * self.v_heads * self.v_dim
        return Mixer(
            kind="gated_delta_net",
            d_model=self.d_model,
            extra=weights,
            extra_dims=dims | {"conv_kernel": self.conv_kernel},
            state=state + conv_dim * (self.conv_kernel - 1),
            core_flops=scan_flops + 2 * self.conv_kernel * conv_dim,
        )


@dataclass(frozen=True)
class KimiDelta:
    """Sizes of a Kimi delta attention layer (Kimi Linear, 2025, arXiv:2510.26692): the decay is per key channel.

    ``low_rank``: decay and output gate go through ``head_dim`` channels; otherwise each is one full projection.
    ``full_gate``: the output gate is one in any case (Kimi K3).
    """

    d_model: int
    heads: int
    head_dim: int
    conv_kernel: int
    low_rank: bool = True
    full_gate: bool = False

    def _gate(self, name: str) -> tuple[Weight, ...]:
        width = "mixer_heads*mixer_head_dim"
        if not self.low_rank or (self.full_gate and name == "gate"):
            return linear(f"{name}_proj", _M, "d_model", width)
        down = linear(f"{name}_down", _M, "d_model", "mixer_head_dim")
        return down + linear(f"{name}_up", _M, "mixer_head_dim", width)

    def mixer(self) -> Mixer:
        """The block."""
        width = "mixer_heads*mixer_head_dim"
        weights = (
            *(w for name in ("q_proj", "k_proj", "v_proj") for w in linear(name, _M, "d_model", width)),
            *_conv(f"3*{width}", bias=False),
            *self._gate("decay"),
            _table("dt_bias", width),
            _table("A_log", "mixer_heads"),
            *linear("beta_proj", _M, "d_model", "mixer_heads"),
            *self._gate("gate"),
            *norm("head_norm", "mixer_head_dim"),
            *linear("out_proj", _M, width, "d_model"),
        )
        inner = self.heads * self.head_dim
        state = inner * self.head_dim
        # as the gated delta net: 7 per state element, 2 per value channel; and exp of the decay per key channel
        scan_flops = 7 * state + 3 * inner
        return Mixer(
            kind="kimi_delta_attention",
            d_model=self.d_model,
            extra=weights,
            extra_dims={"mixer_heads": self.heads, "mixer_head_dim": self.head_dim, "conv_kernel": self.conv_kernel},
            state=state + 3 * inner * (self.conv_kernel - 1),
            core_flops=scan_flops + 2 * self.conv_kernel * 3 * inner,
        )


def lightning_attention(d_model: int, heads: int, head_dim: int) -> Mixer:
    """Linear attention with a fixed decay per head, a norm and an output gate (MiniMax-01, arXiv:2501.08313)."""
    width = "mixer_heads*mixer_head_dim"
    weights = (
        *linear("qkv_proj", _M, "d_model", f"3*{width}"),
        *norm("out_norm", width),
        *linear("gate_proj", _M, "d_model", width),
        *linear("out_proj", _M, width, "d_model"),
    )
    state = heads * head_dim * head_dim
    return Mixer(
        kind="lightning_attention",
        d_model=d_model,
        extra=weights,
        extra_dims={"mixer_heads": heads, "mixer_head_dim": head_dim},
        state=state,
        core_flops=5 * state,  # per state element: decay*S, k*v, +, *q, +
    )


def short_conv(d_model: int, conv_kernel: int, *, bias: bool) -> Mixer:
    """The gated short convolution of LFM2 (arXiv:2511.23404): out(C * conv(B * x))."""
    weights = (
        *linear("in_proj", _M, "d_model", "3*d_model", bias=bias),
        *_conv("d_model", bias=bias),
        *linear("out_proj", _M, "d_model", "d_model", bias=bias),
    )
    return Mixer(
        kind="short_conv",
        d_model=d_model,
        extra=weights,
        extra_dims={"conv_kernel": conv_kernel},
        state=d_model * (conv_kernel - 1),
        core_flops=d_model * (2 * conv_kernel + 2),  # the convolution, and the gates B and C
    )


def rg_lru(d_model: int, width: int, heads: int, conv_kernel: int) -> Mixer:
    """The recurrent block of Griffin (De et al., 2024, arXiv:2402.19427): convolution, RG-LRU, gated output."""
    gates = (
        weight
        for name in ("input_gate", "recurrence_gate")
        for weight in (
            Weight(name=name, part=_M, shape=("block_width", "block_width"), copies="mixer_heads"),
            _table(f"{name}.bias", "mixer_heads*block_width"),
        )
    )
    sizes = {"lru_width": width, "mixer_heads": heads, "block_width": width // heads, "conv_kernel": conv_kernel}
    weights = (
        *linear("y_proj", _M, "d_model", "lru_width", bias=True),
        *linear("x_proj", _M, "d_model", "lru_width", bias=True),
        *_conv("lru_width", bias=True),
        *gates,
        _table("recurrence", "lru_width"),
        *linear("out_proj", _M, "lru_width", "d_model", bias=True),
    )
    return Mixer(
        kind="rg_lru",
        d_model=d_model,
        extra=weights,
        extra_dims=sizes,
        state=width * conv_kernel,  # the recurrence, and conv_kernel - 1 inputs
        # per channel: c*r*log(a) (2), exp, a*a, 1-, sqrt, i*x, *, a*h, + = 10; and the convolution
        core_flops=width * (10 + 2 * conv_kernel),
    )


def rwkv4_time_mix(d_model: int, width: int) -> Mixer:
    """Time mixing of RWKV-4 (Peng et al., 2023, arXiv:2305.13048): a decaying exponential average per channel."""
    weights = (
        _table("time_decay", "mixer_width"),
        _table("time_first", "mixer_width"),
        *(_table(f"mix_{name}", "d_model") for name in ("key", "value", "receptance")),
        *(w for name in ("key", "value", "receptance") for w in linear(name, _M, "d_model", "mixer_width")),
        *linear("output", _M, "mixer_width", "d_model"),
    )
    return Mixer(
        kind="rwkv4_time_mix",
        d_model=d_model,
        extra=weights,
        extra_dims={"mixer_width": width},
        state=d_model + 3 * width,  # the previous input; numerator, denominator and running maximum
        # three interpolations with the previous input, 3 each; per channel: score + (1), maximum (1), exp(. - max)
        # twice (4), numerator (3), denominator (2), for the output and again for the state; and one division
        core_flops=9 * d_model + 23 * width,
    )


def rwkv4_channel_mix(d_model: int, d_ff: int) -> Mixer:
    """Channel mixing of RWKV-4, in place of the feed-forward block: sigmoid(r) * value(relu(key)^2)."""
    weights = (
        *(Weight(name=f"mix_{n}", part=Part.MLP, shape=("d_model",), matmul=False) for n in ("key", "receptance")),
        *linear("key", Part.MLP, "d_model", "d_ff"),
        *linear("receptance", Part.MLP, "d_model", "d_model"),
        *linear("value", Part.MLP, "d_ff", "d_model"),
    )
    return Mixer(
        kind="rwkv4_channel_mix",
        d_model=d_model,
        extra=weights,
        extra_dims={"d_ff": d_ff},
        state=d_model,  # the previous input
        core_flops=6 * d_model,  # two interpolations with it, 3 each
    )


def mlstm(d_model: int, heads: int, qk_width: int, v_width: int, *, bias: bool) -> Mixer:
    """The matrix memory of xLSTM (Beck et al., 2024, arXiv:2405.04517; 7B: arXiv:2503.13427), scalar gates per head."""
    wide = (("q_proj", "qk_width"), ("k_proj", "qk_width"), ("v_proj", "v_width"), ("out_gate", "v_width"))
    weights = (
        *(w for name, width in wide for w in linear(name, _M, "d_model", width, bias=bias)),
        *(w for name in ("in_gate", "forget_gate") for w in linear(name, _M, "d_model", "mixer_heads", bias=True)),
        *norm("head_norm", "v_width", bias=bias),
        *linear("out_proj", _M, "v_width", "d_model", bias=bias),
    )
    memory = qk_width * v_width // heads
    return Mixer(
        kind="mlstm",
        d_model=d_model,
        extra=weights,
        extra_dims={"mixer_heads": heads, "qk_width": qk_width, "v_width": v_width},
        state=memory + qk_width + heads,  # the memory, its normalizer, and the running maximum of the gates
        # per memory element: f*C, k*v, +, *q, + = 5; per key channel: i*k, f*n, +, n*q, + = 5; per value channel: / ;
        # per head: log f + m, max, and two exponentials of a difference = 6
        core_flops=5 * memory + 5 * qk_width + v_width + 6 * heads,
    )
