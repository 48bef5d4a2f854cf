"""P302: does the compiled program multiply as the plan says."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import leaf
from ridgeline.plan.verify.compare import Comparison, worst
from ridgeline.plan.verify.facts import measured


@rule("P302", "The compiled FLOPs are those of the plan", threshold=1, unit="%",
      why="of any term's FLOPs after the named ones: shapes are integers, so what is left is an error")  # fmt: skip
def check(facts: Comparison, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    FLOPs of the dots in the compiled step against `arithmetic.flops` on one rank, term by term: forward, backward and
    recompute. What the compiler counts otherwise is named beside its term: the masked half of attention that a dense
    kernel computes, and the end of a recomputed layer that nothing reads.

    ## Why it matters
    MFU is this number over time and peak.

    ## How to confirm
    List the dots of the HLO with their shapes: two FLOPs for every multiplication.

    ## What to do, cheapest first
    1. Find the term that is off, and its dots by their scope.
    2. Correct its formula in `arithmetic.flops`, or name what the compiler does.

    ## Sources
    docs/design/compiled-truth.md.
    """
    off = leaf("verify.flops.deviation", 100 * worst(facts.flops), "%", "measured", measured(facts))
    off = off.titled("Largest difference in FLOPs of a term")
    good = this.holds(off)
    named = sum(bool(line.named) for line in facts.flops)
    yield this.found(
        Verdict.PASS if good else Verdict.FAIL,
        f"FLOPs of {len(facts.flops)} terms differ by at most {{{off.name}}}, after {named} with a named difference.",
        "" if good else "Find the term that is off in the table of FLOPs.",
        value=off,
    )
