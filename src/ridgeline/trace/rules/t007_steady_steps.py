"""T007: are there enough steady steps in the trace to speak for the run."""

from collections import Counter
from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Source, leaf
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l0 import RankBuckets


@rule("T007", "The trace holds enough steady steps", threshold=3, unit="1", at_least=True,
      why="one step says nothing about the next; three show whether they repeat")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    How many whole, warm steps every rank's trace holds. Leading steps that are much longer than the rest (compilation,
    autotuning, allocator growth) and steps cut off by the profiler's window are left out and counted here.

    ## Why it matters
    Averages over a warm-up step or a step cut in half are wrong by as much as the losses one looks for.

    ## How to confirm
    The step table of the report lists every step with its status.

    ## What to do, cheapest first
    1. Profile five steps after at least ten warm ones.
    2. Mark steps: call the profiler's `step()`, or wrap the step in a named range.
    3. Where stalls come every n-th step, profile n steps or keep a step log beside the trace.

    ## Sources
    `docs/how-to/profile.md`; kernels at the start of a session may be missing (pytorch issue 192021).
    """
    if not facts.l0:
        yield this.found(Verdict.UNKNOWN, "There is no trace of a device.", "Take a profile: docs/how-to/profile.md.")
        return
    fewest = min(facts.l0, key=_steady)
    many = _steady(fewest)
    source = Source(fewest.path, f"steps marked by {fewest.steps.source}")
    count = leaf("trace.steady_steps", many, "1", "measured", source).titled("Steady steps of the shortest trace")
    out = Counter(fewest.steps.excluded.values())
    left = ", ".join(f"{number} {status}" for status, number in sorted(out.items()))
    said = f" Left out: {left}." if left else ""
    if fewest.steps.source == "none":
        yield this.found(
            Verdict.UNKNOWN, "The trace marks no steps, so it counts as one.",
            "Mark steps in the profile, or ask for steps to be inferred from the kernels.", value=count,
        )  # fmt: skip
        return
    holds = this.holds(count)
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"The trace of {fewest.label} has {{{count.name}}} steady steps.{said}",
        "" if holds else "Profile five steps after at least ten warm ones.",
        value=count,
    )


def _steady(rank: RankBuckets) -> int:
    return sum(status == "steady" for status in rank.steps.status)
