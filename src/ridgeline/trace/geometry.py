"""Which part of the expectation the model's shape never allowed, for a run: see `ridgeline.arithmetic.geometry`.

``expected.corrected`` is the target of the bridge, ``expected.proportional`` its upper end.
"""

from ridgeline.arithmetic.flops import flops
from ridgeline.arithmetic.geometry import Cut, GeometryAudit, audit, dimensions, table_flops
from ridgeline.core.quantity import Quantity, given
from ridgeline.trace.context import RunContext


def audit_geometry(context: RunContext) -> GeometryAudit | None:
    """Head dimension, MLP and expert widths, and vocabulary against the tile, each as cut over chips.

    None where the model, the batch or the tile is not known. FLOP shares are those of `flops` under the run's mask;
    the input table counts where ``geometry.embedding_matmul`` says that it is read by a one-hot matmul.
    """
    tile = _tile(context)
    if context.spec is None or context.batch is None or tile is None:
        return None
    counted = flops(context.spec, context.batch, mask=context.file.training.mask)
    table = table_flops(context.spec, context.batch.tokens) if context.file.geometry.embedding_matmul else None
    return audit(dimensions(context.spec, _cut(context, tile)), counted, expected=context.expected, table=table)


def _cut(context: RunContext, tile: Quantity) -> Cut:
    table, parallel = context.file.geometry, context.file.parallel
    head = tile if table.head_tile is None else given("geometry.head_tile", table.head_tile, "1", "geometry.head_tile")
    own = table.vocab_tile
    vocab = tile if own is None else given("geometry.vocab_tile", own, "1", "geometry.vocab_tile")
    return Cut(head, tile, vocab, tp=parallel.tp, vocab_shards=table.vocab_shards or parallel.tp)


def _tile(context: RunContext) -> Quantity | None:
    if context.file.geometry.tile is not None:
        return given("geometry.tile", context.file.geometry.tile, "1", "geometry.tile").titled("Matmul tile")
    return context.device.tile if context.device else None
