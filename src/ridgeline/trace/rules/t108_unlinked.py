"""T108: device work whose launch is not in the file."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Source, derive, leaf
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.losses import no_trace


@rule("T108", "Device work has its launch calls", threshold=5, unit="%",
      why="what was in flight when the profiler started is a few percent")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of device events without a launch call in the file. They count in the default window ("all"); the window
    "linked" leaves them out, as other analysers do without a word.

    ## Why it matters
    Events without a launch belong to a step by time only, and gaps before them have no cause. Where they are many,
    the numbers of tools that drop them are of a shorter span.

    ## How to confirm
    Compare the buckets of both windows.

    ## What to do, cheapest first
    1. Add warm-up steps to the profiler's schedule, so that the queue is recorded from its start.
    2. Record CPU and device activities together.

    ## Sources
    The correlation ids of the trace.
    """
    if not facts.l0:
        yield no_trace(this)
        return
    source = Source(facts.l0[0].path, f"{len(facts.l0)} ranks")
    total, linked = sum(r.events for r in facts.l0), sum(r.linked for r in facts.l0)
    if facts.l0[0].window != "all" or not linked:
        text = "the window leaves them out" if linked else "no device event has a launch call in the file"
        yield this.found(Verdict.UNKNOWN, f"The share without a launch is not known: {text}.", "Use the window `all`.")
        return
    events = leaf("trace.device_events", total, "1", "measured", source).titled("Device events")
    missing = leaf("trace.unlinked_events", total - linked, "1", "measured", source).titled("Without a launch call")
    share = derive("trace.unlinked_share", "missing/events", "%", missing=missing, events=events)
    held = this.holds(share)
    yield this.found(
        Verdict.PASS if held else Verdict.WARN,
        "{trace.unlinked_share} of {trace.device_events} device events have no launch call in the file.",
        "" if held else "Add warm-up steps to the profiler's schedule; compare the window `linked`.",
        value=share.titled("Device events without a launch call"), cites=(events, missing),
    )  # fmt: skip
