"""P207: do matmuls fill their last wave."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive, leaf
from ridgeline.plan.prelaunch.review_facts import MATMULS, ReviewFacts
from ridgeline.plan.prelaunch.review_shapes import matmul_rows


@rule("P207", "Matmuls fill their last wave", threshold=2, unit="%",
      why="of all matmul time: less is below the error of the measured surfaces")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    How many output tiles each matmul has over the multiprocessors that work on them at once, and what the partly filled
    last wave takes, by the weights that the measured surfaces give to two tile shapes.

    ## Why it matters
    3.42 waves take the time of 4. Small local widths have few waves, so the tail is a large part.

    ## How to confirm
    The table of matmuls shows the tail of each. Time the worst alone with one more and one fewer tile of columns.

    ## What to do, cheapest first
    1. A micro-batch or a tensor parallelism with more tiles a matmul.
    2. Kernels with split-k or persistent scheduling.

    ## Sources
    NVIDIA, Matrix Multiplication Background, wave quantization; docs/design/surfaces.md.
    """
    if facts.cluster.device.sm_count is None:
        return  # units that work on one tile at a time have no waves to fill
    rows = matmul_rows(facts)
    taken = sum(row.weight * row.wave for row in rows)
    share = leaf("waves.share", 100 * taken, "%", facts.kind, facts.source).titled("Matmul time in unfilled waves")
    parts = {name: facts.terms[name] for name in MATMULS if name in facts.terms}
    lost = derive("waves.lost", f"({' + '.join(parts)})*share", "s", **parts, share=share)
    worst = max(rows, key=lambda row: row.wave * row.weight)
    holds = this.holds(share)
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"Partly filled waves take {{{share.name}|2}} of the matmul time; most of it in {worst.name}, "
        f"{worst.m:,} x {worst.k:,} x {worst.n:,}.",
        "" if holds else "Change the micro-batch or the tensor parallelism so that the worst matmul has more tiles.",
        value=share, cost=Cost() if holds else facts.lost(lost.titled("Unfilled waves")),
    )  # fmt: skip
