"""P214: are there enough tokens for the run."""

from collections.abc import Iterable

from ridgeline.core.catalog import constant
from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive, given
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P214", "The data lasts for the run", threshold=1, unit="1",
      why="epochs: beyond one, tokens repeat and are worth less than fresh ones")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Tokens that the run reads over the unique tokens that there are, in epochs.

    ## Why it matters
    A run that has been paid for cannot wait for data. Repeats up to about four epochs are nearly as good as fresh
    tokens; beyond that the plan's loss is not the one that was forecast.

    ## How to confirm
    Count the mixture after filtering and deduplication with the run's own tokenizer, source by source.

    ## What to do, cheapest first
    1. Recount with the tokenizer that will be used.
    2. Re-weigh the mixture, so that no source passes four epochs.
    3. A larger model on fewer tokens.

    ## Sources
    Muennighoff et al. 2023, Scaling Data-Constrained Language Models (arXiv:2305.16264).
    """
    tokens, unique = facts.tokens, facts.proposal.unique_tokens
    if tokens is None or unique is None:
        missing = "The run's tokens are" if tokens is None else "The unique tokens are"
        yield this.found(
            Verdict.UNKNOWN, f"{missing} not given, so whether the data lasts is not known.",
            "Give tokens (or steps) and data.unique_tokens.",
        )  # fmt: skip
        return
    supply = given("data.unique", unique, "token", "data.unique_tokens").titled("Unique tokens")
    epochs = derive("data.epochs", "tokens/unique", "1", tokens=tokens, unique=supply).titled("Epochs")
    most = constant("planning.repeat_epochs")
    holds = this.holds(epochs)
    within = float(epochs.value) <= float(most.value)
    verdict = Verdict.PASS if holds else Verdict.WARN if within else Verdict.FAIL
    tail = "" if holds else f", {'within' if within else 'beyond'} the {{{most.name}}} that repeat well"
    yield this.found(
        verdict, f"The run reads {{{tokens.name}}} of {{{supply.name}}}: {{{epochs.name}|2}} epochs{tail}.",
        "" if holds else "Recount the mixture with the run's tokenizer, or plan for fewer tokens.",
        value=epochs, cites=(tokens, supply, most),
    )  # fmt: skip
