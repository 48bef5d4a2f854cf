"""T202: partial tiles and waves of matmuls."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l2_losses import judged, quantized


@rule("T202", "Matmul shapes fill tiles and waves", threshold=5, unit="%",
      why="a few percent of padding and tail is the price of any real shape")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of executed output tiles and of the slots of the waves that is padding or empty, for every matmul that
    the matrix unit limits: from its shape, the tile in its kernel's name (else the planning tile) and the unit count.

    ## Why it matters
    A last wave of ten tiles takes as long as one of 132. On 132 units, 133 tiles take twice as long as 132.

    ## How to confirm
    Run the shape with n one tile smaller: if the time falls by a step, the tail wave was the cost. Nsight Compute's
    launch statistics print waves per SM.

    ## What to do, cheapest first
    1. Change the micro-batch or the sequence so that tiles divide by the unit count.
    2. Let the library use split-k or stream-k for that shape.
    3. Pad hidden, intermediate and vocabulary sizes to multiples of the tile (at the next model).

    ## Sources
    `ridgeline.arithmetic.tiles`; NVIDIA Matrix Multiplication Background User's Guide, chapters 3.1 and 3.2. A bound:
    split-k and persistent kernels lose less.
    """
    if facts.l2 is not None:
        told = (
            "Partial tiles and waves of matmuls take at most",
            "Make tiles divide by the unit count: micro-batch, padding, split-k.",
        )
        yield from judged(facts, this, "quantization", quantized(facts.l2), told)
