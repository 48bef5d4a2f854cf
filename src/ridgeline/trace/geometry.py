"""Which part of the expectation the model's shape never allowed: dimensions that the tile pads.

A dimension of size n executes ceil(n/tile)*tile rows; the part between is multiplied and thrown away. With s the
share of the FLOPs in which the dimension occurs, s*(1 - n/padded) of the matrix units' slots hold padding.

Two corrections of the expectation E, both given:

* ``expected.corrected`` = E - sum of s*(1 - efficiency): the slots that hold padding, in points of peak. It charges
  padded work at the peak's worth, which is right where that work (attention cores) runs slower than the mean.
* ``expected.proportional`` = E/(1 + sum of s*(1/efficiency - 1)): padded work as fast as the mean of the step.

The first is the lower one and the target of the bridge; the second is its upper end.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ridgeline.arithmetic.flops import Flops, Term, flops
from ridgeline.arithmetic.params import Leaves, weigh
from ridgeline.arithmetic.spec import MLP, Attention, ModelSpec, MoE, Part
from ridgeline.arithmetic.tiles import tile_efficiency
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.trace.context import RunContext

_CORE = (Term.SCORES, Term.VALUES)


@dataclass(frozen=True)
class Padded:
    """One dimension against its tile: ``size`` on one chip, the ``share`` of the FLOPs, and the ``points`` of peak."""

    what: str
    size: Quantity
    tile: Quantity
    share: Quantity
    efficiency: Quantity
    points: Quantity


@dataclass(frozen=True)
class GeometryAudit:
    """Every dimension checked; what they take together (percent of peak); the corrected expectations."""

    dimensions: tuple[Padded, ...]
    tax: Quantity
    corrected: Quantity | None
    proportional: Quantity | None

    @property
    def padded(self) -> tuple[Padded, ...]:
        """The dimensions that do not divide, dearest first."""
        worse = [item for item in self.dimensions if float(item.points.value) > 0]
        return tuple(sorted(worse, key=lambda item: -float(item.points.value)))


def audit_geometry(context: RunContext) -> GeometryAudit | None:
    """Head dimension, MLP and expert widths, and vocabulary against the tile, each as cut over chips.

    None where the model, the batch or the tile is not known. FLOP shares are those of `flops` under the run's mask;
    the input table counts where ``geometry.embedding_matmul`` says that it is read by a one-hot matmul.
    """
    tile = _tile(context)
    if context.spec is None or context.batch is None or tile is None:
        return None
    counted = flops(context.spec, context.batch, mask=context.file.training.mask)
    rows = [_padded(row, counted, context) for row in _dimensions(context, context.spec, tile)]
    found = tuple(row for row in rows if row is not None)
    if not found:
        return None
    return _audit(context, found)


@dataclass(frozen=True)
class _Dimension:
    what: str
    size: int
    shards: int
    tile: Quantity
    terms: tuple[Term, ...]


def _dimensions(context: RunContext, spec: ModelSpec, tile: Quantity) -> Iterable[_Dimension]:
    table, parallel = context.file.geometry, context.file.parallel
    head = tile if table.head_tile is None else given("geometry.head_tile", table.head_tile, "1", "geometry.head_tile")
    blocks = [block for kind in spec.kinds for block in (*kind.mixers, *kind.ffns)]
    heads = {block.head_dim for block in blocks if isinstance(block, Attention)}
    if len(heads) == 1:  # shares are not told apart between layers of several widths
        yield _Dimension("head_dim", heads.pop(), 1, head.titled("Tile of the head dimension"), _CORE)
    widths = {block.d_ff for block in blocks if isinstance(block, MLP)}
    if len(widths) == 1:
        yield _Dimension("d_ff", widths.pop(), parallel.tp, tile, (Term.MLP,))
    experts = {block.expert_ff for block in blocks if isinstance(block, MoE)}
    if len(experts) == 1:
        yield _Dimension("expert_ff", experts.pop(), 1, tile, (Term.EXPERTS,))
    own = table.vocab_tile
    vocab = tile if own is None else given("geometry.vocab_tile", own, "1", "geometry.vocab_tile")
    yield _Dimension("vocab", spec.vocab, table.vocab_shards or parallel.tp, vocab, (Term.HEAD,))


def _padded(row: _Dimension, counted: Flops, context: RunContext) -> Padded | None:
    carried = {str(term): counted.step_parts[term] for term in row.terms if term in counted.step_parts}
    if not carried:
        return None
    name = f"geometry.{row.what}"
    total = {"step": counted.train_step}
    table = _table_flops(context)
    if table is not None:
        total["table"] = table
        carried |= {"table": table} if row.what == "vocab" else {}
    whole = given(f"{name}.whole", row.size, "1", "the model").titled(f"{row.what} of the model")
    shards = given(f"{name}.shards", row.shards, "1", "parallel").titled(f"Chips that share {row.what}")
    size = derive(f"{name}.size", "whole/shards", "1", whole=whole, shards=shards).titled(f"{row.what} on one chip")
    share = derive(f"{name}.share", f"({' + '.join(carried)})/({' + '.join(total)})", "%", **(carried | total))
    efficiency = tile_efficiency(size, row.tile, prefix=name)
    points = derive(f"{name}.points", "share*(1 - efficiency)", "%", share=share, efficiency=efficiency)
    return Padded(
        row.what, size, row.tile,
        share.titled(f"Share of the FLOPs with {row.what}"),
        efficiency.titled(f"Tile efficiency of {row.what}"),
        points.titled(f"Slots that pad {row.what}, points of peak"),
    )  # fmt: skip


def _table_flops(context: RunContext) -> Quantity | None:
    """The input table as a one-hot matmul, forward and backward; None where it is looked up."""
    if not context.file.geometry.embedding_matmul or context.spec is None or context.batch is None:
        return None
    weights = weigh(
        Leaves(context.spec),
        "geometry.table",
        lambda place, weight: weight.part is Part.EMBEDDING and not place.mtp,
        active=True,
        used=True,
    )
    text = "6*weights*tokens"
    found = derive("geometry.table_flops", text, "FLOP", weights=weights, tokens=context.batch.tokens)
    return found.titled("Input table as a one-hot matmul")


def _audit(context: RunContext, found: tuple[Padded, ...]) -> GeometryAudit:
    points = {row.what: row.points for row in found}
    tax = derive("geometry.tax", " + ".join(points), "%", **points).titled("Slots that hold padding, points of peak")
    if context.expected is None:
        return GeometryAudit(found, tax, None, None)
    inputs = {"expected": context.expected, "tax": tax}
    corrected = derive("expected.corrected", "expected - tax", "%", **inputs).titled("Corrected expectation")
    symbols: dict[str, Quantity] = {"expected": context.expected}
    for number, row in enumerate(found):
        symbols |= {f"s_{number}": row.share, f"e_{number}": row.efficiency}
    extra = " + ".join(f"s_{number}*(1/e_{number} - 1)" for number in range(len(found)))
    proportional = derive("expected.proportional", f"expected/(1 + {extra})", "%", **symbols)
    note = "padded work as fast as the mean of the step: the upper end"
    return GeometryAudit(found, tax, corrected, proportional.titled("Corrected expectation, proportional", note))


def _tile(context: RunContext) -> Quantity | None:
    if context.file.geometry.tile is not None:
        return given("geometry.tile", context.file.geometry.tile, "1", "geometry.tile").titled("Matmul tile")
    return context.device.tile if context.device else None
