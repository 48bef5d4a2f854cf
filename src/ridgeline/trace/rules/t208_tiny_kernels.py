"""T208: kernels too short to keep the device busy."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l2_losses import judged


@rule("T208", "Kernels are long enough to hide their launches", threshold=2, unit="%",
      why="graphs and fused optimizers leave less")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Kernels shorter than 5 us, about what a launch takes the host, and the launch and framework gaps right before
    them. A wait for input, a synchronisation or garbage collection is not theirs, and neither is a gap before a
    kernel that was queued.

    ## Why it matters
    A host that launches kernels shorter than a launch cannot run ahead: the device waits at every one of them. The
    same seconds are in the launch gaps of T102: this rule says which kernels make them.

    ## How to confirm
    Capture the step in a graph: the gaps close and the kernels stay.

    ## What to do, cheapest first
    1. Fused or foreach optimizer, fused norms, compiled elementwise code.
    2. CUDA graphs.
    3. Larger micro-batches: the same launches for more work.

    ## Sources
    Durations of the trace; gaps as L0 tells them apart.
    """
    if facts.l2 is None or not facts.l2.rows:
        return
    count, _, idle_ns = facts.l2.small
    lead = f"For the launch of its {count / facts.l2.steps:,.0f} kernels a step shorter than 5 us the device waits"
    fix = "Fuse them, or capture the step in a graph."
    yield from judged(facts, this, "tiny_kernels", float(idle_ns), (lead, fix))
