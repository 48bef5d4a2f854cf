"""T154: collectives that would fit under compute."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.losses import Told, judged


@rule("T154", "Collectives are scheduled under compute", threshold=2, unit="%",
      why="prefetched collectives leave the first and the last exposed")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Exposed collectives whose wire time is near what the link allows and shorter than the compute of the step. Waiting
    for a late rank is not part of it.

    ## Why it matters
    Nothing is wrong with the network: the time comes back by issuing the transfer earlier.

    ## How to confirm
    In the timeline, what ends just before the collective starts? If its input was ready long before, it is scheduling.

    ## What to do, cheapest first
    1. Overlap flags: prefetch of FSDP all-gathers, overlap of gradient reduction, async tensor parallelism.
    2. XLA: latency-hiding scheduler, async collectives, enough memory for prefetch.
    3. Smaller or larger buckets; streams with priority.

    ## Sources
    Megatron-LM and PyTorch FSDP document their overlap options.
    """
    told = Told(
        "Collectives that would fit under compute run exposed for",
        "Issue them earlier: prefetch, overlap flags, the latency-hiding scheduler.",
    )
    yield from judged(facts, this, "scheduling", told)
