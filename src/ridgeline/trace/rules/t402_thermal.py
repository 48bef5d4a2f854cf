"""T402: does heat hold a chip's clock down."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.rank_findings import clock_findings


@rule("T402", "No chip is throttled by heat", threshold=98, unit="%", at_least=True,
      why="clocks of equal chips under one load agree within two hundredths")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The SM clock under load against the best in the job, where the driver reports thermal slowdown in a fifth of the
    samples, or where the device is hotter than the median and its power is below the limit.

    ## Why it matters
    Matrix multiplication runs with the clock. One hot chip slows every rank.

    ## How to confirm
    `nvidia-smi -q -d PERFORMANCE,TEMPERATURE` on the host; run the same load on its neighbour.

    ## What to do, cheapest first
    1. Drain the host, look at fans, dust, coolant flow and inlet temperature.
    2. Place the job elsewhere.
    3. Lower the power limit of all: an even clock beats a good one that waits.

    ## Sources
    Clock event reasons of the NVML reference; `nvidia-smi dmon -s pc`, DCGM fields 100, 112, 150, 241.
    """
    fix = "Check the airflow or coolant of the named hosts; take them out until then."
    yield from clock_findings(facts, this, "throttled by heat", "heat", fix)
