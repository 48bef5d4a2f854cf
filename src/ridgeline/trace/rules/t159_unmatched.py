"""T159: collectives that could not be matched over ranks."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Source, derive, leaf
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.losses import no_collectives, no_trace


@rule("T159", "Collectives are matched over ranks", threshold=10, unit="%",
      why="calls at the edges of the profile have no partner")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of collective calls that no other rank's trace has.

    ## Why it matters
    Wire time, lateness and bandwidth rest on matched calls. One rank alone cannot tell waiting from transferring.

    ## How to confirm
    Compare the lists of calls of two ranks: other steps, other order, missing ranks, no group names?

    ## What to do, cheapest first
    1. Profile all ranks of a group, over the same steps.
    2. A library and framework that write group names and sequence numbers.

    ## Sources
    Groups, order and sequence numbers in the trace.
    """
    if not facts.l0:
        yield no_trace(this)
        return
    if facts.l1 is None:
        yield no_collectives(this)
        return
    source = Source("the trace", f"{len(facts.l1.labels)} ranks")
    alone = leaf("comm.unmatched_calls", int(facts.l1.unmatched.sum()), "1", "measured", source)
    calls = leaf("comm.calls", len(facts.l1.instances), "1", "measured", source)
    share = derive("comm.unmatched_share", "alone/calls", "%", alone=alone, calls=calls)
    held = this.holds(share)
    said = "{comm.unmatched_calls} of {comm.calls} collective calls have no partner on another rank"
    if len(facts.l1.labels) == 1:
        said += ": there is one rank, so waiting and transferring cannot be told apart"
    yield this.found(
        Verdict.PASS if held else Verdict.UNKNOWN, said + ".", "" if held else "Profile all ranks of a group.",
        value=share.titled("Collective calls without a partner"),
        cites=(alone.titled("Without a partner"), calls.titled("Collective calls")),
    )  # fmt: skip
