"""T210: collectives that undo a sharding, from the partitioned HLO."""

from collections.abc import Iterable

from ridgeline.arithmetic.collectives import sent
from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.format import parenthesised
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.hlo_resharding import Resharding, reshardings


@rule("T210", "No collective undoes a sharding")
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    All-gathers of the partitioned module that no stored sharding explains: an array gathered and at once sliced again;
    an activation gathered along the dimension that the next matmul contracts, for an elementwise operation, or over
    the chips that reduce gradients. And all-to-alls that stand for no exchange of the program. A gathered weight is
    how a sharded weight is used, and explained.

    ## Why it matters
    A sharding that two neighbouring operations do not agree on makes the compiler insert communication that nobody
    planned, in every layer. It does not fail: it is only slow.

    ## How to confirm
    Find the `op_name` of the finding in your code and print the sharding of its inputs
    (`jax.debug.inspect_array_sharding`). Constrain one of them, compile again, and compare both modules.

    ## What to do, cheapest first
    1. Put a sharding constraint on the activation right before that operation.
    2. Give the weight the sharding that the operation wants.
    3. Reorder the mesh axes so that the unavoidable exchange runs over the fast links.

    ## Sources
    GSPMD (arXiv:2105.04663). The cost is the bytes each chip sends over its scale-up link: a lower bound.
    """
    if facts.l2 is None or not facts.l2.hlo:
        return
    found = [item for module in facts.l2.hlo for item in reshardings(module)]
    if not found:
        yield this.found(
            Verdict.PASS, "Every collective of the HLO is explained by a stored sharding or by the program.", ""
        )
        return
    link = facts.l2.device.scale_up if facts.l2.device else None
    moved = _sent(found)
    first = found[0]
    name = parenthesised(first.collective.instruction.op_name or first.collective.instruction.name)
    sentence = (
        f"{len(found)} collectives undo a sharding, {{{moved.name}}} per step; first {name[:160]}: {first.reason}."
    )
    fix = "Constrain the sharding of that activation, or change that of the weight."
    if link is None:
        yield this.found(Verdict.WARN, sentence, fix, value=moved)
        return
    seconds = derive("lost.resharding", "sent/bandwidth", "s", sent=moved, bandwidth=link.bandwidth)
    cost: Cost = facts.cost(seconds.titled("Collectives that undo a sharding, on the scale-up link"))
    yield this.found(Verdict.WARN, sentence, fix, value=moved, cost=cost, cites=(seconds,))


def _sent(found: list[Resharding]) -> Quantity:
    """Bytes that each chip sends in one call of the module."""
    total = 0.0
    for item in found:
        c = item.collective
        source = Source("the HLO", c.instruction.name)
        size = leaf("hlo.collective", float(c.size_bytes), "B", "measured", source)
        chips = leaf("hlo.group", c.group or 2, "chip", "measured", source)
        total += c.runs * float(sent(c.kind, size, chips).base)
    source = Source("the HLO", f"{len(found)} collectives")
    moved = leaf("hlo.resharding", total, "B/chip", "measured", source)
    return moved.titled("Bytes each chip sends to undo shardings")
