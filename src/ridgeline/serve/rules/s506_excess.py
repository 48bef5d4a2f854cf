"""S506: what does the serving budget cost in loss."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.codesign.facts import Designed


@rule("S506", "The serving budget costs little loss", threshold=0.05, unit="nat",
      why="about what doubling the compute buys at today's scale under the published laws")  # fmt: skip
def check(facts: Designed, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The loss of the best configuration on its tokens against that of the law's compute-optimal dense model on the same
    compute; negative where a mixture of experts more than pays for it.

    ## Why it matters
    It is the price of being servable, in the unit that training decisions are made in, and says when a distilled or a
    second model would be worth more than one that has to be both.

    ## How to confirm
    Two points of a ladder on either side of the optimum at one compute.

    ## What to do, cheapest first
    1. Relax the limit that binds: the front says what a step of it buys.
    2. Train the larger model and distil the one that is served.
    3. Accept it: past the training budget, served tokens decide.

    ## Sources
    Hoffmann et al. 2022 (arXiv:2203.15556); Sardana et al. 2023 (arXiv:2401.00448).
    """
    if facts.winner is None:
        return
    holds = this.holds(facts.excess)
    best = facts.optimum.params.name
    text = (
        f"The loss of the choice is {facts.against} that of the compute-optimal dense {{{best}}}; an optimal dense run "
        "with {codesign.worth} of the compute would have it."
    )
    fix = "" if holds else "See what a looser limit buys, or distil the served model from a larger one."
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN, text, fix, value=facts.excess, cites=(facts.worth, facts.gained)
    )
