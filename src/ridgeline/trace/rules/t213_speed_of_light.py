"""T213: kernels whose hardware counters show neither compute nor memory busy."""

import re
from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Source, leaf
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l2 import Operations
from ridgeline.trace.readers.ncu import KernelCounters


@rule("T213", "Profiled kernels keep compute or memory busy", threshold=60, unit="%", at_least=True,
      why="Nsight Compute itself calls a kernel latency-bound below 60% of both")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    For every kernel of a Nsight Compute file the larger of its two speeds of light (compute and memory), with waves and
    occupancy where they are low. The cost is the time that kernels of that name take in the trace beyond what they
    would at the threshold.

    ## Why it matters
    A kernel that keeps neither busy waits for latency: too few blocks, too little occupancy, or dependent loads. More
    bandwidth or FLOPs do not help it.

    ## How to confirm
    Read the profiler's warp-state section: the largest stall reason names the cause.

    ## What to do, cheapest first
    1. More work per launch: larger batch, merged launches.
    2. Smaller tiles or split-k where there are fewer waves than one.
    3. Fewer registers or less shared memory per block where occupancy is the limit.

    ## Sources
    Counters of the file; NVIDIA Nsight Compute, speed-of-light section and its rule.
    """
    if facts.l2 is None or not facts.l2.ncu:
        return
    known = [k for k in facts.l2.ncu if k.sm_percent is not None and k.memory_percent is not None]
    for kernel in known:
        busy = max(kernel.sm_percent or 0.0, kernel.memory_percent or 0.0)
        source = Source("Nsight Compute", f"ID {kernel.ident[:20]}")
        light = leaf(f"ncu.{_key(kernel)}.speed_of_light", busy, "%", "measured", source).titled("Speed of light")
        holds = this.holds(light)
        yield this.found(
            Verdict.PASS if holds else Verdict.WARN,
            f"{_short(kernel)} reaches {{{light.name}}} of its speed of light: {kernel.bound()}{_why(kernel)}.",
            "" if holds else "Give the kernel more parallel work, or a configuration with more occupancy.",
            value=light,
            cost=Cost() if holds else _cost(facts, facts.l2, this, (kernel, busy)),
        )


def _key(kernel: KernelCounters) -> str:
    return "".join(c if c.isalnum() else "_" for c in kernel.ident.lower())[:20] or "0"


def _short(kernel: KernelCounters) -> str:
    return re.split(r"[(<[{]", kernel.kernel, maxsplit=1)[0][:60].strip() or "A kernel"


def _why(kernel: KernelCounters) -> str:
    parts = []
    if kernel.waves_per_sm is not None and kernel.waves_per_sm < 1:
        parts.append(f"{kernel.waves_per_sm:.2g} waves")
    achieved, possible = kernel.achieved_occupancy_percent, kernel.theoretical_occupancy_percent
    if achieved is not None and achieved < 50:
        parts.append(f"occupancy {achieved:.0f}%" + (f" of {possible:.0f}%" if possible is not None else ""))
    return f" ({', '.join(parts)})" if parts else ""


def _cost(facts: TraceFacts, ops: Operations, this: Rule, found: tuple[KernelCounters, float]) -> Cost:
    """Of the operations whose main kernel has that name; none where the trace does not have it."""
    kernel, busy = found
    name = kernel.kernel.split("(")[0]
    ns = sum(row.device_ns for row in ops.rows if row.kernel.split("(")[0] == name)
    assert this.threshold is not None
    if not ns:
        return Cost()
    lost = ns * (1 - busy / float(this.threshold.value))
    return facts.cost(ops.per_step(f"lost.ncu_{_key(kernel)}", lost, "Time below the speed of light"))
