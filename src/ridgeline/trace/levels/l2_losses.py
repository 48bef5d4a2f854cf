"""What operations lose against what their shapes and device allow: nanoseconds per traced window, by cause.

The causes overlap (a matmul with a bad shape is also a slow one): a cost is for one fix alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ridgeline.arithmetic.tiles import tile_efficiency
from ridgeline.core.finding import Cost, Finding, Rule, Verdict
from ridgeline.core.format import parenthesised
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l2 import Operation, Operations

ALIGNED_BYTES = 16  # matrix units load 16 bytes at a time: NVIDIA Matrix Multiplication Background, chapter 2


@dataclass(frozen=True)
class Lost:
    """Time lost by some rows. ``rows`` with their own loss (ns), the largest first."""

    rows: tuple[tuple[Operation, float], ...]

    @property
    def ns(self) -> float:
        """The sum."""
        return sum(loss for _, loss in self.rows)

    @property
    def worst(self) -> Operation:
        """The row that loses most."""
        return self.rows[0][0]


def lost(pairs: Iterable[tuple[Operation, float]]) -> Lost:
    """Rows with a loss above zero."""
    return Lost(tuple(sorted(((row, ns) for row, ns in pairs if ns > 0), key=lambda item: -item[1])))


def compute_bound_matmuls(ops: Operations) -> list[Operation]:
    """Matmuls whose roofline is the matrix unit: those that can be held to the peak."""
    rows = (row for row in ops.rows if row.limit == "compute bound" and row.flops and row.work is not None)
    return [row for row in rows if row.family == "matmul" or (row.work is not None and row.work.gemm is not None)]


def below_reach(rows: Sequence[Operation], reach: float) -> Lost:
    """Time beyond what the roofline's bound takes at a share ``reach`` of it."""
    return lost((row, row.device_ns - row.bound_ns / reach) for row in rows if row.bound_ns is not None)


def quantized(ops: Operations) -> Lost:
    """Time of padded tiles and empty places of the last wave, at most."""
    rows = [row for row in compute_bound_matmuls(ops) if row.quantization is not None]
    return lost((row, row.device_ns * (1 - row.quantization.efficiency)) for row in rows if row.quantization)


def unaligned(ops: Operations) -> Lost:
    """Time of matmuls with an odd inner dimension beyond what aligned ones would take.

    Aligned matmuls of the same data type set the efficiency that is expected, those that the matrix unit limits if
    there are any; without any there is no yardstick, and no loss is stated.
    """
    rows = [row for row in ops.rows if row.work is not None and row.work.gemm and row.efficiency]
    good: dict[str, list[float]] = {}
    aligned = [row for row in rows if not _odd(row)]
    limited = {row.dtype for row in aligned if row.limit == "compute bound"}
    for row in aligned:
        if row.limit == "compute bound" or row.dtype not in limited:
            sums = good.setdefault(row.dtype, [0.0, 0.0])
            sums[0] += row.bound_ns or 0.0
            sums[1] += row.device_ns
    reach = {dtype: bound / time for dtype, (bound, time) in good.items() if bound}
    slow = (row for row in rows if _odd(row) and row.dtype in reach)
    return lost((row, row.device_ns - (row.bound_ns or 0.0) / reach[row.dtype]) for row in slow)


def _odd(row: Operation) -> bool:
    assert row.work is not None
    assert row.work.gemm is not None
    per_element = {"fp32": 4, "tf32": 4, "fp8": 1, "fp64": 8}.get(row.dtype, 2)
    step = ALIGNED_BYTES // per_element
    return row.work.gemm.n % step != 0 or row.work.gemm.k % step != 0


def single_precision(ops: Operations) -> Lost:
    """Time of fp32 matmuls beyond what TF32, or the fastest 16-bit format, would take at the same efficiency."""
    if ops.device is None:
        return Lost(())
    own = ops.device.peak("fp32")
    faster = [peak for name in ("tf32", "bf16", "fp16") if (peak := ops.device.peak(name)) is not None]
    rows = [row for row in ops.rows if row.dtype == "fp32" and row.work is not None and row.work.gemm]
    if own is None or not faster:
        return Lost(())
    share = min(1.0, float(own.value) / float(faster[0].value))
    bandwidth = ops.device.hbm_bandwidth
    rate = float(bandwidth.value) if bandwidth else 0.0

    def loss(row: Operation) -> float:
        memory = (row.bytes or 0) / rate / 1e-9 if rate else 0.0
        return row.device_ns - max(row.device_ns * share, memory)

    return lost((row, loss(row)) for row in rows)


def score_matrices(ops: Operations) -> Lost:
    """Time of softmax and elementwise kernels on materialized attention scores [.., queries, keys].

    Recognized by a softmax over a square of at least 128 keys, of three dimensions or more; elementwise kernels on
    arrays of that shape (scaling, masking, dropout) count with it.
    """
    shapes = {
        shape
        for row in ops.rows
        if "softmax" in row.name and "log_softmax" not in row.name
        for shape in row.shapes[:1]
        if len(shape) >= 3 and shape[-1] == shape[-2] and shape[-1] >= 128
    }
    families = ("softmax", "elementwise", "copy")
    rows = (row for row in ops.rows if row.family in families and any(shape in shapes for shape in row.shapes))
    return lost((row, float(row.device_ns)) for row in rows)


def narrow_heads(ops: Operations) -> Lost:
    """Attention time that padding of the head dimension to the device's tile takes, at most."""
    tile = ops.device.tile if ops.device else None
    if tile is None:
        return Lost(())
    pairs = []
    for row in ops.rows:
        attended = row.work.attention if row.work is not None else None
        if attended is not None:
            side = leaf("attention.head_dim", max(attended.head_dim, 1), "1", "measured", Source("the trace", row.name))
            pairs.append((row, row.device_ns * (1 - float(tile_efficiency(side, tile, "attention").base))))
    return lost(pairs)


def judged(facts: TraceFacts, this: Rule, name: str, found: Lost | float, told: tuple[str, str]) -> Iterator[Finding]:
    """One finding by the share of device work that is lost: pass below the threshold, else a warning with its cost.

    ``told``: how the sentence begins, and the fix. What rests on shapes is unknown where none were recorded.
    """
    ops = facts.l2
    assert ops is not None
    if not ops.rows:
        return
    if isinstance(found, Lost) and not any(row.shapes for row in ops.rows):
        yield this.found(
            Verdict.UNKNOWN, "The trace has no shapes of operators, so their work is not known.",
            "Record them: in PyTorch, profile with record_shapes=True.",
        )  # fmt: skip
        return
    ns = found if isinstance(found, float | int) else found.ns
    seconds, share = shares(ops, name, ns)
    holds = this.holds(share)
    where = "" if isinstance(found, float | int) or holds else f", most of it in {named(found.worst)}"
    sentence = f"{told[0]} {{{seconds.name}}} per step, {{{share.name}}} of the device's work{where}."
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN, sentence, "" if holds else told[1], value=share,
        cost=Cost() if holds else facts.cost(seconds), cites=(seconds,),
    )  # fmt: skip


LABELS = {  # a loss as a cause is called: the rules' titles say what holds where nothing is lost
    "quantization": "Partial tiles and waves of matmuls",
    "head_dim": "Heads narrower than the tile",
    "unaligned": "Matmuls with odd inner dimensions",
    "unfused": "Elementwise chains that are not fused",
    "recompute": "Forward work that backward repeats",
    "single_precision": "Matmuls in fp32",
    "tiny_kernels": "Launches of short kernels",
    "attention_scores": "Attention scores in memory",
}


def shares(ops: Operations, name: str, ns: float) -> tuple[Quantity, Quantity]:
    """``lost.<name>`` (s per step) and ``lost.<name>.share`` (percent of the device's work)."""
    seconds = ops.per_step(f"lost.{name}", ns, LABELS[name])
    work = ops.per_step("l2.work", max(ops.work_ns, 1), "Device work per step")
    share = derive(f"lost.{name}.share", "lost/work", "%", lost=seconds, work=work)
    return seconds, share.titled("Share of the device's work")


def named(row: Operation) -> str:
    """An operation for a sentence: its name and shapes, short, without braces that a renderer would read."""
    shapes = " x ".join("x".join(map(str, shape)) for shape in row.shapes[:2] if shape)
    text = f"{row.label[:60]} {shapes}".strip()
    return parenthesised(text)
