"""P210: does the fullest stage fit, with room."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P210", "The fullest stage leaves memory free", threshold=8, unit="%", at_least=True,
      why="of a chip's memory: measured peaks lie up to 8% above the closed forms")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Weights, gradients, optimizer state, activations in flight, logits, gathered layers and buffers on the fullest chip,
    against its memory. The optimizer counted is Adam with a float32 master copy.

    ## Why it matters
    A job that runs out of memory at step 40,000, when a batch of longer documents or a checkpoint comes, costs a
    restart. One that has a third of the memory free pays for recomputation that it does not need.

    ## How to confirm
    One step of the pilot prints the peak; the allocator's statistics tell fragmentation from use.

    ## What to do, cheapest first
    1. A higher ZeRO stage, or selective recomputation.
    2. A smaller micro-batch, or more pipeline stages.
    3. More tensor or context parallelism.

    ## Sources
    Korthikanti et al. 2022 (arXiv:2205.05198); Rajbhandari et al. 2020 (arXiv:1910.02054).
    """
    capacity = facts.capacity
    if capacity is None:
        yield this.found(
            Verdict.UNKNOWN, "The memory of the chip is not known, so whether the plan fits is not either.",
            "Give a device TOML with hbm.bytes.",
        )  # fmt: skip
        return
    used = facts.memory
    free = derive("memory.headroom", "1 - used/capacity", "%", used=used, capacity=capacity).titled("Memory left free")
    place = facts.held.stage(0)
    if float(free.value) < 0:
        largest = max(facts.memory_parts, key=lambda name: float(facts.memory_parts[name].value))
        yield this.found(
            Verdict.FAIL,
            f"The plan needs {{{used.name}}} of {{{capacity.name}}} at {place}; the largest part: {largest}.",
            "Raise zero or pp, or recompute more; `ridgeline plan` lists the nearest plans that fit.",
            value=free, cites=(used, capacity),
        )  # fmt: skip
        return
    holds = this.holds(free)
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"The fullest chip holds {{{used.name}}} of {{{capacity.name}}}, at {place}: {{{free.name}|2}} are free.",
        "" if holds else "Read the peak of the pilot before the launch; have recomputation ready to switch on.",
        value=free, cites=(used, capacity),
    )  # fmt: skip
