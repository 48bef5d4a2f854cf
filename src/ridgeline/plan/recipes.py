"""Concrete, tile-aligned shapes for a chosen parameter count.

A sweep is `params` over arrays of dimensions: the formula of the memo, evaluated on every candidate at once.
A recipe keeps every sharded dimension a multiple of the matmul tile at the planned tensor parallelism.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgeline.arithmetic.params import Params, params
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InfeasibleError
from ridgeline.core.quantity import Source, leaf

Ints = np.ndarray[Any, np.dtype[np.int64]]

TOLERANCE = 0.1  # how far from the size that was asked for
# Bands of d_model per layer, as multiples of the balanced aspect: what "deeper" and "wider" mean here.
STYLES: Mapping[str, tuple[float, float]] = {"balanced": (0.8, 1.25), "deeper": (0.5, 0.8), "wider": (1.25, 2.0)}


def _head_dim() -> int:
    return int(constant("recipes.head_dim").value)


@dataclass(frozen=True)
class Grid:
    """Candidate shapes as equally long integer arrays; heads follow from d_model, the rest is shared."""

    layers: Ints
    d_model: Ints
    d_ff: Ints
    vocab: int
    parallel: int

    @property
    def heads(self) -> Ints:
        """Query heads of the assumed head dimension."""
        return self.d_model // _head_dim()

    @property
    def kv_heads(self) -> Ints:
        """The assumed key-value heads, or the largest divisor of the query heads that they share."""
        return np.gcd(self.heads, int(constant("recipes.kv_heads").value))

    def shape(self, index: int) -> Shape:
        """One candidate."""
        sides = {"layers": self.layers, "d_model": self.d_model, "d_ff": self.d_ff, "heads": self.heads,
                 "kv_heads": self.kv_heads}  # fmt: skip
        return Shape(
            name="candidate", head_dim=_head_dim(), vocab=self.vocab, **{k: int(v[index]) for k, v in sides.items()}
        )


@dataclass(frozen=True)
class Recipe:
    """A named shape with its exact parameter count."""

    style: str
    shape: Shape
    spec: ModelSpec

    @property
    def aspect(self) -> float:
        """d_model per layer."""
        return self.shape.d_model / self.shape.layers


def grid(vocab: int, parallel: int, *, tile: int = 0, widest: int = 24576, deepest: int = 192) -> Grid:
    """All aligned shapes: d_model and d_ff in steps of head_dim (and ``tile``, where larger) x tensor parallelism."""
    step = math.lcm(_head_dim(), tile or _head_dim()) * parallel
    ratio = constant("recipes.ff_ratio").value
    widths = np.arange(step, widest + 1, step)
    layers = np.arange(4, deepest + 1)
    d_model, depth = (side.ravel() for side in np.meshgrid(widths, layers, indexing="ij"))
    d_ff = np.maximum(step, np.round(ratio * d_model / step).astype(np.int64) * step)
    return Grid(depth, d_model, d_ff, vocab, parallel)


def sweep(candidates: Grid) -> Params:
    """Exact parameter counts of every candidate, by the formulas of `arithmetic.params`."""
    source = Source("shape sweep", "aligned candidates")
    vary = {
        "model.layer0.copies": candidates.layers,
        "model.d_model": candidates.d_model,
        "model.layer0.mixer.heads": candidates.heads,
        "model.layer0.mixer.kv_heads": candidates.kv_heads,
        "model.layer0.ffn.d_ff": candidates.d_ff,
    }
    arrays = {name: leaf(name, values, "1", "specified", source) for name, values in vary.items()}
    return params(model(candidates.shape(0)), arrays)


def recipes(target: float, vocab: int, tile: int = 0) -> list[Recipe]:
    """The closest aligned shape to ``target`` parameters for each of `STYLES`.

    Small models are aligned for less tensor parallelism, until a balanced shape exists. Raises `InfeasibleError`
    where no shape comes within 10% (a model smaller than its own embedding table).
    """
    parallel = int(constant("recipes.tensor_parallel").value)
    while True:
        candidates = grid(vocab, parallel, tile=tile)
        total = np.asarray(sweep(candidates).total.value)
        found = _closest(candidates, total, target)
        if any(item.style == "balanced" for item in found) or (parallel == 1 and found):
            return found
        if parallel == 1:
            raise _no_shape(candidates, total, target)
        parallel //= 2


def _closest(candidates: Grid, total: np.ndarray[Any, Any], target: float) -> list[Recipe]:
    aspect = candidates.d_model / candidates.layers / float(constant("recipes.aspect").value)
    miss = np.abs(total / target - 1)
    found = []
    for style, (low, high) in STYLES.items():
        inside = np.where((aspect >= low) & (aspect <= high), miss, np.inf)
        best = int(np.argmin(inside))
        if inside[best] <= TOLERANCE:
            shape = candidates.shape(best)
            found.append(Recipe(style, shape, model(shape)))
    return found


def _no_shape(candidates: Grid, total: np.ndarray[Any, Any], target: float) -> InfeasibleError:
    nearest = int(np.argmin(np.abs(total / target - 1)))
    shape = candidates.shape(nearest)
    return InfeasibleError(
        f"No aligned shape has about {target:.3g} parameters with a vocabulary of {candidates.vocab:,}",
        limit="the embedding tables, d_model in steps of the head dimension, and the bands of d_model per layer",
        nearest=f"{total[nearest]:.3g} parameters with {shape.layers} layers of {shape.d_model}",
        hint="give a smaller vocab, or another size",
    )


def moe_of(dense: Recipe, *, experts: int, top_k: int, shared: int, tile: int) -> Recipe:
    """A mixture of experts with the attention and the active MLP width of a dense recipe.

    The width is split over ``top_k + shared`` experts and rounded to the tile.
    """
    assert dense.shape.d_ff is not None, "a dense recipe has a d_ff"
    width = max(tile, round(dense.shape.d_ff / (top_k + shared) / tile) * tile)
    mixture = {"experts": experts, "top_k": top_k, "expert_ff": width, "shared_ff": shared * width}
    shape = dense.shape.model_copy(update={**mixture, "name": f"moe {experts}x{top_k}"})
    return Recipe("moe", shape, model(shape))
