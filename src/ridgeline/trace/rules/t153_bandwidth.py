"""T153: collectives that the link is too slow for."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.losses import Told, judged


@rule("T153", "Collectives reach the bandwidth of the link", threshold=2, unit="%",
      why="a link that delivers leaves a small rest")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Exposed collectives whose wire time (the shortest over the ranks) means less than 60% of the device's link, or takes
    longer than all compute of the step. Waiting for a late rank is not part of it.

    ## Why it matters
    No schedule hides a transfer that takes longer than the compute, and a link at half speed stays at half speed.

    ## How to confirm
    Run the library's own benchmark (nccl-tests, rccl-tests) on the same ranks with the same size.

    ## What to do, cheapest first
    1. Library settings: channels, protocol, NVLS or SHARP; the right network interface.
    2. Look for a degraded link or a wrong topology on some node.
    3. Fewer bytes: bf16 or fp8 reductions, sharding within the node, larger local batch.

    ## Sources
    Bus bandwidth after the definition of nccl-tests; the link of the device's file.
    """
    told = Told(
        "Collectives whose transfer is the limit stay exposed for",
        "Check topology, library settings and links; then send fewer bytes.",
    )
    yield from judged(facts, this, "bandwidth", told)
