"""F116: is it said which parameters N counts."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts
from ridgeline.forecast.points import PARAMS


@rule("F116", "It is said what N counts")
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Whether the ladder declares its N: total, non-embedding or active parameters.

    ## Why it matters
    The optimum comes back in the N that went in. Read with another count, a recommendation of a small model is off by
    its vocabulary and that of a mixture of experts by its sparsity.

    ## How to confirm
    Count one model of the ladder with `ridgeline model`, and see which count the file has.

    ## What to do, cheapest first
    1. Declare it: `--params total`, `--params non-embedding` or `--params active`.
    2. Name the column for what it is: `total_params`, `non_embedding_params`, `active_params`.

    ## Sources
    Porian et al. 2024 (arXiv 2406.19146), section 3.1; Kaplan et al. 2020 (arXiv 2001.08361) counts without embeddings.
    """
    if facts.points.params == "unstated":
        yield this.found(
            Verdict.UNKNOWN, "Nothing says which parameters N counts; the optimum is in the same unknown count.",
            "Declare it with --params: " + ", ".join(PARAMS[:-1]) + ".",
        )  # fmt: skip
        return
    yield this.found(Verdict.PASS, f"N counts {facts.points.params} parameters.", "")
