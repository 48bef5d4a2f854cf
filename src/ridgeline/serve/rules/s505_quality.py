"""S505: is the quality of the choice known."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.codesign.facts import Designed


@rule("S505", "The law speaks of everything in the choice")
def check(facts: Designed, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Whether the best configuration has what the law's loss leaves out: weights or cache below 16 bits, latent attention,
    or many narrow experts, which the joint law for mixtures was not fitted to.

    ## Why it matters
    The ranking takes these as free. They are not: 8 bits cost little and 4 bits more, and how much depends on the
    model, its data and the recipe.

    ## How to confirm
    Quantise a checkpoint of the last model and compare its loss and its tasks: `ridgeline gate`.

    ## What to do, cheapest first
    1. A gate for the type on a model that exists.
    2. A pair of small runs for the architecture.
    3. The best configuration without it: the table of what each freedom buys says what that costs.

    ## Sources
    Kumar et al. 2024 (arXiv:2411.04330) for precision; Krajewski et al. 2024 (arXiv:2402.07871) for narrow experts.
    """
    if facts.winner is None:
        return
    unknown = facts.unknown
    if not unknown:
        yield this.found(Verdict.PASS, "Dense, grouped-query attention, 16 bits: what the law was fitted to.", "")
        return
    text = f"The loss takes {', '.join(unknown)} as free: what that costs is in no law here."
    yield this.found(Verdict.UNKNOWN, text, "Put it through a gate on a model that exists before deciding on it.")
