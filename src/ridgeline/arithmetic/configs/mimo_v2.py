"""MiMo V2 Flash: windowed layers with their own head counts and sinks, keys wider than values."""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Build, Heads, Style, attention, check_divides, decoder, dense_mlp, routed
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.spec import MLP, Attention, ModelSpec, MoE, Part, Weight

_SINK = Weight(name="sinks", part=Part.ATTENTION, shape=("heads",), matmul=False)


@reads("mimo_v2_flash")
def mimo_v2_flash(f: Fields) -> ModelSpec:
    """MiMo V2 Flash."""
    f.assume(num_key_value_heads=4, head_dim=192, v_head_dim=128, moe_intermediate_size=2048)
    f.assume(n_routed_experts=256, num_experts_per_tok=8)
    f.require("n_shared_experts", None, 0)
    f.skip("attention_chunk_size", "attention_value_scale", "attention_projection_layout", "hybrid_block_size")
    n, style = f.layers(), Style()
    window = f.dim("sliding_window", "sliding_window_size", default=128)
    keys = [(window if local else None, kind) for local, kind in zip(_local(f, n), _kinds(f, n), strict=True)]
    full, local = _heads(f, ""), _heads(f, "swa_")

    def mixer(span: int | None) -> Attention:
        heads, v_head_dim = local if span else full
        sinks = f.flag("add_swa_attention_sink_bias" if span else "add_full_attention_sink_bias", default=bool(span))
        bias = f.flag("attention_bias", default=False)
        options = {"window": span, "v_head_dim": v_head_dim, "qkv_bias": bias, "extra": (_SINK,) if sinks else ()}
        return attention(heads, **options)

    def ffn(kind: str) -> MLP | MoE:
        if kind == "dense":
            return dense_mlp(f, style)
        return routed(f, experts="n_routed_experts", width="moe_intermediate_size")

    f.skip("add_swa_attention_sink_bias", "add_full_attention_sink_bias")
    return decoder(f, style, Build(keys=keys, mixer=mixer, ffn=ffn))


def _heads(f: Fields, prefix: str) -> tuple[Heads, int]:
    """Head counts of the full layers, or with ``swa_`` of the windowed ones (twice the key-value heads)."""
    heads, kv_heads = f.dim("num_attention_heads"), f.dim("num_key_value_heads")
    head_dim, v_head_dim = f.dim("head_dim"), f.dim("v_head_dim")
    if prefix:
        heads = f.dim("swa_num_attention_heads", default=heads)
        kv_heads = f.dim("swa_num_key_value_heads", default=2 * kv_heads)
        head_dim, v_head_dim = f.dim("swa_head_dim", default=head_dim), f.dim("swa_v_head_dim", default=v_head_dim)
    check_divides(f, f"{prefix}num_key_value_heads", kv_heads, heads)
    return Heads(f.dim("hidden_size"), heads, kv_heads, head_dim), v_head_dim


def _local(f: Fields, n: int) -> list[bool]:
    """Which layers are windowed: ``layer_types``, the 0/1 list ``hybrid_layer_pattern``, or five of six."""
    kinds = f.names("layer_types", among=("full_attention", "sliding_attention"), length=n)
    pattern = f.integers("hybrid_layer_pattern", length=n)
    if kinds is not None:
        return [kind == "sliding_attention" for kind in kinds]
    return [bool(flag) for flag in pattern] if pattern else [i != 0 and (i + 1) % 6 != 0 for i in range(n)]


def _kinds(f: Fields, n: int) -> list[str]:
    kinds = f.names("mlp_layer_types", among=("dense", "sparse"), length=n)
    freq = f.integers("moe_layer_freq", length=n)
    if kinds is None:
        kinds = ["sparse" if flag else "dense" for flag in freq or [0] + [1] * (n - 1)]
    return ["moe" if kind == "sparse" else "dense" for kind in kinds]
