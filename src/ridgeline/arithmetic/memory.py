"""Training memory of one device: weights, gradients, optimizer states, and with `activations` the whole.

ZeRO (Rajbhandari et al. 2020, arXiv:1910.02054, section 5): stage 1 splits the optimizer's states over the
data-parallel group, stage 2 the gradients too, stage 3 (FSDP) the weights too. Tensor and pipeline parallelism split
all three first; expert parallelism splits the experts only, whose replicas are ``dp*cp/ep``.
The device counted is the fullest: with a pipeline it holds the larger of the input and the output side.

Left out: the layer that FSDP gathers while it runs, communication buffers, the framework and the allocator;
norms are counted as split over ``tp``, though they are copied (less than 0.1%).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ridgeline.arithmetic.params import Leaves, Place, Select, sum_over, weigh
from ridgeline.arithmetic.sharding import (
    MIXED,
    Precision,
    Sharding,
    dtype_bytes,
    state_bytes,
    state_elements,
    states_dtype,
)
from ridgeline.arithmetic.spec import ModelSpec, Part, Weight
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, derive

Group = Literal["layers", "experts", "input", "output"]
GROUPS: tuple[Group, ...] = ("layers", "experts", "input", "output")
_TABLES = (Part.EMBEDDING, Part.HEAD)


@dataclass(frozen=True)
class TrainingState:
    """Bytes on one device: ``memory.weights``, ``.gradients``, ``.optimizer`` (master copy included), ``.state``."""

    weights: Quantity
    gradients: Quantity
    optimizer: Quantity
    total: Quantity

    @property
    def all(self) -> tuple[Quantity, ...]:
        """Everything that a Case should carry."""
        return (self.weights, self.gradients, self.optimizer, self.total)


@dataclass(frozen=True)
class _OnDevice:
    """Elements on one device before ZeRO: those replicated ``dp*cp`` times, and experts, ``dp*cp/ep`` times."""

    dense: Quantity
    experts: Quantity | None


def training_state(
    spec: ModelSpec,
    sharding: Sharding,
    *,
    optimizer: str = "adam",
    precision: Precision = MIXED,
    vary: Mapping[str, Quantity] | None = None,
) -> TrainingState:
    """Weights, gradients and optimizer states of a model on its fullest device.

    ``vary`` replaces dimensions by arrays of candidates as in `params`. Raises `InputError` for an unknown optimizer
    or element type.
    """
    leaves = Leaves(spec, vary)
    elements = {group: weigh(leaves, f"memory.params.{group}", _in_group(group)) for group in GROUPS}
    per_kind = state_elements(optimizer)
    states = {group: _group_states(leaves, group, per_kind) for group in GROUPS}
    held = _on_device("memory.params", {g: q for g, q in elements.items() if q.kind == "derived"}, sharding)
    kept = _on_device("memory.states", {g: q for g, q in states.items() if q is not None}, sharding)
    return _state(held, kept, sharding, states_dtype(optimizer, precision), precision)


def state_of_count(
    n: Quantity, sharding: Sharding, *, optimizer: str = "adam", precision: Precision = MIXED
) -> TrainingState:
    """The same for a plain number of parameters, all of them hidden matrices spread evenly.

    Raises `InputError` for a factored optimizer, whose states follow from the shapes.
    """
    per_kind = state_elements(optimizer)
    if "factored" in per_kind:
        hint = "give a model spec: row and column counts follow from its shapes"
        raise InputError.expected("an optimizer with whole states", optimizer, where="optimizer", hint=hint)
    inputs = {"N": n, "tp": sharding.tp, "pp": sharding.pp}
    held = derive("memory.params.device", "count(N)/(tp*pp)", "1", **inputs)
    kept = derive("memory.states.device", "per_param*held", "1", per_param=per_kind["matrix"], held=held)
    dtype = states_dtype(optimizer, precision)
    return _state(_OnDevice(held, None), _OnDevice(kept, None), sharding, dtype, precision)


def _in_group(group: Group) -> Select:
    return lambda place, weight: _group(place, weight) == group


def _group(place: Place, weight: Weight) -> Group:
    if weight.part is Part.EXPERTS:
        return "experts"
    if place.mtp:
        return "output"
    if place.label != "outside":
        return "layers"
    return "output" if weight.part in (Part.HEAD, Part.NORM) else "input"


def _kind(weight: Weight) -> str:
    if weight.part in _TABLES and len(weight.shape) == 2:
        return "table"
    return "matrix" if weight.matmul else "vector"


def _group_states(leaves: Leaves, group: Group, per_kind: Mapping[str, Quantity]) -> Quantity | None:
    """State elements of one group of weights, by the optimizer's table."""
    terms: list[str] = []
    inputs: dict[str, Quantity] = {}
    for kind, per_param in per_kind.items():
        name = f"memory.{kind}.{group}"
        found = _rows_and_columns(leaves, name, group) if kind == "factored" else _of_kind(leaves, name, group, kind)
        if found.kind == "derived":
            terms.append(f"per_{kind}*{kind}")
            inputs |= {f"per_{kind}": per_param, kind: found}
    if not terms:
        return None
    return derive(f"memory.states.{group}", " + ".join(terms), "param", **inputs)


def _of_kind(leaves: Leaves, name: str, group: Group, kind: str) -> Quantity:
    return weigh(leaves, name, lambda place, weight: _group(place, weight) == group and _kind(weight) == kind)


def _rows_and_columns(leaves: Leaves, name: str, group: Group) -> Quantity:
    def select(place: Place, weight: Weight) -> bool:
        return _group(place, weight) == group and _kind(weight) != "vector"

    return sum_over(leaves, name, lambda w: f"{w.copies}*({' + '.join(w.shape)})", select)


def _on_device(name: str, groups: Mapping[Group, Quantity], sharding: Sharding) -> _OnDevice:
    dense, inputs = [], {"tp": sharding.tp}
    if "layers" in groups:
        dense.append("count(layers)/(tp*pp)")
        inputs |= {"layers": groups["layers"], "pp": sharding.pp}
    ends = {side: groups[side] for side in ("input", "output") if side in groups}
    if len(ends) == 2:
        dense.append("count(where(pp > 1, max(input, output), input + output))/tp")
        inputs |= {"pp": sharding.pp, **ends}
    else:
        dense += [f"count({side})/tp" for side in ends]
        inputs |= ends
    found = derive(f"{name}.device", " + ".join(dense), "1", **inputs)
    if "experts" not in groups:
        return _OnDevice(found, None)
    split = {"experts": groups["experts"], "tp": sharding.tp, "pp": sharding.pp, "ep": sharding.ep}
    return _OnDevice(found, derive(f"{name}.device_experts", "count(experts)/(tp*pp*ep)", "1", **split))


def _state(held: _OnDevice, kept: _OnDevice, sharding: Sharding, states: str, precision: Precision) -> TrainingState:
    weights = _sharded("memory.weights", held, dtype_bytes(precision.weights), sharding, stage=3)
    gradients = _sharded("memory.gradients", held, dtype_bytes(precision.gradients), sharding, stage=2)
    optimizer = _sharded("memory.moments", kept, state_bytes(states), sharding, stage=1)
    if precision.master:
        master = _sharded("memory.master", held, dtype_bytes(precision.master), sharding, stage=1)
        optimizer = derive("memory.optimizer", "moments + master", "B", moments=optimizer, master=master)
    else:
        optimizer = optimizer.named("memory.optimizer")
    inputs = {"weights": weights, "gradients": gradients, "optimizer": optimizer}
    total = derive("memory.state", "weights + gradients + optimizer", "B", **inputs)
    return TrainingState(
        weights.titled("Weights per device"),
        gradients.titled("Gradients per device"),
        optimizer.titled("Optimizer states per device"),
        total.titled("Training state per device"),
    )


def _sharded(name: str, elements: _OnDevice, each: Quantity, sharding: Sharding, *, stage: int) -> Quantity:
    """Bytes of elements that ZeRO splits from ``stage`` on."""
    inputs = {"dense": elements.dense, "bytes": each, "zero": sharding.zero, "dp": sharding.dp, "cp": sharding.cp}
    text = f"bytes*dense/where(zero >= {stage}, dp*cp, 1)"
    if elements.experts is not None:
        text += f" + bytes*experts/where(zero >= {stage}, dp*cp/ep, 1)"
        inputs |= {"experts": elements.experts, "ep": sharding.ep}
    return derive(name, text, "B", **inputs)
