"""S405: the traffic is within the model's context."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive, given
from ridgeline.serve.deployment import longest
from ridgeline.serve.levers.facts import LeverFacts


@rule("S405", "The traffic is within the model's context", threshold=1,
      why="positions beyond those of training are not known to work")  # fmt: skip
def check(facts: LeverFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    A mean prompt and its answer over the longest context that the model's configuration states.

    ## Why it matters
    What an engine refuses has no cost: a ledger of such requests prices traffic that is never served.

    ## How to confirm
    `max_position_embeddings` of the configuration; a rotary scaling there may extend it.

    ## What to do, cheapest first
    1. Price the traffic that is served: cut or refuse the rest at the gateway.
    2. Extend the positions as the model's card says, and raise the limit in the configuration.

    ## Sources
    Peng et al. 2023, YaRN (arXiv:2309.00071), for what an extension takes.
    """
    setup = facts.ledger.setup
    limit = longest(setup.deployment.spec)
    if limit is None:
        return
    asked = given("levers.context", setup.traffic.input + setup.traffic.output, "token", "--input and --answer")
    share = derive("levers.context_share", "asked/limit", "1", asked=asked, limit=limit)
    holds = this.holds(share)
    yield this.found(
        Verdict.PASS if holds else Verdict.FAIL,
        f"{{levers.context}} a request {'is within' if holds else 'is more than'} the model's {{model.max_context}}.",
        "" if holds else "Price shorter requests, or extend the model's positions first.",
        value=share,
        cites=(asked, limit),
    )
