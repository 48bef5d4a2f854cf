"""T209: attention that writes its score matrix to memory."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l2_losses import judged, score_matrices


@rule("T209", "Attention keeps its scores on the chip", threshold=1, unit="%",
      why="a flash kernel writes none of them")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    A softmax over a square of 128 keys or more outside a fused attention kernel, with the scaling, masking, dropout and
    copies of arrays of that shape.

    ## Why it matters
    The scores are T times larger than what goes in: their traffic, not the two matmuls, sets the time, and their memory
    forces recomputation.

    ## How to confirm
    Look for a softmax between two batched matmuls in the operator table. A mask or a data type may keep the framework
    from its fused kernel: it warns once.

    ## What to do, cheapest first
    1. Call the framework's fused attention (`scaled_dot_product_attention`, `jax.nn.dot_product_attention`).
    2. Turn arbitrary masks into the causal flag, windows or a block mask.
    3. Give q, k and v in 16 bits and with a supported head dimension.

    ## Sources
    Dao et al. 2022 (arXiv:2205.14135).
    """
    if facts.l2 is not None:
        told = ("Kernels on attention scores in memory take", "Use a fused attention kernel.")
        yield from judged(facts, this, "attention_scores", score_matrices(facts.l2), told)
