"""T204: matmuls whose inner dimensions are not multiples of 16 bytes."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l2_losses import judged, unaligned


@rule("T204", "Matmul dimensions are aligned", threshold=1, unit="%",
      why="one odd vocabulary or sequence length is enough to be seen")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Matmuls whose k or n is not a multiple of 16 bytes, and their time beyond what the aligned matmuls of the same trace
    would take at the efficiency that those reach.

    ## Why it matters
    Libraries fall back to kernels that load one element at a time: a vocabulary of 50,257 is slower than one of 50,304.

    ## How to confirm
    Pad the dimension with zeros in a benchmark of that one shape.

    ## What to do, cheapest first
    1. Pad the vocabulary and the sequence to a multiple of 64 or 128; mask the rest.
    2. Drop odd class tokens or registers into a padded position.

    ## Sources
    NVIDIA Matrix Multiplication Background User's Guide, chapter 2: alignment of 16 bytes.
    """
    if facts.l2 is not None:
        told = ("Matmuls with odd inner dimensions lose", "Pad that dimension to a multiple of 64.")
        yield from judged(facts, this, "unaligned", unaligned(facts.l2), told)
