"""S109: the requests are within the model's context."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive, given
from ridgeline.serve.deployment import longest
from ridgeline.serve.steps.facts import LatencyFacts


@rule("S109", "The requests are within the model's context", threshold=1,
      why="positions beyond those of training are not known to work")  # fmt: skip
def check(facts: LatencyFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Prompt and answer together over the longest context that the model's configuration states.

    ## Why it matters
    An engine refuses such a request, or the model degrades: its latency is a time that nobody will wait.

    ## How to confirm
    `max_position_embeddings` of the configuration; a rotary scaling there may extend it.

    ## What to do, cheapest first
    1. Ask for a context within the limit.
    2. Extend the positions as the model's card says, and raise the limit in the configuration.

    ## Sources
    Peng et al. 2023, YaRN (arXiv:2309.00071), for what an extension takes.
    """
    limit = longest(facts.deployment.spec)
    if limit is None:
        return
    context = given("latency.context", facts.load.row.prompt + facts.load.row.answer, "token", "--context")
    share = derive("latency.context_share", "context/limit", "1", context=context, limit=limit)
    holds = this.holds(share)
    yield this.found(
        Verdict.PASS if holds else Verdict.FAIL,
        f"{{latency.context}} a request {'is within' if holds else 'is more than'} the model's {{model.max_context}}.",
        "" if holds else "Shorten --context, or extend the model's positions first.",
        value=share,
        cites=(context, limit),
    )
