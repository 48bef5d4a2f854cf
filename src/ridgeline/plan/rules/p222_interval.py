"""P222: is the expectation sharp enough to launch on."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P222", "The expectation is sharp enough", threshold=25, unit="%",
      why="width of the 80% interval over its middle: more moves the end of a month's run by a week")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The width of the expectation's 80% interval over its middle, and whether this device's kernels were measured.

    ## Why it matters
    The interval is the schedule's. A pilot on sixteen chips measures the terms that widen it, for a few dollars.

    ## How to confirm
    The table of the pilot names the terms by what they would move.

    ## What to do, cheapest first
    1. Run the pilot and fold its step in with `ridgeline plan --calibrate`.
    2. Measure matmuls of this model's shapes alone, where the device has no surface.

    ## Sources
    Published runs of core/data/expected.toml, errors held out by group.
    """
    expected = facts.expected
    inputs = {"high": expected.high, "low": expected.low, "middle": expected.mfu}
    width = derive("expected.width", "(high - low)/middle", "%", **inputs).titled("Width of the 80% interval")
    holds = this.holds(width)
    how = "were measured on this device" if facts.measured else "are assumed from other devices"
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"The 80% interval is {{{width.name}|2}} of its middle wide; kernel times {how}.",
        "" if holds else "Run the pilot of this review, and calibrate with its step.",
        value=width, cites=(expected.mfu, expected.low, expected.high),
    )  # fmt: skip
