"""T405: does one chip's link move less than its neighbours'."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.rank_findings import link_finding


@rule("T405", "Links of a host move alike", threshold=70, unit="%", at_least=True,
      why="equal ranks of one host send alike within a few hundredths")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Mean rates of NVLink and PCIe under load, each device against the median of its host, where they were sampled.

    ## Why it matters
    A link that trained at half its width, or a rank that goes over PCIe where its neighbours have NVLink, slows every
    collective of the group.

    ## How to confirm
    `nvidia-smi nvlink --status`, `nvidia-smi topo -m`; a two-rank bandwidth test over the named device.

    ## What to do, cheapest first
    1. Reset the device or reboot the host: links are trained again.
    2. Take the host out.
    3. Check the mapping of ranks to devices and of devices to network cards.

    ## Sources
    `nvidia-smi dmon -s t`, DCGM fields 1009 to 1012.
    """
    spread = facts.l4
    if spread is None:
        return
    found = [rank for rank in spread.ranks if rank.device is not None and rank.device.slow_link]
    for rank in found:
        yield link_finding(this, spread, rank)
    if not found and any(rank.device is not None and rank.device.links for rank in spread.ranks):
        yield this.found(Verdict.PASS, "The links of each host move alike.", "")
