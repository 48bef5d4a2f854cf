"""T302: does Python's garbage collector stop the run."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.stall_findings import stall_findings


@rule("T302", "No garbage collection inside steps", threshold=0.5, unit="%",
      why="collection can be moved out of the step altogether, at no cost")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    That no stall comes back with garbage collection: by a phase timer of that name, else a stall whose gaps are nearly
    equal and drift against the step count, as the collector counts allocations and not steps.

    ## Why it matters
    The collector stops the host. Ranks collect at different steps, and a synchronous job waits for each of them: with
    many ranks nearly every step has one that collects.

    ## How to confirm
    Set `gc.callbacks` and log the times, or run with `gc.disable()`: the stalls go.

    ## What to do, cheapest first
    1. `gc.freeze()` after start-up and a higher threshold.
    2. `gc.disable()`, and `gc.collect(1)` every N steps on all ranks at once.
    3. Fewer reference cycles and small objects in the loop.

    ## Sources
    The binomial tail of gaps within 15% of their median against memoryless gaps; see `trace/levels/periodic.py`.
    """
    fix = "Freeze what lives long (gc.freeze), disable collection, and collect every N steps on all ranks at once."
    yield from stall_findings(facts, this, "garbage collection", "Garbage collection", fix)
