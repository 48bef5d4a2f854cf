"""T211: custom calls beside which nothing overlaps."""

from collections.abc import Iterable

from ridgeline.arithmetic.hlo import HloModule
from ridgeline.arithmetic.hlo_collectives import SerialCall, serial_calls
from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.format import parenthesised
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.trace.facts import TraceFacts


@rule("T211", "No custom call serializes the schedule")
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Custom calls of the scheduled HLO: calls back to the host, and kernels with a collective that nothing hides right
    at their edge, feeding them or fed by them.

    ## Why it matters
    The compiler cannot look into a custom call, so it can neither move a collective past it nor cut it up to overlap
    the two. A hand-written kernel that wins 5% may lose twice that in exposed communication around it.

    ## How to confirm
    In the profile the collective runs alone before or after the kernel. Replace the kernel with the plain operation:
    does the collective overlap again?

    ## What to do, cheapest first
    1. Take host callbacks out of the step.
    2. Move a matmul that does not depend on the call between it and the collective; try the latency-hiding scheduler's
       flags.
    3. Split the call in two, or let the kernel do the communication itself.

    ## Sources
    The schedule of the HLO. The cost is the time of the adjacent collectives' bytes on the scale-up link.
    """
    if facts.l2 is None or not facts.l2.hlo:
        return
    found = [(module, item) for module in facts.l2.hlo for item in serial_calls(module)]
    if not found:
        yield this.found(Verdict.PASS, "No custom call of the HLO stands beside an exposed collective.", "")
        return
    targets = ", ".join(dict.fromkeys(item.instruction.target or item.instruction.name for _, item in found))
    sentence = f"{len(found)} custom calls hold the schedule ({targets[:120]}): {found[0][1].reason}."
    fix = "Move independent work between the call and the collective, or split the call."
    yield this.found(Verdict.WARN, parenthesised(sentence), fix, cost=_cost(facts, found))


def _cost(facts: TraceFacts, found: list[tuple[HloModule, SerialCall]]) -> Cost:
    link = facts.l2.device.scale_up if facts.l2 is not None and facts.l2.device is not None else None
    waiting = {id(item.collective): _bytes(module, item) for module, item in found if item.collective is not None}
    if link is None or not waiting:
        return Cost()
    source = Source("the HLO", f"{len(waiting)} collectives")
    moved: Quantity = leaf("hlo.serial", float(sum(waiting.values())), "B/chip", "measured", source)
    moved = moved.titled("Bytes of collectives at the edge of custom calls")
    seconds = derive("lost.serial_call", "bytes/bandwidth", "s", bytes=moved, bandwidth=link.bandwidth)
    return facts.cost(seconds.titled("Collectives that a custom call keeps from overlapping"))


def _bytes(module: HloModule, item: SerialCall) -> int:
    assert item.collective is not None
    return item.collective.size_bytes * module.runs[item.collective.computation]
