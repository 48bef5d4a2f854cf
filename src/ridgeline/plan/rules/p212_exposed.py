"""P212: how much communication does nothing hide."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P212", "Communication hides under compute", threshold=15, unit="%",
      why="of the step: what well-run published plans of this kind expose by the step model")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Communication that no compute hides, over all parallel groups, as a share of the step; and the whole wire time.

    ## Why it matters
    It is usually the largest lever after the matmuls. Where the wire is long and half hidden, scheduling wins it back;
    where it cannot hide at all, only another plan does.

    ## How to confirm
    The bars of the step show which group. The pilot measures tensor-parallel traffic at full size.

    ## What to do, cheapest first
    1. Sequence parallelism, and overlap of collectives with the neighbouring matmul.
    2. Less tensor parallelism; more sharding or stages instead.
    3. A larger micro-batch, so that gathers are fewer for the same tokens.

    ## Sources
    Korthikanti et al. 2022 (arXiv:2205.05198); the worked numbers of the MFU incident.
    """
    exposed = facts.exposed
    if exposed is None:
        yield this.found(Verdict.PASS, "No group of this plan communicates on the way.", "")
        return
    share = facts.share(exposed)
    holds = this.holds(share)
    largest = max(exposed.inputs.values(), key=lambda item: float(item.value))
    wire = derive("wire.total", " + ".join(facts.wires), "s", **facts.wires).titled("All wires, exposed or not")
    lost = derive("exposed.lost", "exposed", "s", exposed=exposed).titled("Exposed communication")
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"{{{exposed.name}}} of {{{wire.name}}} on the wire is exposed, {{{share.name}|2}} of the step; "
        f"the largest part is {{{largest.name}}} of {largest.label.lower().replace(' exposed', '')}.",
        "" if holds else "Overlap the largest part with its neighbouring matmuls, or shrink its group.",
        value=share, cost=Cost() if holds else facts.lost(lost), cites=(exposed, wire, largest),
    )  # fmt: skip
