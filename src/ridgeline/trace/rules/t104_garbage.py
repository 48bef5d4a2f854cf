"""T104: garbage collection while the device is idle."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.losses import Told, bucket


@rule("T104", "Garbage collection does not stop the device", threshold=0.5, unit="%",
      why="collections in a step can be avoided altogether")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Device idle time under a range of Python's garbage collection.

    ## Why it matters
    Each rank collects at another step, and all wait for that one: the cost grows with the number of ranks.

    ## How to confirm
    Disable it (`gc.disable()`) for some steps and compare the spread of step times.

    ## What to do, cheapest first
    1. `gc.disable()` after set-up and `gc.collect()` on all ranks at the same step, every thousand or so.
    2. `gc.freeze()` after set-up.
    3. Fewer Python objects in the step.

    ## Sources
    torchtitan and Megatron-LM both collect on a fixed schedule for this reason.
    """
    told = Told(
        "Garbage collection leaves the device idle for",
        "Collect on a fixed schedule, on all ranks at the same step.",
    )
    yield from bucket(facts, this, "gc_gap", "gc_gap", told)
