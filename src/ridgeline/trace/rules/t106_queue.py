"""T106: idle time before kernels that were queued."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.losses import Told, bucket


@rule("T106", "Queued kernels follow each other", threshold=5, unit="%",
      why="a kernel that is queued starts a microsecond or two after the one before it")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Device idle time before work that had been launched in time: the device's own latency between kernels, a wait
    for an event of another stream or of the host, or work that the profiler did not record.

    ## Why it matters
    Thousands of tiny kernels cost a microsecond each; a single long gap means a wait that nobody drew, or missing
    events.

    ## How to confirm
    Many gaps below five microseconds: small kernels. A few long ones: look for launch calls in the file whose
    kernel is not, and for event waits.

    ## What to do, cheapest first
    1. Fuse elementwise chains (compile, fused optimizers and norms).
    2. Larger micro-batches.
    3. Replace event waits by priorities; check that all streams and graphs are recorded.

    ## Sources
    Launch times of the trace; kineto issue 996 and pytorch issue 192021 on kernels that are not recorded.
    """
    told = Told(
        "The device idles between queued kernels for",
        "Fuse small kernels; for long gaps look for waits on other streams or missing events.",
    )
    yield from bucket(facts, this, "queue_gap", "queue_gap", told)
