"""Llama and the dense decoders that differ from it by a flag or a default."""

from dataclasses import replace

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import (
    PLAIN,
    PRE_NORMS,
    Build,
    Extra,
    Style,
    decoder,
    dense,
    dense_mlp,
    every,
    extend,
    read_heads,
    styled_attention,
    windows,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLP, Attention, ModelSpec, Part, Weight, norm


def llama_style(f: Fields, usual: Style = PLAIN) -> Style:
    """The usual style with the bias flags of the Llama config."""
    bias = f.flag("attention_bias", default=False)
    return replace(usual, qkv_bias=bias, out_bias=bias, mlp_bias=f.flag("mlp_bias", default=False))


@reads("llama", "granite")
def llama(f: Fields) -> ModelSpec:
    """Llama 1 to 3 and the many models published in its format; Granite adds multipliers only."""
    return decoder(f, llama_style(f))


@reads("arcee")
def arcee(f: Fields) -> ModelSpec:
    """Llama with a plain MLP (squared ReLU)."""
    return decoder(f, llama_style(f, Style(gated=False)))


@reads("mistral")
def mistral(f: Fields) -> ModelSpec:
    """Mistral 7B to Small: every layer has the window of ``sliding_window``, or none."""
    f.assume(num_key_value_heads=8)
    n = f.layers()
    return decoder(f, Style(), Build(keys=dense(windows(f, n, ["sliding_attention"] * n))))


@reads("ministral")
def ministral(f: Fields) -> ModelSpec:
    """Mistral with layer types."""
    f.assume(num_key_value_heads=8)
    n = f.layers()
    default = ["full_attention" if f.config.get("sliding_window") is None else "sliding_attention"] * n
    return decoder(f, Style(), Build(keys=dense(windows(f, n, default))))


@reads("ministral3")
def ministral3(f: Fields) -> ModelSpec:
    """Ministral 3: Mistral with its own default widths; the window is for every layer."""
    f.assume(num_key_value_heads=8, head_dim=128)
    n = f.layers()
    f.skip("layer_types")
    window = f.optional("sliding_window", lowest=1)
    return decoder(f, Style(), Build(keys=dense([window] * n)))


@reads("exaone")
def exaone(f: Fields) -> ModelSpec:
    """EXAONE 3 and 3.5: Llama whose layers are named as in GPT-2."""
    f.assume(num_key_value_heads=8)
    n = f.layers("num_hidden_layers", "num_layers")
    return decoder(f, llama_style(f), Build(keys=dense([None] * n)))


@reads("cwm")
def cwm(f: Fields) -> ModelSpec:
    """Code World Model: one full layer to three windowed ones, the first full."""
    f.assume(num_key_value_heads=8, head_dim=128, sliding_window=8192)
    n = f.layers()
    f.require("mlp_bias", False)
    f.require("attention_bias", False)
    default = ["sliding_attention" if i % 4 else "full_attention" for i in range(n)]
    return decoder(f, Style(), Build(keys=dense(windows(f, n, default))))


@reads("jais2")
def jais2(f: Fields) -> ModelSpec:
    """Jais 2: plain MLP, LayerNorm, biases on by default."""
    bias = f.flag("attention_bias", default=True)
    mlp = f.flag("mlp_bias", default=True)
    return decoder(f, Style(qkv_bias=bias, out_bias=bias, mlp_bias=mlp, gated=False, norm_bias=True))


@reads("bitnet")
def bitnet(f: Fields) -> ModelSpec:
    """BitNet b1.58: a norm before the output projection and one before the down projection."""
    f.assume(num_key_value_heads=5)
    bias = f.flag("attention_bias", default=False)
    style = Style(qkv_bias=bias, out_bias=bias)
    inner = norm("sub_norm", "d_ff")

    def mlp(_: str) -> MLP:
        return extend(dense_mlp(f, style), Extra(inner))

    def mixer(_: int | None) -> Attention:
        return styled_attention(f, style, extra=norm("sub_norm", "d_model"))

    return decoder(f, style, Build(ffn=mlp, mixer=mixer))


@reads("nanochat")
def nanochat(f: Fields) -> ModelSpec:
    """nanochat: plain MLP, norms without parameters."""
    bias = f.flag("attention_bias", default=False)
    return decoder(f, Style(qkv_bias=bias, out_bias=bias, gated=False, norms=(), final_norm=False))


@reads("smollm3")
def smollm3(f: Fields) -> ModelSpec:
    """SmolLM3: tied, with layers that skip rotary positions."""
    f.assume(num_key_value_heads=4)
    return decoder(f, llama_style(f, Style(tied=True)), Build(keys=dense(windows(f, f.layers()))))


@reads("iquestcoder")
def iquestcoder(f: Fields) -> ModelSpec:
    """IQuest-Coder: Llama with wider default heads."""
    f.assume(num_key_value_heads=8, head_dim=128)
    return decoder(f, llama_style(f))


@reads("hyperclovax")
def hyperclovax(f: Fields) -> ModelSpec:
    """HyperCLOVA X: Granite with two more norms a layer, unless ``use_post_norm`` is off."""
    after = ("post_norm1", "post_norm2") if f.flag("use_post_norm", default=True) else ()
    return decoder(f, llama_style(f, Style(norms=(*PRE_NORMS, *after))))


@reads("helium")
def helium(f: Fields) -> ModelSpec:
    """Helium: Llama whose output projection never has a bias."""
    f.assume(head_dim=128, num_key_value_heads=20)
    heads = read_heads(f)
    if heads.heads * heads.head_dim != heads.d_model:
        raise f.error("head_dim", "hidden_size / heads: the output projection is square", heads.head_dim)
    return decoder(f, replace(llama_style(f), out_bias=False))


@reads("seed_oss")
def seed_oss(f: Fields) -> ModelSpec:
    """Seed-OSS: query, key and value biases on by default, the output bias has its own flag."""
    f.assume(head_dim=128, num_key_value_heads=8)
    style = Style(
        qkv_bias=f.flag("attention_bias", default=True),
        out_bias=f.flag("attention_out_bias", default=False),
        mlp_bias=f.flag("mlp_bias", default=False),
    )
    f.skip("residual_dropout")
    return decoder(f, style)


@reads("ernie4_5")
def ernie(f: Fields) -> ModelSpec:
    """ERNIE 4.5 dense: one flag for every bias."""
    f.assume(head_dim=128, num_key_value_heads=2)
    bias = f.flag("use_bias", default=False)
    return decoder(f, Style(tied=True, qkv_bias=bias, out_bias=bias, mlp_bias=bias))


@reads("apertus")
def apertus(f: Fields) -> ModelSpec:
    """Apertus: plain MLP with the trainable xIELU activation (two scalars a layer), per-head QK norm."""
    bias = f.flag("attention_bias", default=False)
    f.require("qk_norm", True)
    for name in ("post_norm", "mlp_bias"):
        f.require(name, False)
    style = Style(qkv_bias=bias, out_bias=bias, qk_norm="head", gated=False)
    f.require("hidden_act", "xielu")
    return decoder(f, style, Build(ffn=lambda _: _xielu_mlp(f, style)))


@reads("exaone4")
def exaone4(f: Fields) -> ModelSpec:
    """EXAONE 4: norms after the blocks, per-head QK norm, three windowed layers to one full."""
    f.assume(num_key_value_heads=32, sliding_window=4096)
    n = f.layers()
    norms = ("post_attention_norm", "post_feedforward_norm")
    pattern = f.config.get("sliding_window_pattern", 4)
    f.skip("sliding_window_pattern")
    default = exaone_pattern(f, n, pattern)
    return decoder(f, Style(qk_norm="head", norms=norms), Build(keys=dense(windows(f, n, default))))


def exaone_pattern(f: Fields, n: int, pattern: object) -> list[str]:
    """Layer types of a pattern written as a period (4) or as letters (``LLLG``)."""
    if not f.has("sliding_window") or not pattern:
        return ["full_attention"] * n
    if isinstance(pattern, str):
        letters = [pattern[i % len(pattern)] for i in range(n)]
        return ["full_attention" if c == "G" else "sliding_attention" for c in letters]
    return every(n, f.dim("sliding_window_pattern", default=4))


def _xielu_mlp(f: Fields, style: Style) -> MLP:
    block = dense_mlp(f, style)
    scalars = [Weight(name=f"act.alpha_{s}", part=Part.MLP, shape=("1",), matmul=False) for s in "pn"]
    return block.model_copy(update={"extra": tuple(scalars)})
