"""The twin's parameters as flat vectors, one a unit of sharding, and how a unit lies on the mesh.

A unit is what fully sharded data parallelism gathers at once: the input table, a layer, a layer's experts, the output
with its norm. Every rank holds its tensor-parallel (or expert-parallel) part of each unit as one vector.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

from ridgeline.plan.verify.twin import Twin

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Unit:
    """Local shapes by name. ``experts``: spread over ep and copied over ``expert_data``, not over tp and ``shard``."""

    name: str
    shapes: Shapes
    experts: bool = False

    @property
    def size(self) -> int:
        """Elements on one rank before sharding over data parallelism."""
        return sum(prod(shape) for shape in self.shapes.values())

    def unpack(self, vector: Any) -> dict[str, Any]:
        """The tensors of a vector."""
        found, start = {}, 0
        for name, shape in self.shapes.items():
            found[name] = vector[start : start + prod(shape)].reshape(shape)
            start += prod(shape)
        return found


def copies(unit: Unit) -> str:
    """The group whose ranks hold copies of a unit, or its shards (`twin.Twin.group`)."""
    return "expert_data" if unit.experts else "shard"


def units(twin: Twin) -> list[Unit]:
    """Every unit in the order of the forward pass."""
    shape, tp = twin.shape, twin.plan.tp
    table: Shapes = {"table": (shape.vocab // tp, shape.d_model)}
    head: Shapes = {"norm": (shape.d_model,)}
    found = [Unit("embedding", table | (head if shape.tied else {}))]
    for index in range(shape.layers):
        found += _layer(twin, index)
    return found if shape.tied else [*found, Unit("head", table | head)]


def _layer(twin: Twin, index: int) -> list[Unit]:
    shape, tp, ep = twin.shape, twin.plan.tp, twin.plan.ep
    d, heads, kv = shape.d_model, shape.heads // tp, (shape.kv_heads or shape.heads) // tp
    head_dim, wide = shape.head_dim or 0, 2 if shape.gated else 1
    shapes: Shapes = {
        "norm_1": (d,),
        "qkv": (d, (heads + 2 * kv) * head_dim),
        "out": (heads * head_dim, d),
        "norm_2": (d,),
    }
    if shape.experts is None or index < shape.dense_layers:
        assert shape.d_ff is not None
        return [Unit(f"layer_{index}", shapes | {"up": (d, wide * shape.d_ff // tp), "down": (shape.d_ff // tp, d)})]
    assert shape.expert_ff is not None
    shapes["router"] = (d, shape.experts)
    if shape.shared_ff:
        shapes |= {"up": (d, wide * shape.shared_ff // tp), "down": (shape.shared_ff // tp, d)}
    own = shape.experts // ep
    experts: Shapes = {"up": (own, d, wide * shape.expert_ff), "down": (own, shape.expert_ff, d)}
    return [Unit(f"layer_{index}", shapes), Unit(f"experts_{index}", experts, experts=True)]
