"""T207: matmuls in fp32."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l2_losses import judged, single_precision


@rule("T207", "Matmuls run in the narrow formats", threshold=1, unit="%",
      why="a router or a loss in fp32 is small; anything above is a layer")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Matmuls whose operands are fp32 and whose kernel is not a TF32 one, and their time beyond what TF32 (or the
    fastest 16-bit format) would take at the same efficiency.

    ## Why it matters
    The fp32 rate of a matrix-unit device is a small part of its bf16 rate: one layer outside autocast can cost more
    than all others.

    ## How to confirm
    Print `torch.get_float32_matmul_precision()`, and the dtypes of the operator's inputs in the table.

    ## What to do, cheapest first
    1. `torch.set_float32_matmul_precision("high")`, or `jax_default_matmul_precision`.
    2. Put the layer under autocast, or cast its inputs.
    3. Keep fp32 where the loss needs it (router, final logits), and nowhere else.

    ## Sources
    Dense peaks of the accelerator catalog.
    """
    if facts.l2 is not None:
        told = ("Matmuls in fp32 lose", "Allow TF32, or put the layer under autocast.")
        yield from judged(facts, this, "single_precision", single_precision(facts.l2), told)
