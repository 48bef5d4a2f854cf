"""T404: is a chip's clock low for no reason that is reported."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.rank_findings import clock_findings


@rule("T404", "No chip runs slower without a reason", threshold=98, unit="%", at_least=True,
      why="clocks of equal chips under one load agree within two hundredths")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The SM clock under load against the best in the job, where neither heat nor power explains the difference.

    ## Why it matters
    Application clocks that a benchmark left locked, a power brake, or a failing board: all slow the whole job.

    ## How to confirm
    `nvidia-smi -q -d CLOCK,PERFORMANCE` on the host against a good one.

    ## What to do, cheapest first
    1. Reset locked clocks.
    2. Sample clock event reasons too (`dcgmi dmon -e 100,112,150,155`).
    3. Drain the host and test the board.

    ## Sources
    Clock event reasons of the NVML reference.
    """
    fix = "Look for locked application clocks on the named hosts; reset them and compare again."
    yield from clock_findings(facts, this, "low clock", "no reported reason", fix)
