"""Which side of a weight tensor parallelism splits, as training and serving engines both do it.

By columns where a weight leaves the residual stream (queries, keys, values, gate, up), by rows where it returns to it
(output, down), copied where it is small (router, latent projections). Source: Shoeybi et al. 2019 (arXiv:1909.08053).
"""

from dataclasses import dataclass
from typing import Literal

from ridgeline.arithmetic.params import size
from ridgeline.arithmetic.spec import Block, Part, Weight

Split = Literal["column", "row", "copied", "expert"]

COPIED = frozenset({"q_a_proj", "kv_a_proj", "kv_proj", "shared_gate", "latent_down", "latent_up"})


@dataclass(frozen=True)
class SplitMatmul:
    """``[tokens, k] x [k, n]``, ``copies`` times a layer, before it is divided over chips. ``name`` is the first of the
    weights that run as one."""

    name: str
    k: int
    n: int
    split: Split
    copies: int


def split_of(weight: Weight) -> Split:
    """How that weight is divided."""
    if weight.part is Part.EXPERTS:
        return "expert"
    if weight.part is Part.ROUTER or weight.name in COPIED:
        return "copied"
    return "row" if weight.shape[-1] == "d_model" else "column"


def split_matmuls(block: Block) -> list[SplitMatmul]:
    """The block's matmuls but its routed experts', in order. Weights of one part that read the residual stream and are
    split alike run as one; a router never does."""
    found: dict[tuple[object, ...], SplitMatmul] = {}
    for place, weight in enumerate(block.weights):
        split = split_of(weight)
        if not weight.matmul or len(weight.shape) != 2 or split == "expert" or weight.part is Part.VISION:
            continue
        k, n = (size(side, block.dims) for side in weight.shape)
        copies = size(weight.copies, block.dims)
        joined = weight.shape[0] == "d_model" and split != "row" and weight.part is not Part.ROUTER
        key = (weight.part, split, copies) if joined else (place,)
        first = found.get(key)
        name, wide = (weight.name, 0) if first is None else (first.name, first.n)
        found[key] = SplitMatmul(name, k, wide + n, split, copies)
    return list(found.values())
