"""T101: time the device waits for input."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.losses import Told, bucket


@rule("T101", "The device does not wait for input", threshold=2, unit="%",
      why="a loader that prefetches hides completely; two percent is noise of one late batch")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Device idle time under a host range that fetches a batch (data loader, get_batch, infeed), per steady step,
    against the step.

    ## Why it matters
    An input pipeline that is too slow scales with the job: more chips wait for the same loader.

    ## How to confirm
    Run some steps on one cached batch: if the step gets shorter by as much, it is the input.

    ## What to do, cheapest first
    1. More loader workers, pinned memory, prefetch of at least two batches, copies on a stream of their own.
    2. Tokenize and pack ahead of training; memory-map the result.
    3. Faster or closer storage; fewer, larger files.

    ## Sources
    Names of ranges: core/data/names/host_ranges.toml. PyTorch performance tuning guide, section on data loading.
    """
    told = Told(
        "The device waits for input for",
        "Prefetch on more workers; confirm with steps on a cached batch.",
    )
    yield from bucket(facts, this, "input_gap", "input_gap", told)
