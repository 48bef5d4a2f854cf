"""Mamba, Falcon-Mamba and Mamba-2: stacks of one state-space mixer, without a feed-forward block."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.hybrid_parts import auto_dim
from ridgeline.arithmetic.configs.parts import assemble, norms
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.mixers import Mamba1, Mamba2
from ridgeline.arithmetic.spec import Layer, Mixer, ModelSpec, embedding_block


@reads("mamba", "falcon_mamba")
def mamba(f: Fields) -> ModelSpec:
    """Mamba and Falcon-Mamba; the norms that Falcon-Mamba puts on dt, B and C have no weights.

    A stored ``intermediate_size`` wins over ``expand``: Falcon-Mamba 7B publishes 8192 beside an ``expand`` of 16.
    """
    d_model = f.dim("hidden_size", "d_model")
    expand = f.dim("expand", default=2)
    f.skip("use_mambapy", "use_falcon_mambapy", "use_associative_scan", "time_step_*")
    mixer = Mamba1(
        d_model=d_model,
        d_inner=f.dim("intermediate_size", "d_inner", default=expand * d_model),
        d_state=f.dim("state_size", default=16),
        dt_rank=auto_dim(f, "time_step_rank", -(-d_model // 16)),
        conv_kernel=f.dim("conv_kernel", default=4),
        proj_bias=f.flag("use_bias", default=False),
        conv_bias=f.flag("use_conv_bias", default=True),
    )
    f.require("rms_norm", True)
    # kept beside the fields that are read when a checkpoint of the first release was converted
    f.skip("fused_add_norm", "pad_vocab_size_multiple")
    return _stack(f, mixer.mixer(), tied=f.flag("tie_word_embeddings", default=True))


@reads("mamba2")
def mamba2(f: Fields) -> ModelSpec:
    """Mamba-2 (also Codestral Mamba)."""
    d_model = f.dim("hidden_size")
    d_inner = f.dim("expand", default=2) * d_model
    heads, head_dim = f.dim("num_heads", default=128), f.dim("head_dim", default=64)
    if heads * head_dim != d_inner:
        raise f.error("num_heads", f"heads of {head_dim} that add up to expand * hidden_size ({d_inner})", heads)
    f.skip("time_step_*", "chunk_size", "intermediate_size", "norm_before_gate")
    f.require("rms_norm", True)
    bias = f.flag("use_bias", default=False)
    mixer = Mamba2(
        d_model=d_model,
        d_inner=d_inner,
        heads=heads,
        d_state=f.dim("state_size", default=128),
        groups=f.dim("n_groups", default=8),
        conv_kernel=f.dim("conv_kernel", default=4),
        in_bias=bias,
        out_bias=bias,
        conv_bias=f.flag("use_conv_bias", default=True),
    )
    return _stack(f, mixer.mixer(), tied=f.flag("tie_word_embeddings", default=False))


def _stack(f: Fields, mixer: Mixer, *, tied: bool) -> ModelSpec:
    layer = Layer(mixers=(mixer,), norms=norms(mixer.d_model, "input_norm"))
    embed = embedding_block(mixer.d_model, f.dim("vocab_size"), tied=tied)
    return assemble(f, embed, ((layer,), (0,) * f.layers("num_hidden_layers", "n_layer")), tied=tied)
