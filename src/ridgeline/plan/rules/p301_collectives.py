"""P301: does the compiled program communicate as the plan says."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import leaf
from ridgeline.plan.verify.compare import Comparison, worst
from ridgeline.plan.verify.facts import measured


@rule("P301", "The compiled collectives are those of the plan", threshold=1, unit="%",
      why="of bytes: counts must be equal, and padding of a real layout stays below a hundredth")  # fmt: skip
def check(facts: Comparison, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Every collective of the compiled step against the plan's prediction: kind, group of ranks, count, and bytes. What
    the compiler is known to leave out is named beside its line before the two are compared.

    ## Why it matters
    The step model times what it believes is sent. A collective that is missing or comes twice is an error in the
    prediction of every plan of that kind, however well its bandwidth was measured.

    ## How to confirm
    Read the instruction in the HLO: its replica groups, its shape and the scope in its metadata.

    ## What to do, cheapest first
    1. Look at the line's remark: another kind or another group often names the cause.
    2. Compile the real model's step and read its collectives with `ridgeline trace`.
    3. Correct `plan.steps.traffic`.

    ## Sources
    docs/design/compiled-truth.md.
    """
    count = leaf("verify.collectives.different", len(facts.different), "1", "measured", measured(facts))
    count = count.titled("Terms whose number of collectives differs")
    off = leaf("verify.collectives.deviation", 100 * worst(facts.collectives), "%", "measured", measured(facts))
    off = off.titled("Largest difference in bytes of a term")
    good = not facts.different and this.holds(off)
    names = ", ".join(f"{line.key.term} ({line.key.kind})" for line in facts.different)
    sentence = (
        f"All {len(facts.collectives)} terms have the plan's kinds, groups and counts; bytes differ by {{{off.name}}}."
        if good
        else f"{{{count.name}}} terms differ in count{f': {names}' if names else ''}; bytes by up to {{{off.name}}}."
    )
    fix = "" if good else "Read the lines that differ in the table of collectives, and correct the plan's traffic."
    yield this.found(Verdict.PASS if good else Verdict.FAIL, sentence, fix, value=off, cites=(count,))
