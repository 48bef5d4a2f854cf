"""The twin's training step in JAX, with every collective of the plan written out inside ``shard_map``.

Forward pass, loss, backward pass, reduction of gradients and AdamW. A vocabulary-parallel table, head and loss and
column- and row-parallel layers follow Shoeybi et al. 2019 (arXiv:1909.08053), sequence parallelism Korthikanti et al.
2022 (arXiv:2205.05198), fully sharded layers Rajbhandari et al. 2020 (arXiv:1910.02054), experts by all-to-all
Lepikhin et al. 2020 (arXiv:2006.16668), with as many slots as balanced routing fills.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ridgeline.plan.verify import network, wires
from ridgeline.plan.verify.twin import Twin
from ridgeline.plan.verify.weights import Unit, units

_RATE, _BETA_1, _BETA_2, _EPSILON, _DECAY = 1e-3, 0.9, 0.95, 1e-8, 0.1
Vectors = dict[str, Any]


def lowered(twin: Twin) -> Any:
    """The step lowered for the twin's mesh, from shapes alone: ``.compile()`` gives the program of one device."""
    mesh = _mesh(twin)
    shapes, specs = _state(twin)
    batch = PartitionSpec(None, twin.group("data") or None, None)
    tokens = jax.ShapeDtypeStruct(
        (twin.micro_batches, twin.plan.dp * twin.plan.micro_batch, twin.seq),
        jnp.int32,
        sharding=NamedSharding(mesh, batch),
    )
    everywhere = PartitionSpec(tuple(axis.name for axis in twin.axes) or None)
    step = jax.shard_map(
        lambda state, inputs, targets: _step(twin, state, inputs, targets),
        mesh=mesh,
        in_specs=(specs, batch, batch),
        out_specs=(specs, everywhere),
        check_vma=False,
    )
    placed = jax.tree.map(
        lambda shape, spec: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec)),
        shapes,
        specs,
        is_leaf=lambda item: isinstance(item, tuple),
    )
    return jax.jit(step, donate_argnums=0).lower(placed, tokens, tokens)


def _mesh(twin: Twin) -> Mesh:
    devices = np.array(jax.devices()[: twin.plan.chips]).reshape([axis.size for axis in twin.axes])
    return Mesh(devices, tuple(axis.name for axis in twin.axes))


def _state(twin: Twin) -> tuple[dict[str, Vectors], dict[str, Vectors]]:
    """Global shapes and placements of parameters and of both moments.

    A vector is ``[ranks that hold different parts, elements]``; below stage 3 all units of a kind are one vector.
    """
    shapes: dict[str, Vectors] = {}
    specs: dict[str, Vectors] = {}
    for key in ("params", "first", "second"):
        split = twin.plan.zero >= (3 if key == "params" else 1)
        shapes[key], specs[key] = {}, {}
        for name, size, experts in _vectors(twin):
            parts = twin.plan.ep if experts else twin.plan.tp
            apart, along = twin.group("ep" if experts else "tp"), twin.group(_copies(experts=experts))
            shapes[key][name] = (parts, size)
            specs[key][name] = PartitionSpec(apart or None, (along or None) if split else None)
    return shapes, specs


def _copies(*, experts: bool) -> str:
    """The group over which a vector is copied, or sharded."""
    return "expert_data" if experts else "shard"


def _vectors(twin: Twin) -> list[tuple[str, int, bool]]:
    """Name, elements on one rank and kind of every vector of the state."""
    every = units(twin)
    if twin.plan.zero >= 3:
        return [(unit.name, unit.size, unit.experts) for unit in every]
    found = [("dense", sum(u.size for u in every if not u.experts), False)]
    experts = sum(u.size for u in every if u.experts)
    return [*found, ("experts", experts, True)] if experts else found


def _step(twin: Twin, state: dict[str, Vectors], inputs: Any, targets: Any) -> tuple[dict[str, Vectors], Any]:
    """One device's step on its own parts of the state and the batch."""
    local = {key: {name: item[0] for name, item in vectors.items()} for key, vectors in state.items()}
    held = local["params"] if twin.plan.zero >= 3 else _cut(twin, local["params"])
    loss, grads = _accumulated(twin, held, inputs, targets)
    updated: dict[str, Vectors] = {key: {} for key in local}
    for name, grad, experts in _reduced(twin, grads):
        with jax.named_scope("optimizer"):
            part = _own(twin, local["params"][name], experts=experts)
            made = _adam(part, local["first"][name], local["second"][name], grad)
        made = (_whole(twin, made[0], experts=experts), *made[1:])
        for key, value in zip(("params", "first", "second"), made, strict=True):
            updated[key][name] = value
    return jax.tree.map(lambda item: item[None], updated), loss[None]


def _cut(twin: Twin, vectors: Vectors) -> Vectors:
    """The units of the vectors ``dense`` and ``experts``."""
    found, start = {}, {False: 0, True: 0}
    for unit in units(twin):
        at = start[unit.experts]
        found[unit.name] = vectors["experts" if unit.experts else "dense"][at : at + unit.size]
        start[unit.experts] = at + unit.size
    return found


def _accumulated(twin: Twin, held: Vectors, inputs: Any, targets: Any) -> tuple[Any, Vectors]:
    """Loss and gradients summed over the micro-batches."""
    loss = jax.value_and_grad(lambda vectors, rows, wanted: network.loss(twin, vectors, rows, wanted))
    if twin.micro_batches == 1:
        return loss(held, inputs[0], targets[0])

    def one(carry: Any, pair: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, carry, loss(held, *pair)), None

    empty = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, held))
    return lax.scan(one, empty, (inputs, targets))[0]


def _reduced(twin: Twin, grads: Vectors) -> list[tuple[str, Any, bool]]:
    """Gradients as the optimizer wants them, by vector of the state: one buffer a kind, reduced at once."""
    every = units(twin)
    if twin.plan.zero >= 3:
        return _replicated(twin, [unit for unit in every if unit.name in grads], grads)
    found = []
    for experts in (False, True):
        own = [grads[unit.name] for unit in every if unit.experts is experts]
        if not own:
            continue
        buffer = jnp.concatenate(own)
        along = twin.group(_copies(experts=experts))
        if along:
            with jax.named_scope("expert_gradients" if experts else "gradients"):
                split = twin.plan.zero >= 1
                buffer = lax.psum_scatter(buffer, along, tiled=True) if split else lax.psum(buffer, along)
        found.append(("experts" if experts else "dense", _over_replicas(twin, buffer, experts=experts), experts))
    return found


def _over_replicas(twin: Twin, buffer: Any, *, experts: bool) -> Any:
    """Hybrid sharding: shards of the same part are summed over the replicas; experts have none."""
    apart = () if experts else twin.group("replica")
    if not apart:
        return buffer
    with jax.named_scope("replica_gradients"):
        return lax.psum(buffer, apart)


def _replicated(twin: Twin, every: list[Unit], grads: Vectors) -> list[tuple[str, Any, bool]]:
    """Fully sharded gradients arrive scattered; under hybrid sharding one buffer of them is summed over replicas."""
    if not twin.group("replica"):
        return [(unit.name, grads[unit.name], unit.experts) for unit in every]
    dense = [unit for unit in every if not unit.experts]
    buffer = _over_replicas(twin, jnp.concatenate([grads[unit.name] for unit in dense]), experts=False)
    ends = np.cumsum([unit.size // twin.plan.shard for unit in dense])[:-1]
    found = [(unit.name, part, False) for unit, part in zip(dense, jnp.split(buffer, ends), strict=True)]
    return found + [(unit.name, grads[unit.name], True) for unit in every if unit.experts]


def _own(twin: Twin, vector: Any, *, experts: bool) -> Any:
    """The part of the parameters whose moments this rank keeps (stages 1 and 2)."""
    along = twin.group(_copies(experts=experts))
    if twin.plan.zero not in (1, 2) or not along:
        return vector
    length = vector.shape[0] // lax.axis_size(along)
    return lax.dynamic_slice(vector, (lax.axis_index(along) * length,), (length,))


def _whole(twin: Twin, part: Any, *, experts: bool) -> Any:
    """The parameters put together again after the update (stages 1 and 2)."""
    if twin.plan.zero not in (1, 2):
        return part
    term = "expert_parameters" if experts else "parameters"
    return wires.gather(twin.group(_copies(experts=experts)), term)(part)


def _adam(param: Any, first: Any, second: Any, grad: Any) -> tuple[Any, Any, Any]:
    """AdamW without bias correction, which would add a counter and no traffic."""
    first = _BETA_1 * first + (1 - _BETA_1) * grad
    second = _BETA_2 * second + (1 - _BETA_2) * grad * grad
    return param - _RATE * (first / (jnp.sqrt(second) + _EPSILON) + _DECAY * param), first, second
