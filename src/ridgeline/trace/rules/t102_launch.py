"""T102: time the device waits for late launches."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.losses import Told, bucket


@rule("T102", "The host launches kernels in time", threshold=5, unit="%",
      why="hosts that run ahead leave gaps of microseconds only")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Device idle time before kernels whose launch began after the work before them had ended: inside runtime calls
    and between launch and start (``launch_gap``), and in Python and operators on the way there (``framework_gap``).

    ## Why it matters
    A host-bound step does not get faster with a faster chip, and the slowest host of the job sets its pace.

    ## How to confirm
    Double the batch: if the step time barely moves, the host is the limit. Look at one gap in the timeline: what
    does the launching thread do?

    ## What to do, cheapest first
    1. Remove logging, checks and `.item()` from the step; use foreach or fused optimizers.
    2. torch.compile, CUDA graphs, or larger jitted regions: one launch instead of hundreds.
    3. Pin threads to cores beside the chip; look for other processes on that host.
    4. Larger micro-batches.

    ## Sources
    Launch times of the trace. PyTorch documentation, CUDA graphs.
    """
    told = Told(
        "The device waits for late kernel launches for",
        "Capture the step in a graph or compile it; look at what the launching thread does in the longest gaps.",
    )
    yield from bucket(facts, this, ("launch_gap", "framework_gap"), "late_launch", told)
