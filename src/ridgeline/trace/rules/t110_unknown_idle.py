"""T110: idle time without a known cause."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.losses import Told, bucket


@rule("T110", "Idle time has a known cause", threshold=2, unit="%", why="more than this hides a cause of its own")
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Device idle time that ends in work without a launch call, or in a trace without host events.

    ## Why it matters
    It may be input, Python, a late launch or a missing event: nothing in the file tells.

    ## How to confirm
    Record host and device together.

    ## What to do, cheapest first
    1. Record CPU activities as well, with warm-up steps in the schedule.
    2. Read the host from another profiler (Nsight Systems, py-spy).

    ## Sources
    The correlation ids of the trace.
    """
    told = Told(
        "The device is idle without a cause in the file for",
        "Record host and device activities together.",
        missed=Verdict.UNKNOWN,
    )
    yield from bucket(facts, this, "unknown_gap", "unknown_gap", told)
