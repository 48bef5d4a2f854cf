"""What an HLO module computes, moves and recomputes: from its shapes, per call of the module.

FLOPs are those of matrix units: dots and convolutions, two per multiply-add. A dot that XLA writes as a
convolution over a window counts only the window positions that meet data, so that it costs what the dot costs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from ridgeline.arithmetic.hlo import Computation, HloModule, Instruction

_FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "while", "call", "conditional"}
_WINDOW = re.compile(r"\b(\w{1,20})=(\S+)")


def flops(module: HloModule, item: Instruction) -> int:
    """FLOPs of one instruction; of everything inside it for a fusion or an asynchronous call. 0 if not a matmul."""
    if item.opcode == "dot":
        return _dot(module.computations[item.computation], item)
    if item.opcode == "convolution":
        return _convolution(module.computations[item.computation], item)
    if item.opcode in ("fusion", "async-start"):
        inner = [module.computations[name] for name in item.called if name in module.computations]
        return sum(flops(module, part) for body in inner for part in body.instructions if part.opcode != "fusion")
    return 0


def traffic_bytes(module: HloModule, item: Instruction) -> int:
    """Bytes that one instruction reads and writes when every operand and the result cross the memory bus once."""
    if item.opcode in _FREE or item.opcode.endswith("-done"):
        return 0
    body = module.computations[item.computation]
    read = sum(body.by_name[name].size_bytes for name in dict.fromkeys(item.operands) if name in body.by_name)
    return read + item.size_bytes


@dataclass(frozen=True)
class Totals:
    """FLOPs of one call of the module on one device; ``recomputed`` is the part in rematerialized instructions."""

    flops: int
    recomputed_flops: int
    matmuls: int
    recomputed_matmuls: int
    forward_flops: int


def totals(module: HloModule) -> Totals:
    """The module's matmul FLOPs with loops unrolled. The forward pass is what lies under no ``transpose(`` path."""
    rows = [
        (flops(module, item) * module.runs[item.computation], item.rematted, "transpose(" in item.op_name)
        for item in module
        if item.opcode in ("dot", "convolution")
    ]
    again = [row for row in rows if row[1]]
    forward = sum(row[0] for row in rows if not row[1] and not row[2])
    return Totals(sum(r[0] for r in rows), sum(r[0] for r in again), len(rows), len(again), forward)


def rematted(module: HloModule) -> list[Instruction]:
    """Instructions that repeat forward work."""
    return [item for item in module if item.rematted]


def _operand_dims(body: Computation, item: Instruction, at: int) -> tuple[int, ...] | None:
    source = body.by_name.get(item.operands[at]) if at < len(item.operands) else None
    return source.shapes[0].dims if source is not None and source.shapes else None


def _dot(body: Computation, item: Instruction) -> int:
    left = _operand_dims(body, item, 0)
    if left is None or not item.shapes:
        return 0
    inside = item.attributes.get("lhs_contracting_dims", "{}").strip("{}")
    axes = [int(text) for text in inside.split(",") if text.strip().isdecimal()]
    return 2 * item.shapes[0].elements * prod(left[axis] for axis in axes if axis < len(left))


def _convolution(body: Computation, item: Instruction) -> int:
    """2 x batch x output features x input features of a group x pairs of window position and datum."""
    left, right = _operand_dims(body, item, 0), _operand_dims(body, item, 1)
    labels = item.attributes.get("dim_labels", "").replace("->", "_").split("_")
    if left is None or right is None or len(labels) != 3 or not item.shapes:
        return 0
    out = item.shapes[0].dims
    if (len(labels[0]), len(labels[1]), len(labels[2])) != (len(left), len(right), len(out)):
        return 0
    at = {key: dict(zip(label, dims, strict=True)) for key, label, dims in
          zip(("in", "kernel", "out"), labels, (left, right, out), strict=True)}  # fmt: skip
    window = dict(_WINDOW.findall(item.attributes.get("window", "").strip("{}")))
    spatial = sorted(label for label in at["out"] if label.isdecimal())
    pairs = prod(
        _pairs(at["in"].get(axis, 1), at["kernel"].get(axis, 1), at["out"][axis], _axis(window, int(axis)))
        for axis in spatial
    )
    return 2 * at["out"].get("b", 1) * at["out"].get("f", 1) * at["kernel"].get("i", 1) * pairs


def _axis(window: Mapping[str, str], axis: int) -> tuple[int, int, int, int]:
    """Stride, low padding, base dilation and window dilation of one spatial axis."""

    def number(key: str, default: int) -> int:
        parts = window.get(key, "").split("x")
        text = parts[axis].partition("_")[0] if axis < len(parts) else ""
        return int(text) if text.lstrip("-").isdecimal() and len(text) < 10 else default

    return number("stride", 1), number("pad", 0), number("lhs_dilate", 1), number("rhs_dilate", 1)


@lru_cache(maxsize=4096)
def _pairs(data: int, kernel: int, out: int, axis: tuple[int, int, int, int]) -> int:
    """How many (output, window) positions of one axis fall on a datum and not on padding or a dilation hole.

    Counts along the shorter side; without an early end for sizes above a million, where all positions count.
    """
    stride, low, base, dilation = axis
    if min(kernel, out) > 1_000_000 or min(stride, base, dilation) < 1:
        return kernel * out
    last = (data - 1) * base
    if kernel <= out:
        return sum(_hits(at * dilation - low, stride, out, (last, base)) for at in range(kernel))
    return sum(_hits(at * stride - low, dilation, kernel, (last, base)) for at in range(out))


def _hits(start: int, step: int, count: int, grid: tuple[int, int]) -> int:
    """Positions ``start + i*step`` (i < count) inside [0, last] that are multiples of ``base``."""
    last, base = grid
    first = max(0, -(start // step)) if start < 0 else 0
    final = min(count - 1, (last - start) // step)
    if base == 1:
        return max(0, final - first + 1)
    return sum((start + i * step) % base == 0 for i in range(first, final + 1))
