"""T403: does the power limit hold a chip's clock down."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.rank_findings import clock_findings


@rule("T403", "No chip is held at its power limit", threshold=98, unit="%", at_least=True,
      why="clocks of equal chips under one load agree within two hundredths")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The SM clock under load against the best in the job, where the driver reports the power cap in a fifth of the
    samples, or where the power is within 2% of the limit.

    ## Why it matters
    A lower limit on one host slows the job to that host. At equal limits it is the price of dense arithmetic: zeros and
    repeated values draw less power and give clocks that real data do not reach.

    ## How to confirm
    `nvidia-smi -q -d POWER`: is the enforced limit the same everywhere?

    ## What to do, cheapest first
    1. Equal limits over the job.
    2. The board's default limit where the site's power allows.
    3. Expect the sustained clock, not the boost clock, in the peak of the MFU.

    ## Sources
    Clock event reasons of the NVML reference; `nvidia-smi dmon -s pv`, DCGM fields 155, 164, 240.
    """
    fix = "Compare the limits of the hosts and set them equal; raise them where the site allows."
    yield from clock_findings(facts, this, "at the power limit", "the power limit", fix)
