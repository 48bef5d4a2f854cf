"""T158: small collectives."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.losses import Told, judged


@rule("T158", "Small collectives are fused", threshold=1, unit="%",
      why="a handful of scalars a step costs nothing")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Exposed collectives with a wire time below 50 us that are far from the link's bandwidth, or below 256 KiB.

    ## Why it matters
    Each costs its latency whatever its size: a hundred small ones cost as much as a large one.

    ## How to confirm
    Count them per step; look for norms, loss scalars and per-parameter calls.

    ## What to do, cheapest first
    1. Flatten into one buffer; coalesce (`_coalescing_manager`, foreach).
    2. Log reduced metrics every few steps.

    ## Sources
    Wire times of the trace.
    """
    told = Told(
        "Collectives too small for the link to matter run exposed for",
        "Fuse them into one call, or do them every few steps.",
    )
    yield from judged(facts, this, "latency", told)
