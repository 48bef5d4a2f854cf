"""T401: does one rank make the others wait."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.rank_findings import late_rank


@rule("T401", "No rank makes the others wait", threshold=1, unit="%",
      why="below a hundredth of the step the spread is ordinary jitter")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Of each collective that was matched over ranks, which rank starts last. A straggler is last more often than chance
    allows and is waited for most in more than half of the steps. Without matched collectives the ranks' own time is
    compared.

    ## Why it matters
    A synchronous job runs at the pace of its slowest rank. The wait shows as slow communication on every other rank,
    and sends people to the network.

    ## How to confirm
    Exchange the host of the rank: does the lateness move with the host or stay with the rank?

    ## What to do, cheapest first
    1. The sentence names the bucket: host gaps are what only that rank's host does (logging, data, checkpoints,
       garbage collection, other processes), compute is the chip or uneven work.
    2. Exchange the host, and take it out if lateness moves with it.
    3. Balance the work: experts, sequence lengths, pipeline stages.

    ## Sources
    Binomial test over calls; the wire time of a collective is its shortest duration over the ranks.
    """
    spread = facts.l4
    if spread is None:
        return
    if spread.basis == "none":
        hint = "Give the traces of all ranks, or a step log of each."
        yield this.found(Verdict.UNKNOWN, "Nothing in the files tells which rank is late.", hint)
        return
    found = [rank for rank in spread.judged("straggler") if rank.cost_s > 0]
    for rank in found:
        yield late_rank(facts, this, spread, rank)
    if not found:
        yield this.found(Verdict.PASS, f"No rank of {len(spread.ranks)} is late more often than chance.", "")
