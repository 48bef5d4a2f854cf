"""P206: are the rows of a micro-batch enough for the matmuls."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive, given, leaf
from ridgeline.plan.prelaunch.review_facts import MATMULS, ReviewFacts
from ridgeline.plan.prelaunch.review_shapes import matmul_rows


@rule("P206", "Matmuls run near their ceiling", threshold=85, unit="%", at_least=True,
      why="of the ceiling of large matmuls; the best published plans keep nine tenths of it")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The rate of all matmuls of a micro-batch as one rank runs them (rows m, widths after tensor parallelism; forward and
    both gradients), against what matmuls with every side of at least 4,096 reach on this device.

    ## Why it matters
    Tensor parallelism narrows matmuls and context parallelism shortens them. What they then lose is compute time that
    no overlap brings back.

    ## How to confirm
    The table of matmuls names the slowest one. Time it alone on one chip.

    ## What to do, cheapest first
    1. A larger micro-batch, where memory allows.
    2. Less tensor parallelism, with more sharding of parameters or pipeline stages instead.
    3. Fused projections: queries with keys and values, gate with up.

    ## Sources
    Measured matmul tables, docs/design/surfaces.md.
    """
    rows = matmul_rows(facts)
    mean = sum(row.weight * row.rate for row in rows)
    reached = leaf("matmul.rate", 100 * mean, "%", facts.kind, facts.source)
    reached = reached.titled("Rate of the matmuls, share of peak, by time")
    share = derive("matmul.of_ceiling", "rate/ceiling", "%", rate=reached, ceiling=facts.ceiling)
    share = share.titled("Rate of the matmuls over the ceiling")
    holds = this.holds(share)
    slowest = min(rows, key=lambda row: row.rate)
    parts = {name: facts.terms[name] for name in MATMULS if name in facts.terms}
    lost = derive(
        "matmul.below_ceiling", f"({' + '.join(parts)})*max(1 - share, 0)", "s", **parts, share=share
    ).titled("Matmul time below the ceiling")  # fmt: skip
    count = given("matmul.rows", slowest.m, "1", "the plan").titled("Rows of a micro-batch")
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"The matmuls of a micro-batch run at {{{reached.name}}} of peak, {{{share.name}}} of what large ones reach; "
        f"slowest is {slowest.name}, {slowest.m:,} x {slowest.k:,} x {slowest.n:,}, at {100 * slowest.rate:.0f}%.",
        "" if holds else "Try a larger micro-batch or less tensor parallelism; see the table of matmuls.",
        value=share, cost=Cost() if holds else facts.lost(lost), cites=(reached, facts.ceiling, count),
    )  # fmt: skip
