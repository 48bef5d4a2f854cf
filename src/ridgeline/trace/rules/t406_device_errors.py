"""T406: did devices count errors during the run."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.rank_findings import error_finding


@rule("T406", "Devices count no errors", threshold=0, unit="1",
      why="replayed packets and corrected bits are rare on a sound device")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Counters of ECC, PCIe replays, NVLink errors and Xid events, where they were sampled: what they grew by.

    ## Why it matters
    Replays and recoveries take link time that no profile shows; uncorrected errors end the run, or change its numbers.

    ## How to confirm
    `nvidia-smi -q -d ECC`, `nvidia-smi nvlink -e`, and the kernel's log on the named host.

    ## What to do, cheapest first
    1. Uncorrected errors or an Xid: drain the host.
    2. Growing link errors: reset, then reseat or exchange.
    3. Corrected bits: watch the rate.

    ## Sources
    DCGM fields 202, 230, 310, 311, 419, 429, 439; NVIDIA's Xid reference.
    """
    spread = facts.l4
    if spread is None or not any(rank.device is not None for rank in spread.ranks):
        return
    found = [rank for rank in spread.ranks if rank.device is not None and rank.device.errors]
    for rank in found:
        yield error_finding(this, spread, rank)
    if not found:
        yield this.found(Verdict.PASS, "No device counted an error in the samples.", "")
