"""T303: what checkpoints cost per step."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.stall_findings import stall_findings


@rule("T303", "Checkpoints do not stop the run", threshold=1, unit="%",
      why="an asynchronous checkpoint costs the copy to host memory: below a hundredth of the step")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    That stalls which carry a checkpoint cost little per step: by a phase or a log line of that name, else by a rare
    stall of a step or longer.

    ## Why it matters
    The stall divided by the interval is paid on every step. Too rare a checkpoint costs lost work instead: the optimum
    is about the square root of twice the cost times the mean time between failures.

    ## How to confirm
    Compare the stall with the log lines of the checkpoint, and one run of a few intervals without saving.

    ## What to do, cheapest first
    1. Asynchronous saving: copy to host memory, write in the background.
    2. Save from every rank its own shard; faster storage.
    3. The interval by Young's formula.

    ## Sources
    Young 1974, A first order approximation to the optimum checkpoint interval.
    """
    fix = "Write checkpoints asynchronously, then from several ranks; choose the interval from failure rate and cost."
    yield from stall_findings(facts, this, "checkpoint", "Writing checkpoints", fix)
