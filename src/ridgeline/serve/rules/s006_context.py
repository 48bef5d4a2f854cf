"""S006: is the context within the model's."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.serve.capacity.facts import CapacityFacts
from ridgeline.serve.deployment import longest


@rule("S006", "The context is within the model's limit", threshold=1,
      why="positions beyond those of training are not known to work")  # fmt: skip
def check(facts: CapacityFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The asked context over the longest that the model's configuration states.

    ## Why it matters
    Beyond its positions a model degrades or an engine refuses to start. Memory for such a context is planned in vain.

    ## How to confirm
    `max_position_embeddings` of the configuration; a rotary scaling there may extend it.

    ## What to do, cheapest first
    1. Ask for a context within the limit.
    2. Extend the positions as the model's card says, and raise the limit in the configuration.

    ## Sources
    Peng et al. 2023, YaRN (arXiv:2309.00071), for what an extension takes.
    """
    limit = longest(facts.capacity.deployment.spec)
    if limit is None:
        yield this.found(Verdict.UNKNOWN, "The model states no longest context.", "Look it up on the model's card.")
        return
    share = derive("request.context_share", "context/limit", "1", context=facts.capacity.context, limit=limit)
    holds = this.holds(share)
    yield this.found(
        Verdict.PASS if holds else Verdict.FAIL,
        f"{{request.context}} {'is within' if holds else 'is more than'} the model's {{model.max_context}}.",
        "" if holds else "Ask for at most {model.max_context}, or extend the model's positions first.",
        value=share,
        cites=(facts.capacity.context, limit),
    )
