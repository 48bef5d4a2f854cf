"""T304: what evaluations cost per step."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.stall_findings import stall_findings


@rule("T304", "Evaluation does not stop the run", threshold=1, unit="%",
      why="below a hundredth of the step it is not worth moving")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    That stalls which carry an evaluation (a phase or a log line of that name) cost little per step.

    ## Why it matters
    Evaluation inside the loop is time on every chip of the job. It is rarely in the MFU that is reported.

    ## How to confirm
    Compare the stall with the log lines of the evaluation; run a few intervals without it.

    ## What to do, cheapest first
    1. Fewer batches: the error of the mean falls with their square root only.
    2. Less often, in step with checkpoints.
    3. Evaluate checkpoints beside the run.

    ## Sources
    The time between log lines at marked steps.
    """
    fix = "Evaluate less often or on fewer batches, or evaluate checkpoints on other chips."
    yield from stall_findings(facts, this, "evaluation", "Evaluation", fix)
