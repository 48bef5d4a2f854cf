"""The communication of an HLO module: collectives, what hides them, and custom calls that they wait at."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from ridgeline.arithmetic.hlo import Computation, HloModule, Instruction
from ridgeline.arithmetic.hlo_cost import flops

CollectiveKind = Literal["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "point_to_point"]
_COLLECTIVES: Mapping[str, CollectiveKind] = {
    "all-gather": "all_gather", "reduce-scatter": "reduce_scatter", "all-reduce": "all_reduce",
    "all-to-all": "all_to_all", "ragged-all-to-all": "all_to_all", "collective-permute": "point_to_point",
    "collective-broadcast": "point_to_point", "send": "point_to_point",
}  # fmt: skip
_IOTA = re.compile(r"^\[([\d,]{1,80})\]<=")
_TILES = re.compile(r"^\[([\d,]{1,80})\]<=\[([\d,]{1,80})\](?:T\(([\d,]{1,80})\))?")
MESH = re.compile(r"'([^']{1,80})'\s*=\s*(\d{1,9})")
AXES = re.compile(r"\{([^{}]*)\}\s*$")
PLAIN = {"bitcast", "convert", "copy", "reshape", "transpose", "slice", "dynamic-slice", "get-tuple-element", "pad",
          "copy-start", "copy-done", "opt-barrier", "optimization-barrier"}  # fmt: skip


@dataclass(frozen=True)
class HloCollective:
    """One collective. ``size_bytes`` as `ridgeline.arithmetic.collectives` counts: gathered, before scattering.

    ``group`` chips take part; ``groups`` is the raw text. ``runs`` per call of the module. ``asynchronous`` ones
    have ``hidden_flops`` of other work between start and done, in the order of the schedule.
    """

    instruction: Instruction
    kind: CollectiveKind
    size_bytes: int
    group: int | None
    groups: str
    runs: int
    asynchronous: bool
    between: int
    hidden_flops: int


def collectives(module: HloModule) -> list[HloCollective]:
    """Every collective of the module, in the order of the text. Bodies of asynchronous calls are not listed twice."""
    wrapped = {name for item in module if item.opcode == "async-start" for name in item.called}
    found = []
    for item in module:
        inner = _collective_of(module, item)
        if inner is not None and item.computation not in wrapped:
            found.append(_described(module, item, inner))
    return found


def _collective_of(module: HloModule, item: Instruction) -> Instruction | None:
    """The collective that an instruction is or starts."""
    if item.opcode.removesuffix("-start") in _COLLECTIVES:
        return item
    if item.opcode != "async-start":
        return None
    inside = (part for name in item.called if name in module.computations
              for part in module.computations[name].instructions)  # fmt: skip
    return next((part for part in inside if part.opcode in _COLLECTIVES), None)


def _described(module: HloModule, item: Instruction, inner: Instruction) -> HloCollective:
    body = module.computations[item.computation]
    kind = _COLLECTIVES[inner.opcode.removesuffix("-start")]
    sent = sum(body.by_name[name].size_bytes for name in item.operands if name in body.by_name)
    largest = max((shape.size_bytes for shape in item.shapes), default=0)
    size = max(sent, 0 if len(item.shapes) > 1 and item is inner else largest) if kind != "all_gather" else \
        (_gathered(item, sent) if item.opcode != "all-gather" else item.size_bytes)  # fmt: skip
    started = item.opcode.endswith("-start")
    between = _between(body, item) if started else ()
    own = [part for part in between if _collective_of(module, part) is None]
    return HloCollective(
        item, kind, size, group_size(inner, module.partitions), _groups(inner),
        module.runs[item.computation], started, len(own),
        sum(flops(module, part) for part in own),
    )  # fmt: skip


def _gathered(item: Instruction, sent: int) -> int:
    """A start's result holds the operands and the gathered arrays: what is beyond the operands."""
    return max(item.size_bytes - sent, sent)


def _between(body: Computation, start: Instruction) -> tuple[Instruction, ...]:
    """What is scheduled between a start and its done."""
    done = next((user for user in body.users.get(start.name, ()) if user.opcode.endswith("-done")), None)
    return () if done is None else body.instructions[start.index + 1 : done.index]


def group_size(item: Instruction, partitions: int) -> int | None:
    """Chips in one group, from any of the ways HLO writes them: lists, iota tiles, mesh axes, pairs."""
    if "source_target_pairs" in item.attributes:
        return 2
    text = _groups(item)
    if text in ("", "{}"):
        return partitions if partitions > 1 else None
    iota = _IOTA.match(text)
    if iota:
        return int(iota.group(1).split(",")[-1])
    if text.startswith("mesh"):
        axes = AXES.search(text)
        sizes = {name: int(count) for name, count in MESH.findall(text)}
        named = re.findall(r"'([^']{1,80})'", axes.group(1)) if axes else []
        return prod(sizes.get(name, 1) for name in named)
    first = text.strip("{}").split("}")[0]
    return len([part for part in first.split(",") if part.strip()]) or None


def members(groups: str, partitions: int) -> frozenset[frozenset[int]] | None:
    """The device ids of every group, from lists or iota tiles; None for a text that names no ids."""
    if groups in ("", "{}"):
        return frozenset({frozenset(range(partitions))})
    tiled = _TILES.match(groups)
    if tiled is None:
        listed = [part for part in groups.strip("{}").split("},{") if re.fullmatch(r"[\d,\s]+", part)]
        return frozenset(frozenset(map(int, part.split(","))) for part in listed) or None
    shape, dims, order = ([int(size) for size in (text or "").split(",") if size] for text in tiled.groups())
    ids = _transposed(dims, order or list(range(len(dims))))
    size = shape[-1]
    return frozenset(frozenset(ids[at : at + size]) for at in range(0, len(ids), size))


def _transposed(dims: list[int], order: list[int]) -> list[int]:
    """``0, 1, ...`` laid out in ``dims``, its axes reordered, flat."""
    strides = [prod(dims[axis + 1 :]) for axis in range(len(dims))]
    ids = [0]
    for axis in order:
        ids = [start + step * strides[axis] for start in ids for step in range(dims[axis])]
    return ids


def _groups(item: Instruction) -> str:
    """``mesh[...], device_ids=(...) {axes}`` arrives as two attributes."""
    parts = (item.attributes.get(key, "").strip() for key in ("replica_groups", "device_ids"))
    return ", device_ids=".join(part for part in parts if part)


@dataclass(frozen=True)
class SerialCall:
    """A custom call beside which communication cannot hide, and why; ``collective`` where one waits on it."""

    instruction: Instruction
    reason: str
    collective: Instruction | None = None


def serial_calls(module: HloModule) -> list[SerialCall]:
    """Custom calls that hold the schedule: host callbacks, and those with a collective right at their edge.

    Only in a scheduled module; at the edge means that a collective which is not hidden feeds the call or is fed by
    it with nothing but casts and copies between.
    """
    exposed = {c.instruction.name: c for c in collectives(module) if not c.hidden_flops}
    found = []
    for item in module:
        if item.opcode != "custom-call":
            continue
        if "callback" in item.target.lower() or item.target in ("SendToHost", "RecvFromHost", "HostExecute"):
            found.append(SerialCall(item, "a call to the host inside the step"))
            continue
        beside = _beside(module, item, set(exposed)) if module.scheduled else None
        if beside is not None:
            found.append(SerialCall(item, "a collective that nothing hides stands at its edge", beside))
    return found


def _beside(module: HloModule, call: Instruction, exposed: set[str]) -> Instruction | None:
    body = module.computations[call.computation]
    for name in call.operands:
        current, steps = body.by_name.get(name), 0
        while current is not None and steps < len(body.instructions):
            if current.name in exposed:
                return current
            passes = current.opcode in PLAIN or current.opcode.endswith("-done")
            current = body.by_name.get(current.operands[0]) if passes and current.operands else None
            steps += 1
    return next((user for user in body.users.get(call.name, ()) if user.name in exposed), None)
