"""The same model with another number of key-value heads: what a choice made before training is worth when serving."""

from collections.abc import Callable

from ridgeline.arithmetic.spec import MLA, AnyMixer, Attention, Layer, ModelSpec

GROUP = 8  # query heads of a key-value head in the counterfactual of a model that shares none


def shares(spec: ModelSpec) -> bool:
    """Whether any layer has fewer key-value heads than query heads, or a latent."""
    return any(
        isinstance(block, MLA) or (isinstance(block, Attention) and block.kv_heads < block.heads)
        for kind in spec.kinds
        for block in kind.mixers
    )


def one_each(spec: ModelSpec) -> ModelSpec:
    """Multi-head attention of the same widths: every query head its own key and value, latents spelled out."""
    return _changed(spec, _alone)


def grouped(spec: ModelSpec) -> ModelSpec:
    """Multi-head layers with `GROUP` query heads for each key-value head, or the nearest divisor below."""
    return _changed(spec, _grouped)


def _alone(block: AnyMixer) -> AnyMixer:
    if isinstance(block, Attention):
        return _with_heads(block, block.heads)
    if isinstance(block, MLA):
        return Attention(
            d_model=block.d_model, heads=block.heads, kv_heads=block.heads, head_dim=block.qk_nope + block.qk_rope,
            v_head_dim=block.v_head_dim, causal=block.causal, sparse_top_k=block.sparse_top_k,
        )  # fmt: skip
    return block


def _grouped(block: AnyMixer) -> AnyMixer:
    if not isinstance(block, Attention) or block.kv_heads < block.heads:
        return block
    group = next(size for size in range(GROUP, 0, -1) if block.heads % size == 0)
    return _with_heads(block, block.heads // group)


def _with_heads(block: Attention, count: int) -> Attention:
    return Attention.model_validate(block.model_dump() | {"kv_heads": count})


def _changed(spec: ModelSpec, change: Callable[[AnyMixer], AnyMixer]) -> ModelSpec:
    kinds = tuple(
        Layer(mixers=tuple(change(b) for b in kind.mixers), ffns=kind.ffns, norms=kind.norms, stored=kind.stored)
        for kind in spec.kinds
    )
    return spec.model_copy(update={"kinds": kinds})
