"""G172: is a router better than no router."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.gate.decision import Outcome
from ridgeline.gate.gates.cascade import Facts

_VERDICTS = {Outcome.SHIP: Verdict.PASS, Outcome.NO_SHIP: Verdict.FAIL, Outcome.INCONCLUSIVE: Verdict.UNKNOWN}


@rule("G172", "The router is better than escalating at random")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The mean score of the cascade less that of a constant that escalates the same share of the same examples at random,
    paired, on the judged half. Its lower bound must be above zero.

    ## Why it matters
    Any mix of a weak and a strong model lies between the two. A router that is only as good as the mix at its own share
    of escalation costs a model, a service and a failure mode, and knows nothing of the examples.

    ## How to confirm
    Shuffle the router's signal: a cascade that scores the same has no use for it.

    ## What to do, cheapest first
    1. Send a fixed share, or nothing, to the weak model: it costs the same and is as good.
    2. Try another signal: the weak model's own confidence, agreement of two samples, the length of the prompt.
    3. Fit the router on the difference of the two models' scores, not on the weak one's.

    ## Sources
    RouterArena pull request 192 (the best router lost to a constant).
    """
    if not isinstance(facts, Facts):
        return
    verdict = _VERDICTS[facts.constant.outcome]
    scale = 100.0 if facts.constant.unit == "%" else 1.0
    unit = "point" if facts.constant.unit == "%" else "1"
    interval = facts.constant.interval
    gain = facts.figure("gain", "Gain over escalating the same share at random", scale * interval.estimate, unit)
    low = facts.figure("gain.low", "Gain over a constant, lower bound", scale * interval.low, unit)
    said = f"The router gains {{{gain.name}}} over escalating the same share at random, {{{low.name}}} at least."
    if interval.degenerate:
        said = f"Whether the router is better than a constant cannot be told: {interval.degenerate}."
        yield this.found(Verdict.UNKNOWN, said, "Choose a router that splits the examples.")
        return
    fix = "" if verdict is Verdict.PASS else "Escalate a fixed share, or none: it is as good and simpler."
    yield this.found(verdict, said, fix, value=gain, cites=(low,))
