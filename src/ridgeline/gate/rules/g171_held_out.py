"""G171: does a router do held out what it did in sample."""

from collections.abc import Iterable
from math import isfinite

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.gate.gates.cascade import Facts


@rule(
    "G171", "The router finds hard examples where it was not fitted", threshold=10.0, unit="%",
    why="a tenth of the hard examples that is found in sample alone is more than the noise of a thousand of them",
)  # fmt: skip
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Recall: of the examples on which the strong model is better, how many escalate; on the half that chose the threshold
    and on the half that judges it. Above the threshold the drop warns; the decision rests on the judged half alone.

    ## Why it matters
    A router that is fitted and judged on the same prompts shows how well it remembers them. A public escalation
    classifier found 99.4% of the hard prompts in sample and 38.5% held out, and lost to a constant.

    ## How to confirm
    The table *in sample and held out* shows both rows. Change the seed of the split, and see whether the drop stays.

    ## What to do, cheapest first
    1. Trust the held-out row, and register the threshold with the file it was chosen on.
    2. Fit the router on more prompts, or with fewer features.
    3. Use a coarser signal, such as the mean of a slice.

    ## Sources
    RouterArena pull request 192 (in-sample and held-out recall of an escalation classifier).
    """
    if not isinstance(facts, Facts) or facts.chosen is None:
        return
    before, after = facts.chosen.recall, facts.judged.recall
    if not (isfinite(before) and isfinite(after)):
        return
    fitted = facts.figure("recall.chosen", "Recall where the threshold was chosen", before, "%")
    seen = facts.figure("recall.judged", "Recall held out", after, "%")
    drop = facts.figure("recall.drop", "Recall lost held out", max(0.0, before - after), "%")
    said = f"Of the examples that need the strong model, {{{fitted.name}}} escalate where the threshold was chosen and "
    said += f"{{{seen.name}}} held out."
    verdict = Verdict.PASS if this.holds(drop) else Verdict.WARN
    fix = "" if verdict is Verdict.PASS else "Judge by the held-out figure; fit on more prompts."
    yield this.found(verdict, said, fix, value=drop, cites=(fitted, seen))
