"""F112: is every term of the law identified by the ladder."""

from collections import Counter
from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts
from ridgeline.forecast.fitting.fit import degenerate

_MOST = 50.0  # percent


@rule("F112", "Every term is identified", threshold=5, unit="%",
      why="a 95% interval does not see what fewer than one resample in twenty does")  # fmt: skip
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of resampled ladders whose best fit is degenerate: a constant on its bound (an irreducible loss of zero),
    or an exponent so steep that its term only bends within the ladder. Resamples that failed count too.

    ## Why it matters
    Where E falls to zero the law has lost its floor, and forecasts beyond the ladder are too low. Ladders whose
    learning-rate schedules did not end with the runs do this in nearly every resample.

    ## How to confirm
    Profile the constant: the objective stays flat towards the bound, and the interval is open on that side.

    ## What to do, cheapest first
    1. Check that the schedules ended (F105), and that N and D vary apart (F101).
    2. Report the interval over both basins.
    3. Add runs where the term is large: small D for the data term, small N for the capacity term.

    ## Sources
    Besiroglu et al. 2024 (arXiv 2404.10102) for the bootstrap; the share is measured on the user's own ladder.
    """
    draws = facts.draws
    if draws is None or draws.count == 0:
        yield this.found(
            Verdict.UNKNOWN, "The ladder was not resampled: whether every term is identified is not known.",
            "Ask for an interval.",
        )  # fmt: skip
        return
    bad = int(draws.degenerate.sum())
    value = facts.measured(
        "draws.degenerate", 100 * (bad + draws.failed) / draws.count, "%", "Degenerate or failed resamples",
        f"{draws.count} resamples, {draws.method}",
    )  # fmt: skip
    failed = f", {draws.failed} of them failed" if draws.failed else ""
    if this.holds(value):
        yield this.found(
            Verdict.PASS, f"{{draws.degenerate}} of {draws.count} resamples are degenerate{failed}.", "", value=value
        )
        return
    reasons = Counter(degenerate(draws.fit.form, theta) for theta in draws.theta[draws.degenerate])
    common = f": most often {reasons.most_common(1)[0][0]}" if reasons else ""
    yield this.found(
        Verdict.FAIL if float(value.value) > _MOST else Verdict.WARN,
        f"{{draws.degenerate}} of {draws.count} resamples are degenerate{failed}{common}.",
        "Check F101 and F105; then add runs where that term is large.", value=value,
    )  # fmt: skip
