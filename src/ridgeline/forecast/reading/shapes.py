"""The exact FLOPs of runs whose shapes are in the ladder: every matmul of the model, against 6ND."""

from dataclasses import replace

import numpy as np

from ridgeline.arithmetic.flops import flops
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.core.errors import InputError
from ridgeline.forecast.points import Array, Points

_NEEDED = ("d_model", "layers", "vocab", "seq")
_MAY = ("heads", "kv_heads", "head_dim", "d_ff")
_MOST_SHAPES = 500  # a walk over a model takes milliseconds: beyond this a ladder is a search


def exact_flops(points: Points) -> Points:
    """The points with a column ``C_exact`` (FLOP of the whole run), where d_model, layers, vocab and seq are given.

    Attention is counted as the causal mask lets it through. Without ``d_ff`` the MLP is 4 d_model wide and not gated;
    without ``heads`` there is one, which costs the same. Shapes that do not fit together leave the column out, and
    ``assumed`` says why.
    """
    if not all(name in points.columns for name in _NEEDED):
        return points
    names = [*_NEEDED, *(name for name in _MAY if name in points.columns)]
    shapes = np.stack([points.columns[name] for name in names], axis=1)
    if not np.isfinite(shapes).all():
        return replace(points, assumed=(*points.assumed, "a shape is absent: C is checked against 6ND only"))
    distinct, which = np.unique(shapes, axis=0, return_inverse=True)
    if len(distinct) > _MOST_SHAPES:
        return replace(points, assumed=(*points.assumed, "too many shapes: C is checked against 6ND only"))
    try:
        per_token = np.array([_per_token(dict(zip(names, row, strict=True))) for row in distinct])
    except (InputError, ValueError) as error:
        return replace(points, assumed=(*points.assumed, f"C is checked against 6ND only: {error}".split("\n")[0]))
    exact: Array = per_token[which.reshape(-1)] * points["D"]
    said = "C_exact walks the matmuls of the shapes" + ("" if "d_ff" in names else ", with an MLP of 4 d_model")
    return replace(points, columns={**points.columns, "C_exact": exact}, assumed=(*points.assumed, said))


def _per_token(row: dict[str, float]) -> float:
    """FLOP per token of one shape."""
    sizes = {name: int(value) for name, value in row.items() if name != "seq"}
    if any(value != row[name] for name, value in sizes.items()):
        raise InputError.expected("whole numbers for a shape", row, where="the shapes")
    sizes.setdefault("heads", 1)
    gated = "d_ff" in sizes
    sizes.setdefault("d_ff", 4 * sizes["d_model"])
    spec = model(Shape.model_validate({**sizes, "gated": gated}))
    counted = flops(spec, Batch.of(int(row["seq"])), mask="exact")
    return float(counted.per_token.value)
