"""T205: chains of memory-bound kernels that a compiler would fuse."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.core.format import parenthesised
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l2_losses import judged


@rule("T205", "Elementwise chains are fused", threshold=2, unit="%",
      why="below it a compiler pass is not worth its risk")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Runs of neighbouring elementwise kernels, casts, normalizations and reductions over arrays of one size on one
    stream, and the time of writing and reading back what is between them, at the bandwidth they reach.

    ## Why it matters
    Each such kernel reads and writes the whole array. Fused, the intermediate never leaves the chip.

    ## How to confirm
    Compile the module that the chain belongs to and compare the sum of its kernels. What backward saves is still
    written: the estimate is an upper bound.

    ## What to do, cheapest first
    1. torch.compile on the module, or the fused operator of the framework (norm, SwiGLU, rotary, cross entropy).
    2. A fused optimizer instead of a chain per parameter.
    3. A hand-written kernel for the longest chain.

    ## Sources
    Durations and shapes of the trace; each array once over the memory bus.
    """
    if facts.l2 is None or not facts.l2.rows:
        return
    chains = facts.l2.chains
    first = parenthesised(" > ".join(chains[0].operations[:4])) if chains else ""
    lead = f"Fusing elementwise chains ({first} first) saves at most" if first else "Unfused elementwise chains take"
    ns = float(sum(chain.saved_ns for chain in chains))
    yield from judged(facts, this, "unfused", ns, (lead, "Compile those modules, or use fused operators."))
