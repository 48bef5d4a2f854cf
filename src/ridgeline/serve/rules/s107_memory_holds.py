"""S107: the batch fits the memory."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive, given
from ridgeline.serve.steps.facts import LatencyFacts


@rule("S107", "The batch fits the memory", threshold=1, unit="1",
      why="a planning limit: beyond it the remedy below is worth its trouble")  # fmt: skip
def check(facts: LatencyFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The asked sequences over those whose caches fit beside the weights.

    ## Why it matters
    Beyond that requests queue: the time to the first token grows with the queue, and the batch does not.

    ## How to confirm
    `ridgeline serve capacity` opens the admission equation.

    ## What to do, cheapest first
    1. Fewer requests at once.
    2. Cache or weights in 8 bits.
    3. More chips.

    ## Sources
    Kwon et al. 2023 (arXiv:2309.06180), section 3.
    """
    if facts.fit is None:
        return
    if not facts.fit.value:
        yield this.found(Verdict.FAIL, "Not one request of that length fits beside the weights.",
                         "Shorten --context, add chips, or free memory.", cites=(facts.fit,))  # fmt: skip
        return
    asked = given("latency.batch", facts.load.sequences, "request", "--batch").titled("Asked at once")
    full = derive("latency.full", "asked/fit", "1", asked=asked, fit=facts.fit).titled("Requests over those that fit")
    good = this.holds(full)
    yield this.found(
        Verdict.PASS if good else Verdict.FAIL, "{latency.batch} at once are asked, {capacity.sequences} fit.",
        "" if good else "Lower --batch, shorten --context, or free memory.", value=full, cites=(asked, facts.fit),
    )  # fmt: skip
