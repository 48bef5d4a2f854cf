"""FLOPs and bytes of framework operators from the shapes that the profiler recorded.

Matmuls count 2mnk, convolutions 2 x outputs x inputs of a group x kernel size, attention 2 matmuls forward and 5
backward over the visible (query, key) pairs. Bytes: every operand and the result cross the memory bus once, which is
the least possible. An operator without a rule, or without shapes, gives None: nothing is guessed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from ridgeline.arithmetic.pairs import PAIRS
from ridgeline.core import formula as formulas
from ridgeline.trace.levels.op_call import Call, Dims


@dataclass(frozen=True)
class Gemm:
    """``batch`` products of [m, k] x [k, n]."""

    batch: int
    m: int
    k: int
    n: int

    @property
    def flops(self) -> int:
        """2 x batch x m x k x n."""
        return 2 * self.batch * self.m * self.k * self.n


@dataclass(frozen=True)
class AttentionShape:
    """``batch`` x ``heads`` query heads (``kv_heads`` for keys), lengths, head dimension of keys and of values."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    head_dim: int
    value_dim: int
    causal: bool
    window: int | None
    backward: bool


@dataclass(frozen=True)
class Work:
    """What one call does. ``flops`` and ``bytes`` are None where unknown; ``dtype`` as in the catalog.

    ``note`` says what was assumed.
    """

    dtype: str
    flops: int | None = None
    bytes: int | None = None
    gemm: Gemm | None = None
    attention: AttentionShape | None = None
    note: str = ""


def work(name: str, meta: Mapping[str, Any]) -> Work | None:
    """What one call of an operator does; None where there is neither a rule nor a recorded tensor."""
    call = Call.of(meta)
    if not call.tensors:
        return None
    base = name.removeprefix("aten::").partition(".")[0] if name.startswith("aten::") else name
    rule = _RULES.get(base)
    found = rule(call) if rule else None
    if found is None and "flash_attn" in name:
        found = _flash(name, call)
    return found or Work(call.dtype(call.tensors[0]), None, _moved(base, call))


_INPUTS_ONLY = re.compile(
    r"^(copy_|fill_|zero_|normal_|uniform_|random_|bernoulli_|sum|mean|max|min|amax|amin|norm|linalg_vector_norm|any|"
    r"all|argmax|_foreach_\w+)$"
)
_MAPS = re.compile(
    r"^(add|sub|rsub|mul|div|neg|pow|exp|log|sqrt|rsqrt|sin|cos|tanh|sigmoid|silu|gelu|relu|clamp|clamp_min|where|"
    r"addcmul|addcdiv|abs|reciprocal|threshold_backward|masked_fill|\w+_backward|_softmax|_log_softmax|softmax|"
    r"native_layer_norm|\w*batch_norm|_fused_rms_norm|clone|contiguous|square)$"
)


def _moved(base: str, call: Call) -> int | None:
    """Bytes of an operator that multiplies no matrices; None where its result's size is not known."""
    inputs = sum(call.size(at) for at in call.tensors)
    if base.startswith("triton_") or _INPUTS_ONLY.match(base):
        return inputs  # a generated kernel gets every tensor, results too, as an argument
    if base.endswith("_") and not base.endswith("__"):
        return inputs + call.size(call.tensors[0])
    if _MAPS.match(base):
        return inputs + max(call.size(at) for at in call.tensors)
    return None


def _matmul(a: int, b: int, *, batched: bool = False) -> Callable[[Call], Work | None]:
    """[m, k] x [k, n] at arguments ``a`` and ``b``; an added matrix before them is read as well."""

    def rule(call: Call) -> Work | None:
        left, right = call.shape(a, 2 + batched), call.shape(b, 2 + batched)
        if left is None or right is None or left[-1] != right[-2]:
            return None
        return _product(call, (a, b), Gemm(left[0] if batched else 1, left[-2], left[-1], right[-1]), a)

    return rule


def _product(call: Call, sides: tuple[int, int], gemm: Gemm, added: int = 0) -> Work:
    result = gemm.batch * gemm.m * gemm.n * _result_item(call, sides[0])
    extra = sum(call.size(at) for at in range(added))
    moved = call.size(sides[0]) + call.size(sides[1]) + result + extra
    return Work(call.dtype(sides[0]), gemm.flops, moved, gemm)


def _result_item(call: Call, at: int) -> int:
    """Bytes of one element of a product: narrow formats give a 16-bit result."""
    return 2 if call.dtype(at) in ("fp8", "fp4") else call.item(at)


def _linear(call: Call) -> Work | None:
    x, weight = call.shape(0), call.shape(1, 2)
    if x is None or weight is None or x[-1] != weight[1]:
        return None
    return _product(call, (0, 1), Gemm(1, prod(x[:-1]), x[-1], weight[0]))


def _grouped(call: Call) -> Work | None:
    """Rows of all groups together against one matrix a group: [t, k] x [g, k, n]."""
    x, weight = call.shape(0, 2), call.shape(1, 3)
    if x is None or weight is None or x[1] != weight[1]:
        return None
    found = _product(call, (0, 1), Gemm(1, x[0], x[1], weight[2]))
    return Work(found.dtype, found.flops, found.bytes, None, None, "all rows are in a group")


def _convolution(stride: int, padding: int, dilation: int) -> Callable[[Call], Work | None]:
    """Forward convolution; the arguments' places differ between the library's front ends."""

    def rule(call: Call) -> Work | None:
        x, weight = call.shape(0), call.shape(1)
        steps, pads, holes = call.ints(stride), call.ints(padding), call.ints(dilation)
        if x is None or weight is None or len(x) != len(weight) or None in (steps, pads, holes):
            return None
        spatial = len(x) - 2
        rows = [_spread(item, spatial) for item in (steps, pads, holes)]
        if any(row is None for row in rows):
            return None
        out = [
            (size + 2 * pad - hole * (kernel - 1) - 1) // max(step, 1) + 1
            for size, kernel, step, pad, hole in zip(x[2:], weight[2:], *map(tuple, rows), strict=True)  # type: ignore[arg-type]
        ]
        if min(out, default=1) < 1:
            return None
        results = x[0] * weight[0] * prod(out)
        moved = call.size(0) + call.size(1) + results * call.item(0)
        return Work(call.dtype(), 2 * results * prod(weight[1:]), moved)

    return rule


def _spread(values: Dims | None, count: int) -> Dims | None:
    """One number for every axis, or one that holds for all."""
    if values is None:
        return None
    return values * count if len(values) == 1 else (values if len(values) == count else None)


def _convolution_backward(call: Call) -> Work | None:
    """The gradient of the input and that of the weight cost a forward pass each; the mask says which are made."""
    grad, weight = call.shape(0), call.shape(2)
    if grad is None or weight is None or len(grad) != len(weight):
        return None
    mask = re.findall(r"True|False|\b[01]\b", call.concrete[-1])[:2] if call.concrete else []
    wanted = sum(item in ("True", "1") for item in mask) if len(mask) == 2 else 2
    moved = call.size(0) + wanted * (call.size(1) + call.size(2))
    return Work(call.dtype(), wanted * 2 * prod(grad) * prod(weight[1:]), moved)


Layout = Literal["BHSD", "BSHD"]


def _attention(q: int, layout: Layout, causal: int, *, backward: bool = False) -> Callable[[Call], Work | None]:
    """Attention with q, k, v at consecutive places; ``causal`` is the place of the flag (or mask type)."""

    def rule(call: Call) -> Work | None:
        sides = [call.shape(q + i, 4) for i in range(3)]
        if any(side is None for side in sides):
            return None
        named = [_named(side, layout) for side in sides if side is not None]
        flag = call.flag(causal)
        kind = call.ints(causal) if flag is None else None
        is_causal = bool(flag) or (kind is not None and kind[:1] == (1,))
        return _attended(call, (q, *named), (is_causal, None), backward)

    return rule


def _named(side: Dims, layout: Layout) -> tuple[int, int, int, int]:
    """Batch, heads, sequence, dimension."""
    return (side[0], side[1], side[2], side[3]) if layout == "BHSD" else (side[0], side[2], side[1], side[3])


def _attended(call: Call, sides: Any, mask: tuple[bool, int | None], backward: bool, note: str = "") -> Work:
    at, query, key, value = sides
    shape = AttentionShape(
        query[0], query[1], key[1], query[2], key[2], query[3], value[3], mask[0], mask[1], backward
    )  # fmt: skip
    sizes = [call.size(at + i) for i in range(3)]
    out = query[0] * query[1] * query[2] * value[3] * call.item(at)
    # backward reads q, k, v, the output and its gradient, and writes three gradients
    moved = 2 * sum(sizes) + 2 * out if backward else sum(sizes) + out
    return Work(call.dtype(at), attention_flops(shape), moved, None, shape, note)


def attention_flops(shape: AttentionShape) -> int:
    """2 x pairs x (d_k + d_v) forward: scores and their product with the values.

    Backward executes five matmuls: the scores again, and gradients of v, p, q and k. Grouped-query attention
    computes as much as multi-head attention does.
    """
    visible = shape.batch * shape.heads * visible_pairs(shape)
    if shape.backward:
        return 2 * visible * (3 * shape.head_dim + 2 * shape.value_dim)
    return 2 * visible * (shape.head_dim + shape.value_dim)


def visible_pairs(shape: AttentionShape) -> int:
    """(query, key) pairs of one head that the mask lets through; without a mask, and for cross attention, all."""
    if not shape.causal or shape.queries != shape.keys:
        return shape.queries * shape.keys
    text = PAIRS["exact", "all" if shape.window is None else "window"]
    values = {"T": shape.queries} if shape.window is None else {"T": shape.queries, "W": shape.window}
    return int(formulas.parse(text).evaluate(values))


def _flash(name: str, call: Call) -> Work | None:
    """Operators of the flash-attn packages: q, k, v after the output's gradient; lengths packed or padded.

    The first recorded flag is the causal one, and the two numbers after it the window (-1: none). For packed
    sequences the longest length stands before the flag: every sequence is taken to be that long.
    """
    backward = "backward" in name or "bwd" in name
    q = int(backward)
    found = [call.shape(q + i) for i in range(3)]
    flags = [i for i, text in enumerate(call.concrete) if text in ("True", "False")]
    if any(side is None or len(side) not in (3, 4) for side in found):
        return None
    sides = [side for side in found if side is not None]
    causal = bool(flags) and call.concrete[flags[0]] == "True"
    window = _window(call, flags[0]) if flags else None
    if len(sides[0]) == 4 and all(len(side) == 4 for side in sides):
        return _attended(call, (q, *(_named(side, "BSHD") for side in sides)), (causal, window), backward)
    longest = max((n[0] for i in range(flags[0] if flags else 0) if (n := call.ints(i)) and len(n) == 1), default=0)
    if not all(len(side) == 3 for side in sides) or longest <= 0:
        return None
    count = max(1, sides[0][0] // longest)
    named = [(count, side[1], longest, side[2]) for side in sides]
    note = f"packed sequences taken as {count} of {longest} tokens: an upper bound"
    return _attended(call, (q, *named), (causal, window), backward, note)


def _window(call: Call, flag: int) -> int | None:
    """Keys that a query sees: those to its left that the window holds, and its own."""
    left = call.ints(flag + 1)
    return left[0] + 1 if left and len(left) == 1 and left[0] >= 0 else None


_RULES: Mapping[str, Callable[[Call], Work | None]] = {
    "mm": _matmul(0, 1), "_int_mm": _matmul(0, 1), "_scaled_mm": _matmul(0, 1),
    "addmm": _matmul(1, 2), "addmm_": _matmul(1, 2), "_addmm_activation": _matmul(1, 2),
    "bmm": _matmul(0, 1, batched=True), "baddbmm": _matmul(1, 2, batched=True),
    "baddbmm_": _matmul(1, 2, batched=True), "linear": _linear,
    "_grouped_mm": _grouped, "_scaled_grouped_mm": _grouped,
    "conv1d": _convolution(3, 4, 5), "conv2d": _convolution(3, 4, 5), "conv3d": _convolution(3, 4, 5),
    "convolution": _convolution(3, 4, 5), "_convolution": _convolution(3, 4, 5),
    "cudnn_convolution": _convolution(3, 2, 4), "miopen_convolution": _convolution(4, 3, 5),
    "convolution_backward": _convolution_backward,
    "_scaled_dot_product_flash_attention": _attention(0, "BHSD", 4),
    "_scaled_dot_product_cudnn_attention": _attention(0, "BHSD", 6),
    "_scaled_dot_product_efficient_attention": _attention(0, "BHSD", 6),
    "_flash_attention_forward": _attention(0, "BSHD", 8),
    "_efficient_attention_forward": _attention(0, "BSHD", 9),
    "_scaled_dot_product_flash_attention_backward": _attention(1, "BHSD", 11, backward=True),
    "_scaled_dot_product_cudnn_attention_backward": _attention(1, "BHSD", 14, backward=True),
    "_scaled_dot_product_efficient_attention_backward": _attention(1, "BHSD", 11, backward=True),
    "_flash_attention_backward": _attention(1, "BSHD", 11, backward=True),
    "_efficient_attention_backward": _attention(1, "BSHD", 13, backward=True),
}  # fmt: skip
