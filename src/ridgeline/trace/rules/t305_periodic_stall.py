"""T305: stalls that come back and whose cause the log does not name."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.stall_findings import stall_findings


@rule("T305", "No unexplained periodic stall", threshold=1, unit="%",
      why="below a hundredth of the step other causes pay better")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    That no stall is left that comes back with a period and has no cause: neither a phase timer, nor a log line, nor its
    shape tells what it is.

    ## Why it matters
    A stall every 20 steps of a step's length is 5% of the run. Nobody sees it in the average or in a profile of three
    steps.

    ## How to confirm
    Profile one of the named steps: start the profiler at `first + n * period`.

    ## What to do, cheapest first
    1. Phase timers (`ridgeline.observe`), then this page's neighbours name the cause.
    2. Look for what the code does at `step % period == 0`: logging with a device synchronisation, metrics, saving.
    3. Look for what the machine does at that time: health checks, monitoring, other jobs on the storage.

    ## Sources
    An exact hypergeometric test; see `trace/levels/periodic.py`.
    """
    fix = "Log phase timers for the slow steps: data, forward and backward, optimizer, logging, checkpoint."
    if facts.l3 is not None and not facts.l3.searched:
        yield this.found(
            Verdict.UNKNOWN, "The step log is too short or too uneven to look for a period.", "Log every step."
        )
    yield from stall_findings(facts, this, "unknown", "A cause that the log does not name", fix)
