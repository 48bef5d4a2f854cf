"""Collectives that no stored sharding explains: where arrays come from, who uses them, and over which chips."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Literal

import numpy as np

from ridgeline.arithmetic.hlo import Computation, HloModule, Instruction, Shape
from ridgeline.arithmetic.hlo_collectives import AXES, MESH, PLAIN, HloCollective, collectives

_LISTS = re.compile(r"\{(\{[\d,]*\},?)+\}")
_TILES = re.compile(r"\[([\d,]{1,80})\]<=\[([\d,]{1,80})\](?:T\(([\d,]{1,80})\))?")
_ORDER = re.compile(r"device_ids=\((?:\[([\d,]{1,80})\](?:T\(([\d,]{1,80})\))?|([\d,]+))\)")
_ELEMENTWISE = {"add", "add_any", "sub", "mul", "div", "max", "min", "select_n", "neg", "exp", "tanh", "logistic"}


@lru_cache(maxsize=1024)
def members(groups: str, partitions: int) -> frozenset[tuple[int, ...]] | None:
    """The groups as sets of chips, so that all spellings of one grouping are equal; None where it is not readable."""
    text = "".join(groups.split())
    if partitions > 1 << 16:
        return None
    listed = _LISTS.fullmatch(text)
    if listed:
        inner = (part for part in text[1:-1].split("}") if part.strip(",{"))
        return frozenset(tuple(sorted(int(chip) for chip in re.findall(r"\d{1,7}", part))) for part in inner)
    iota, mesh = _TILES.fullmatch(text), text.startswith("mesh")
    if iota:
        shape, sides, order = (_ints(part) for part in iota.groups(default=""))
        return _tiled(shape[-1] if shape else 0, sides, order or tuple(range(len(sides))))
    if mesh:
        sizes = {name: int(count) for name, count in MESH.findall(text)}
        axes = AXES.search(text)
        named = re.findall(r"'([^']{1,80})'", axes.group(1)) if axes else []
        if not named or not set(named) <= set(sizes):
            return None
        names = list(sizes)
        order = tuple(names.index(name) for name in (*(n for n in names if n not in named), *named))
        places = _tiled(prod(sizes[name] for name in named), tuple(sizes.values()), order)
        return _ordered(places, text)
    return None


def _ordered(places: frozenset[tuple[int, ...]] | None, mesh: str) -> frozenset[tuple[int, ...]] | None:
    """Groups of places in a mesh as groups of chips: ``device_ids=([4,2]T(1,0))`` says which chip has which place."""
    found = _ORDER.search(mesh)
    if places is None or found is None:
        return places if "device_ids" not in mesh else None
    sides, order, listed = (_ints(part) for part in found.groups(default=""))
    if sorted(order) not in ([], list(range(len(sides)))) or prod(sides) > 1 << 16:
        return None
    chips = listed or tuple(np.arange(prod(sides)).reshape(sides).transpose(order or None).ravel().tolist())
    if len(chips) != sum(map(len, places)):
        return None
    return frozenset(tuple(sorted(chips[place] for place in group)) for group in places)


def _ints(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,7}", text))


def _tiled(width: int, sides: tuple[int, ...], order: tuple[int, ...]) -> frozenset[tuple[int, ...]] | None:
    """Groups of ``width`` from the counted chips of a box, its axes taken in that order."""
    total = prod(sides)
    if not 0 < width <= total <= 1 << 16 or total % width or sorted(order) != list(range(len(sides))):
        return None
    chips = np.arange(total).reshape(sides).transpose(order).reshape(-1, width)
    return frozenset(tuple(sorted(map(int, row))) for row in chips)


@dataclass(frozen=True)
class Origin:
    """Where an array comes from: a stored ``parameter`` (a weight), computed (``activation``), or not ``known``."""

    kind: Literal["parameter", "activation", "unknown"]
    instruction: Instruction | None


def origin(module: HloModule, item: Instruction) -> Origin:
    """Follow the first operand back through casts, copies and slices to what made the array."""
    body = module.computations[item.computation]
    current = item
    for _ in range(len(body.instructions) + 1):
        source = body.by_name.get(current.operands[0]) if current.operands else None
        if source is None:
            return Origin("unknown", current)
        if source.opcode == "parameter":
            return Origin("parameter", source)
        moved = _moved_operand(module, source)
        if moved is None:
            return Origin("activation", source)
        current = replace(source, operands=(source.operands[moved],))
    return Origin("unknown", current)


def _moved_operand(module: HloModule, item: Instruction) -> int | None:
    """Which operand an instruction passes on, only cast, copied or sliced; None where it computes something new."""
    if item.opcode in PLAIN or item.opcode == "async-done":
        return 0 if item.operands else None
    if item.opcode not in ("fusion", "async-start"):
        return None
    inner = next((module.computations[name] for name in item.called if name in module.computations), None)
    current = inner.root if inner is not None else None
    for _ in range(len(inner.instructions) if inner is not None else 0):
        if current is None:
            return None
        if current.opcode == "parameter":
            at = (
                int(current.literal) if current.literal.isdecimal() and len(current.literal) < 6 else len(item.operands)
            )
            return at if at < len(item.operands) else None
        if current.opcode not in PLAIN or not current.operands or inner is None:
            return None
        current = inner.by_name.get(current.operands[0])  # a slice's other operands are where it starts
    return None


@dataclass(frozen=True)
class Resharding:
    """An all-gather that no stored sharding explains, and why it stands out."""

    collective: HloCollective
    reason: str


def reshardings(module: HloModule) -> list[Resharding]:
    """All-gathers and all-to-alls that undo a sharding: evidence from the partitioned module alone.

    A gathered weight is how a sharded weight is used, and explained. What stands out: an array gathered and at once
    sliced again; an activation gathered over the groups that reduce gradients, along the dimension that the next
    matmul contracts, or for an elementwise operation; an all-to-all that no operation of the program is.
    """
    every, weights = collectives(module), _weights(module)
    size = module.partitions
    reducing = {members(c.groups, size) for c in every if c.kind in ("all_reduce", "reduce_scatter") and c.groups
                and "transpose(" in c.instruction.op_name
                and any(_sorted(shape) in weights for shape in c.instruction.shapes)} - {None}  # fmt: skip
    found = []
    for item in every:
        reduces = members(item.groups, size) in reducing
        reason = _why_gather(module, item, weights, reduces=reduces) if item.kind == "all_gather" else ""
        if item.kind == "all_to_all" and not _asked_for(item.instruction):
            reason = "an all-to-all that the program did not ask for"
        found += [Resharding(item, reason)] if reason else []
    return found


def _weights(module: HloModule) -> frozenset[tuple[int, ...]]:
    """Shapes of the stored arrays, integers (tokens) left out; of one layer too where layers are stacked.

    The gradient of a weight has its shape, perhaps transposed: so sizes are sorted. Sums over tensor-parallel chips
    in backward have the shape of an activation.
    """
    stored = [shape for item in (module.entry.instructions if module.entry else ()) if item.opcode == "parameter"
              for shape in item.shapes if shape.dtype[:1] not in "su"]  # fmt: skip
    return frozenset(_sorted(part) for shape in stored for part in (shape, replace(shape, dims=shape.dims[1:])))


def _sorted(shape: Shape) -> tuple[int, ...]:
    return tuple(sorted(shape.dims))


def _asked_for(item: Instruction) -> bool:
    """The program's own exchange, or the dispatch of experts written as an einsum."""
    end = item.op_name.rpartition("/")[2]
    return "all_to_all" in item.op_name or end == "dot_general" or "->" in item.op_name


def _why_gather(module: HloModule, item: HloCollective, weights: frozenset[tuple[int, ...]], *, reduces: bool) -> str:
    body = module.computations[item.instruction.computation]
    result = _result(body, item.instruction)
    users = [user for user in body.users.get(result.name, ()) if user.opcode != "tuple"]
    if users and all(user.opcode in ("dynamic-slice", "slice") or "dynamic-slice" in user.name for user in users):
        return "gathered and then sliced again"
    if origin(module, item.instruction).kind != "activation":
        return ""
    axis = item.instruction.attributes.get("dimensions", "").strip("{}")
    if axis.isdecimal() and any(
        not _over_tokens(dot, weights) for dot in _contracting(module, body, result, int(axis[:3]))
    ):
        return "an activation gathered along the dimension that the next matmul contracts"
    if item.instruction.op_name.rpartition("/")[2] in _ELEMENTWISE:
        return "an activation gathered for an elementwise operation"
    return "an activation gathered over the chips that reduce gradients" if reduces else ""


def _over_tokens(dot: Instruction, weights: frozenset[tuple[int, ...]]) -> bool:
    """Whether a matmul contracts tokens: attention (it has batch dimensions) or the gradient of a weight.

    Gathering tokens for them is how a split sequence is used.
    """
    gradient = "transpose(" in dot.op_name and any(_sorted(shape) in weights for shape in dot.shapes)
    return gradient or dot.attributes.get("lhs_batch_dims", "{}") != "{}"


def _result(body: Computation, item: Instruction) -> Instruction:
    done = [user for user in body.users.get(item.name, ()) if user.opcode.endswith("-done")]
    return done[0] if item.opcode.endswith("-start") and done else item


def _contracting(
    module: HloModule, body: Computation, made: Instruction, axis: int, steps: int = 12
) -> Iterator[Instruction]:
    """The matmuls that contract that dimension of an array, looked for through casts, transposes and fusions."""
    for user in body.users.get(made.name, ()) if steps else ():
        if user.opcode == "dot":
            side = "lhs" if user.operands[:1] == (made.name,) else "rhs"
            if str(axis) in user.attributes.get(f"{side}_contracting_dims", "").strip("{}").split(","):
                yield user
            continue
        if user.opcode == "fusion":
            found = _inside(module, user, made.name)
            if found is not None:
                yield from _contracting(module, *found, axis, steps - 1)
            moved = _moved_operand(module, user)
            passes = moved is not None and user.operands[moved] == made.name
        else:
            passes = user.opcode in ("convert", "copy", "transpose", "bitcast", "reshape")
        at = _place(user, made, axis) if passes else None
        if at is not None:
            yield from _contracting(module, body, user, at, steps - 1)


def _inside(module: HloModule, fusion: Instruction, name: str) -> tuple[Computation, Instruction] | None:
    """The parameter of a fused computation that an operand becomes."""
    inner = next((module.computations[item] for item in fusion.called if item in module.computations), None)
    at = str(fusion.operands.index(name))
    for item in inner.instructions if inner is not None else ():
        if item.opcode == "parameter" and item.literal == at and inner is not None:
            return inner, item
    return None


def _place(user: Instruction, made: Instruction, axis: int) -> int | None:
    """Where a dimension is after a move; behind a reshape the only one of its size, None where that is not clear."""
    if user.opcode == "transpose":
        order = user.attributes.get("dimensions", "").strip("{}").split(",")
        return order.index(str(axis)) if str(axis) in order else None
    if len(user.shapes) != 1 or len(made.shapes) != 1 or axis >= len(made.shapes[0].dims):
        return None
    before, now = made.shapes[0].dims, user.shapes[0].dims
    if before == now:
        return axis
    clear = before.count(before[axis]) == now.count(before[axis]) == 1
    return now.index(before[axis]) if clear else None
