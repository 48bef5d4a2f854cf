"""S309: do the prompts as sent come near to what they could."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.serve.hygiene.facts import Hygiene


@rule("S309", "Prompts as sent are near their ceiling", threshold=0.95, unit="1", at_least=True,
      why="within a twentieth of the ceiling the rest is cold starts and new text")  # fmt: skip
def check(facts: Hygiene, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The hit rate that the prompts allow as sent over the hit rate with every found cause gone. With fewer than 20
    requests it is not known.

    ## Why it matters
    The difference is what changes to the prompt can win; what is left above the ceiling is text that no request had
    before.

    ## How to confirm
    The table of causes adds up to the difference.

    ## What to do, cheapest first
    1. Fix the cause that stands nearest to the start of the prompt: it hides those behind it.
    2. Then audit a new log.

    ## Sources
    Block-exact prefix walk over the log, as sent and with the causes taken out.
    """
    if facts.few:
        yield this.found(
            Verdict.UNKNOWN, "The log is too short to say what a cache would find: {hygiene.requests}.",
            "Log at least 20 requests, better a day.", cites=(facts.requests,),
        )  # fmt: skip
        return
    if not float(facts.ceiling.value) > 0:
        yield this.found(
            Verdict.WARN, "No two of {hygiene.requests} share a whole block from their start: a prefix cache finds "
            "nothing in them.", "If they were built from one template, look at their first bytes.",
            cites=(facts.requests,),
        )  # fmt: skip
        return
    part = derive("hygiene.hit_rate.reached", "sent/ceiling", "1", sent=facts.achievable, ceiling=facts.ceiling)
    part = part.titled("Part of the ceiling that the prompts allow as sent")
    good = this.holds(part)
    yield this.found(
        Verdict.PASS if good else Verdict.FAIL,
        "As sent the prompts allow {hygiene.hit_rate.achievable}; with every cause gone {hygiene.hit_rate.ceiling}.",
        "" if good else "Fix the cause nearest to the start of the prompt first.",
        value=part, cites=(facts.achievable, facts.ceiling),
    )  # fmt: skip
