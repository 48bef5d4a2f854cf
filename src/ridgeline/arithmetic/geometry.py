"""What a model's shape never allowed: dimensions that the tile pads.

A dimension of size n executes ceil(n/tile)*tile rows; the part between is multiplied and thrown away. With s the
share of the FLOPs in which the dimension occurs, s*(1 - n/padded) of the matrix units' slots hold padding.

Two corrections of an expectation E, both given:

* ``expected.corrected`` = E - sum of s*(1 - efficiency): the slots that hold padding, in points of peak. It charges
  padded work at the peak's worth, which is right where that work (attention cores) runs slower than the mean.
* ``expected.proportional`` = E/(1 + sum of s*(1/efficiency - 1)): padded work as fast as the mean of the step.

The first is the lower one, the second its upper end.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ridgeline.arithmetic.flops import Flops, Term
from ridgeline.arithmetic.params import Leaves, weigh
from ridgeline.arithmetic.spec import MLP, Attention, ModelSpec, MoE, Part
from ridgeline.arithmetic.tiles import tile_efficiency
from ridgeline.core.quantity import Quantity, derive, given

CORE = (Term.SCORES, Term.VALUES)


@dataclass(frozen=True)
class Cut:
    """Tiles of the head dimension, of widths and of the vocabulary; chips that share a width and the vocabulary."""

    head_tile: Quantity
    tile: Quantity
    vocab_tile: Quantity
    tp: int = 1
    expert_tp: int = 1
    vocab_shards: int = 1


@dataclass(frozen=True)
class Dimension:
    """``size`` of the model, cut over ``shards`` chips, against a tile; ``terms`` are the FLOPs it occurs in."""

    what: str
    size: int
    shards: int
    tile: Quantity
    terms: tuple[Term, ...]


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

    def of(self, what: str) -> Padded | None:
        """The dimension of that name, if it was checked."""
        return next((item for item in self.dimensions if item.what == what), None)


def dimensions(spec: ModelSpec, cut: Cut) -> Iterator[Dimension]:
    """Head dimension, MLP and expert widths, and vocabulary. One of several sizes is left out: shares are not split."""
    blocks = [block for kind in spec.kinds for block in (*kind.mixers, *kind.ffns)]
    heads = {block.head_dim for block in blocks if isinstance(block, Attention)}
    if len(heads) == 1:
        yield Dimension("head_dim", heads.pop(), 1, cut.head_tile.titled("Tile of the head dimension"), CORE)
    widths = {block.d_ff for block in blocks if isinstance(block, MLP)}
    if len(widths) == 1:
        yield Dimension("d_ff", widths.pop(), cut.tp, cut.tile, (Term.MLP,))
    experts = {block.expert_ff for block in blocks if isinstance(block, MoE)}
    if len(experts) == 1:
        yield Dimension("expert_ff", experts.pop(), cut.expert_tp, cut.tile, (Term.EXPERTS,))
    yield Dimension("vocab", spec.vocab, cut.vocab_shards, cut.vocab_tile, (Term.HEAD,))


def audit(
    rows: Iterable[Dimension],
    counted: Flops,
    *,
    expected: Quantity | None = None,
    table: Quantity | None = None,
) -> GeometryAudit | None:
    """Every dimension against its tile, and the expectation without what the tiles pad; None without a dimension.

    ``table`` are the FLOPs of an input table that is read by a one-hot matmul (`table_flops`). Names are
    ``geometry.<dimension>.*``, ``geometry.tax``, ``expected.corrected`` and ``expected.proportional``.
    """
    found = tuple(item for row in rows if (item := _padded(row, counted, table)) is not None)
    if not found:
        return None
    points = {row.what: row.points for row in found}
    tax = derive("geometry.tax", " + ".join(points), "%", **points)
    tax = tax.titled("Slots that hold padding, points of peak")
    if expected is None:
        return GeometryAudit(found, tax, None, None)
    inputs = {"expected": expected, "tax": tax}
    corrected = derive("expected.corrected", "expected - tax", "%", **inputs)
    symbols: dict[str, Quantity] = {"expected": expected}
    for number, row in enumerate(found):
        symbols |= {f"s_{number}": row.share, f"e_{number}": row.efficiency}
    extra = " + ".join(f"s_{number}*(1/e_{number} - 1)" for number in range(len(found)))
    proportional = derive("expected.proportional", f"expected/(1 + {extra})", "%", **symbols)
    note = "padded work as fast as the mean of the step: the upper end"
    return GeometryAudit(
        found,
        tax,
        corrected.titled("Corrected expectation"),
        proportional.titled("Corrected expectation, proportional", note),
    )


def _padded(row: Dimension, counted: Flops, table: Quantity | None) -> Padded | None:
    carried = {str(term): counted.step_parts[term] for term in row.terms if term in counted.step_parts}
    if not carried:
        return None
    name = f"geometry.{row.what}"
    total = {"step": counted.train_step}
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


def table_flops(spec: ModelSpec, tokens: Quantity) -> Quantity:
    """``geometry.table_flops`` (FLOP): the input table as a one-hot matmul, forward and backward."""
    weights = weigh(
        Leaves(spec),
        "geometry.table",
        lambda place, weight: weight.part is Part.EMBEDDING and not place.mtp,
        active=True,
        used=True,
    )
    found = derive("geometry.table_flops", "6*weights*tokens", "FLOP", weights=weights, tokens=tokens)
    return found.titled("Input table as a one-hot matmul")
