"""FLOPs of a model over a layout: projections, MLP and experts grow with slots, attention scores with pairs.

Shares are of the forward pass; the backward pass is twice each term, so that a training step has the same shares.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ridgeline.arithmetic.flops import Term, add, forward_parts
from ridgeline.arithmetic.pairs import MASKS, Batch
from ridgeline.arithmetic.params import Leaves
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.quantity import Quantity, derive, renamed
from ridgeline.gate.padding.layouts import Layout

CORE = (Term.SCORES, Term.VALUES, Term.INDEXER)
_KEPT = ("model.", "params.", "flops.weights.")  # what every layout shares


@dataclass(frozen=True)
class Work:
    """Forward FLOPs of one layout, by term, and their sum."""

    parts: Mapping[Term, Quantity]
    total: Quantity

    @property
    def attention(self) -> float:
        """FLOPs between attention's projections: scores, values and an indexer's scores."""
        return float(sum(float(part.base) for term, part in self.parts.items() if term in CORE))


def work(spec: ModelSpec, layout: Layout, prefix: str) -> Work:
    """The model's work over a layout, exactly the pairs that mask and windows let through; names get the prefix.

    Raises `InputError` for a layout without a slot.
    """
    spans = tuple(int(span) for span in layout.spans)
    batch = Batch.of(max(layout.slots, 0), 1, spans)
    parts = forward_parts(Leaves(spec), batch, "exact")
    total = add("flops.forward", parts, "FLOP").titled(f"Forward pass, {layout.name}", MASKS["exact"])
    held = renamed([*parts.values(), total], lambda name: name if name.startswith(_KEPT) else f"{prefix}.{name}")
    return Work(dict(zip(parts, held[:-1], strict=True)), held[-1])


def on_zeros(padded: Work, useful: Work, prefix: str) -> dict[Term, Quantity]:
    """The share of every term's FLOPs that padding takes."""
    return {
        term: derive(f"{prefix}.{term}", "1 - useful/padded", "%", useful=useful.parts[term], padded=part)
        for term, part in padded.parts.items()
        if float(part.base) > 0
    }
