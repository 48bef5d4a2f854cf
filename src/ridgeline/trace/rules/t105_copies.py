"""T105: copies that nothing hides."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.losses import Told, bucket


@rule("T105", "Copies hide under compute", threshold=2, unit="%", why="prefetched copies overlap")
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Copies between host and device and between devices while nothing computes or communicates, per steady step. Where
    they take more time than compute, the run is copy-bound.

    ## Why it matters
    The link to the host is an order of magnitude slower than the device's memory: offloaded states and batches that
    are copied on the compute stream stop everything.

    ## How to confirm
    Look at the stream of the copies: is it the compute stream, is the host memory pinned, what is the rate in GB/s?

    ## What to do, cheapest first
    1. Pinned memory, non-blocking copies, a stream of their own, one batch ahead.
    2. Copy less: tokens as int32, no masks that the device can make itself.
    3. Offload fewer optimizer states or activations, or recompute them.

    ## Sources
    Copy events of the trace. Some analysers ignore copies and call such a device idle.
    """
    bound = [rank.label for rank in facts.l0 if rank.mean_s("exposed_copy") > max(rank.mean_s("compute"), 1e-12)]
    told = Told(
        "Copies run alone on the device for",
        "Copy from pinned memory on a stream of its own, one batch ahead; copy less.",
        f"copy-bound, more time copies than computes ({', '.join(bound[:4])})" if bound else "",
    )
    yield from bucket(facts, this, "exposed_copy", "exposed_copy", told)
