"""T203: attention heads narrower than the matrix unit."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l2_losses import judged, narrow_heads


@rule("T203", "Attention heads fill the matrix unit", threshold=5, unit="%",
      why="heads of 128 lose nothing; the rest is what short heads may cost")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The head dimension of every attention operator against the tile of the device, and the attention time that the
    padding of narrow heads takes at most.

    ## Why it matters
    On a systolic unit of 128 a head of 64 or 96 is padded and the padded products are computed. On GPUs a head of
    64 halves the matmul work per softmax element, so that exponentials and not the matrix unit set the pace.

    ## How to confirm
    Benchmark the attention kernel alone with head dimension 64 and 128 at equal width: the difference in TFLOP/s is
    what the shape costs.

    ## What to do, cheapest first
    1. Nothing in this run: the shape is trained in. Correct the expected MFU for it.
    2. In the next model use heads of 128 and half as many.

    ## Sources
    `ridgeline.arithmetic.tiles`. Shah et al., FlashAttention-3 (arXiv:2407.08608), speed by head dimension.
    """
    if facts.l2 is not None:
        told = (
            "Heads narrower than the tile cost attention at most",
            "Correct the expectation; use heads of 128 in the next model.",
        )
        yield from judged(facts, this, "head_dim", narrow_heads(facts.l2), told)
