"""T301: does the input pipeline make the run wait now and then."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.stall_findings import stall_findings


@rule("T301", "The input keeps up", threshold=1, unit="%",
      why="below a hundredth of the step other causes pay better")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    That no stall of the step time comes back with the input: by the phase timer that carries it, else a stall every few
    steps, shorter than a step and of varying length, as when loader workers refill their queue.

    ## Why it matters
    A loader of W workers that each need longer than W steps makes every W-th step wait. The mean hides it in a log of
    averages; p95 shows it.

    ## How to confirm
    Train on one cached batch: if the period goes, it was the input. Or time `next(iterator)` apart from the step.

    ## What to do, cheapest first
    1. More workers, deeper prefetch, pinned memory.
    2. Move decoding, tokenisation and packing out of the run.
    3. Shards that are read in order from local disks; a cache in front of the object store.

    ## Sources
    An exact hypergeometric test on the positions of the longest steps, with a Bonferroni correction over periods and
    phases; see `trace/levels/periodic.py`.
    """
    fix = "Raise the number of loader workers or the prefetch depth; then find the slow sample or shard."
    yield from stall_findings(facts, this, "input", "Waiting for input", fix)
