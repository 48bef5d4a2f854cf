"""F109: does every loss lie above the irreducible loss of the fit."""

from collections.abc import Iterable

import numpy as np

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts


@rule("F109", "Losses lie above the floor", threshold=0, unit="nat", at_least=True,
      why="the fitted E is the loss of unlimited parameters and tokens")  # fmt: skip
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The lowest loss of the ladder less the irreducible loss E of the fit.

    ## Why it matters
    A run below the floor contradicts the law: another corpus or tokenizer, a loss in another unit, or an E that is too
    high, which makes every forecast beyond the ladder too pessimistic.

    ## How to confirm
    Look at the run: its evaluation set, its tokenizer, whether the loss is per token.

    ## What to do, cheapest first
    1. Check the unit of the loss (`loss_unit = "bits"` in the file of `--spec`) and the column it was read from.
    2. Leave runs of another corpus out.
    3. Fit again with E bounded by the lowest loss.

    ## Sources
    Hoffmann et al. 2022 (arXiv 2203.15556), equation 2: E is the entropy of the text.
    """
    floor = facts.fit.constants.get("E") if facts.fit is not None else None
    if facts.fit is None or floor is None or facts.fit.form.predicts != "loss":
        why = "No fit says what the floor is." if facts.fit is None else "The fitted law has no irreducible loss."
        yield this.found(Verdict.UNKNOWN, why, "Fit a law with an irreducible loss.")
        return
    losses = facts.points["loss"]
    lowest = int(np.argmin(losses))
    above = facts.measured("fit.above_floor", losses[lowest] - floor, "nat", "Lowest loss above the fitted floor")
    below = int((losses < floor).sum())
    if this.holds(above):
        yield this.found(
            Verdict.PASS, "The lowest loss lies {fit.above_floor|3} above the fitted floor.", "", value=above
        )
        return
    yield this.found(
        Verdict.FAIL,
        f"{below} of {len(losses)} losses lie below the fitted floor, by up to {abs(float(above.value)):.3g} nats "
        f"(in {facts.points.place(lowest)}).",
        "Check the unit, the tokenizer and the corpus of those runs.", value=above,
    )  # fmt: skip
