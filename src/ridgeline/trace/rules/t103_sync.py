"""T103: gaps after the host waited for the device."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.losses import Told, bucket


@rule("T103", "No synchronisation drains the queue", threshold=1, unit="%",
      why="one loss read per step costs less when it is deferred")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Device idle time while the launching thread was in a synchronisation (device, stream or event synchronise,
    blocking copy, allocation), or in the gap behind one.

    ## Why it matters
    When the host waits for the device it stops running ahead; every launch after it is late.

    ## How to confirm
    The timeline shows the call before the gap; its stack shows the line (`.item()`, `.cpu()`, `print(loss)`, an
    assert).

    ## What to do, cheapest first
    1. Log the loss of the step before, or every tenth step; keep scalars on the device.
    2. Non-blocking copies from pinned memory.
    3. Masks instead of data-dependent shapes; a fixed capacity for experts.
    4. Cached allocations: no allocation within the step.

    ## Sources
    Call names: core/data/names/host_ranges.toml. PyTorch performance tuning guide, on avoiding synchronisation.
    """
    told = Told(
        "The device runs dry behind host synchronisations for",
        "Find the call that waits (loss.item(), .cpu(), asserts) and defer it.",
    )
    yield from bucket(facts, this, "sync_gap", "sync_gap", told)
