"""P102: are there enough unique tokens."""

from collections.abc import Iterable

from ridgeline.core.catalog import constant
from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.plan.plan import Plan


@rule("P102", "Enough unique tokens", threshold=1, unit="1", why="one pass over the data")
def check(plan: Plan, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Training tokens of the chosen model over the unique tokens available: the number of epochs.

    ## Why it matters
    The scaling laws assume fresh tokens. Up to about four epochs repeated tokens were worth nearly as much as fresh
    ones; beyond that the predicted loss is not reached, and the compute is spent on memorising.

    ## How to confirm
    Count the tokens of the deduplicated mixture with the tokenizer that will be used, per source and per quality tier.

    ## What to do, cheapest first
    1. Count again: a pool named in public counts another tokenizer's tokens before filtering.
    2. Add sources or lower a filter, and check the effect on a small model.
    3. Train a larger model on fewer tokens.

    ## Sources
    Muennighoff et al. 2023, Scaling Data-Constrained Language Models (arXiv:2305.16264).
    """
    epochs = derive(
        "data.epochs", "tokens/unique", "1", tokens=plan.choice.tokens, unique=plan.unique_tokens
    ).titled("Epochs over the unique tokens")  # fmt: skip
    limit = constant("planning.repeat_epochs").titled("Epochs that repeat well")
    supply = f"a unique supply of {{{plan.unique_tokens.name}}}"
    found = f"{{{plan.choice.tokens.name}}} out of {supply} is {{data.epochs|2}} epochs"
    cites = (plan.choice.tokens, plan.unique_tokens, limit)
    if this.holds(epochs):
        yield this.found(
            Verdict.PASS, f"{found}.", "Count the mixture's tokens with your own tokenizer.", value=epochs, cites=cites
        )
        return
    repeats_well = float(epochs.value) <= float(limit.value)
    word = "within" if repeats_well else "beyond"
    yield this.found(
        Verdict.WARN if repeats_well else Verdict.FAIL,
        f"{found}, {word} the {{{limit.name}|1}} that are known to repeat well.",
        "Find more tokens, or train a larger model on fewer.", value=epochs, cites=cites,
    )  # fmt: skip
