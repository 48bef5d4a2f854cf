"""Nemotron-H and Nemotron 3: one block per layer (Mamba-2, attention, feed-forward or experts), in any order."""

from collections.abc import Callable

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.hybrid_parts import FULL, LINEAR, layer_types
from ridgeline.arithmetic.configs.parts import (
    assemble,
    attention,
    check_top_k,
    expand,
    norms,
    prediction_join,
    read_heads,
)
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.mixers import Mamba2
from ridgeline.arithmetic.spec import (
    MLP,
    Block,
    Layer,
    Mixer,
    ModelSpec,
    MoE,
    Part,
    Weight,
    embedding_block,
)

_LETTERS = {"M": LINEAR, "*": FULL, "E": "moe", "-": "mlp"}
_KINDS = tuple(_LETTERS.values())


@reads("nemotron_h")
def nemotron_h(f: Fields) -> ModelSpec:
    """Nemotron-H, Nemotron Nano 2, Nemotron 3: ungated feed-forward blocks, experts perhaps in a latent width."""
    kinds = _order(f, "layers_block_type", "layer_types", pattern="hybrid_override_pattern")
    if kinds is None:
        kinds = [LINEAR, "moe", FULL, "mlp"]
    n = f.optional("num_hidden_layers")
    if n is not None and n != len(kinds):
        raise f.error("num_hidden_layers", f"{len(kinds)}, the length of the layer pattern", n)
    # The published code and later readers of these configs disagree about what the other values store.
    f.require("tie_word_embeddings", False)
    f.require("attention_bias", False)
    f.skip("mamba_proj_bias", "mamba_ssm_cache_dtype", "mamba_hidden_act", "mlp_hidden_act", "use_mamba_kernels")
    f.skip("time_step_*", "mamba_dt_*", "chunk_size", "mamba_chunk_size")
    d_model, build = f.dim("hidden_size"), _builder(f)
    mtp, mtp_extra = _mtp(f, build)
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=False)
    return assemble(f, embed, expand(kinds, build), tied=False, mtp=mtp, mtp_extra=mtp_extra)


def _order(f: Fields, *lists: str, pattern: str) -> list[str] | None:
    """The layer kinds from a list of names or a pattern of letters such as ``M-M*E``."""
    kinds = layer_types(f, *lists, among=_KINDS, length=None)
    letters = f.text(pattern, default=None)
    unknown = sorted(set(letters) - set(_LETTERS))
    if unknown:
        raise f.error(pattern, f"the letters {' '.join(_LETTERS)}", "".join(unknown))
    spelt = [_LETTERS[letter] for letter in letters] or None
    if kinds and spelt and kinds != spelt:
        raise f.error(pattern, f"the layers of {lists[0]}")
    return spelt if kinds is None else kinds


def _builder(f: Fields) -> Callable[[str], Layer]:
    """Builds the layer of a kind; what no layer uses is declared read all the same."""
    d_model = f.dim("hidden_size")
    gains = norms(d_model, "input_norm")
    f.assume(num_key_value_heads=8)
    head_dim = f.dim("head_dim", "attention_head_dim", default=128, null=128)
    f.assume(head_dim=head_dim)
    heads, mixer = read_heads(f), _mamba(f)
    mlp_bias, width = f.flag("mlp_bias", default=False), f.dim("intermediate_size", default=21504)
    f.skip("moe_*", "n_routed_experts", "n_shared_experts", "num_local_experts", "num_experts_per_tok")

    def build(kind: str) -> Layer:
        match kind:
            case "linear_attention":
                return Layer(mixers=(mixer,), norms=gains)
            case "full_attention":
                return Layer(mixers=(attention(heads),), norms=gains)
            case "mlp":
                plain = MLP(d_model=d_model, d_ff=width, gated=False, bias=mlp_bias)
                return Layer(ffns=(plain,), norms=gains)
            case _:
                return Layer(ffns=(_moe(f, d_model, bias=mlp_bias),), norms=gains)

    return build


def _mamba(f: Fields) -> Mixer:
    heads, head_dim = f.dim("mamba_num_heads", default=128), f.dim("mamba_head_dim", default=64)
    bias = f.flag("use_bias", default=False)
    f.skip("expand", "mamba_expand")  # the inner width is heads * head_dim, whatever this says
    return Mamba2(
        d_model=f.dim("hidden_size"),
        d_inner=heads * head_dim,
        heads=heads,
        d_state=f.dim("ssm_state_size", default=128),
        groups=f.dim("mamba_n_groups", "n_groups", default=8),
        conv_kernel=f.dim("mamba_d_conv", "conv_kernel", default=4),
        in_bias=bias,
        out_bias=bias,
        conv_bias=f.flag("mamba_conv_bias", "use_conv_bias", default=True),
    ).mixer()


def _moe(f: Fields, d_model: int, *, bias: bool) -> MoE:
    experts = f.dim("n_routed_experts", "num_local_experts", default=8)
    top_k = f.dim("num_experts_per_tok", default=2)
    check_top_k(f, "num_experts_per_tok", top_k, experts)
    f.require("n_shared_experts", 1)
    latent = f.optional("moe_latent_size", lowest=1)
    shared = Part.SHARED_EXPERTS
    biases = [("shared_up_proj", shared, "shared_ff"), ("shared_down_proj", shared, "d_model")]
    if latent is not None:
        biases += [("latent_down", Part.MLP, "latent"), ("latent_up", Part.MLP, "d_model")]
    extra = tuple(Weight(name=f"{n}.bias", part=part, shape=(size,), matmul=False) for n, part, size in biases)
    return MoE(
        d_model=d_model,
        experts=experts,
        top_k=top_k,
        expert_ff=f.dim("moe_intermediate_size", default=7688),
        gated=False,
        shared_ff=f.dim("moe_shared_expert_intermediate_size", default=7688),
        latent=latent,
        extra=extra if bias else (),
    )


def _mtp(f: Fields, build: Callable[[str], Layer]) -> tuple[tuple[Layer, ...], Block | None]:
    """Multi-token prediction: per depth, the layers of a pattern and what joins [token, state]."""
    depth = f.count("num_nextn_predict_layers", default=0, null=0)
    kinds = _order(f, "mtp_layers_block_type", pattern="mtp_hybrid_override_pattern") or [FULL, "moe"]
    if not depth:
        return (), None
    extra = prediction_join(f, f.dim("hidden_size"), depth)
    return tuple(build(kind) for kind in kinds) * depth, extra
