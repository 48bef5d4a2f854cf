"""F201: does the ladder carry to the target."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.format import parenthesised
from ridgeline.forecast.facts import Facts

_VERDICTS = {"decide": Verdict.PASS, "indicative": Verdict.WARN, "refuse": Verdict.UNKNOWN}
_FIXES = {
    "decide": "",
    "indicative": "Buy the run that `ridgeline forecast next` names before the decision that this forecast is for.",
    "refuse": "Do not use the number. `ridgeline forecast next` names the run that would say most for its cost; a "
    "target nearer to the ladder may be forecast today.",
}


@rule("F201", "The ladder carries to the target")
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The verdict of the forecast: `decide` passes, `indicative` warns, and `refuse` is unknown: the runs do not say what
    the target reaches, which is neither good nor bad news about it. It rests on the error that the ladder shows on its
    own held-out runs, the decades to the target, and what the interval is worth against what the compute is to gain.

    ## Why it matters
    Near the floor a hundredth of a nat is worth about a third of the compute, so an interval that looks narrow may
    decide nothing. The usual intervals of a fit hold the truth in a quarter to a half of the cases a decade or two up.

    ## How to confirm
    `ridgeline forecast POINTS --target C --calibrate` holds out the upper decades of the ladder and counts what the
    interval would have held.

    ## What to do, cheapest first
    1. Forecast a nearer target first, and judge the next one when its run is there.
    2. Buy the run that `ridgeline forecast next` names.
    3. Repeat a small run with other seeds: where the noise is known, less of the error is blamed on the law.

    ## Sources
    The hold-out pages under benchmarks.
    """
    found = facts.forecast
    if found is None:
        yield this.found(Verdict.UNKNOWN, "No forecast was made.", "Give a target.")
        return
    word = found.verdict.word
    reason = parenthesised(next(iter(found.because), ""))
    decades = facts.measured("forecast.reach", found.decades, "1", "Decades to the target, as judged")
    yield this.found(
        _VERDICTS[word], f"{word.capitalize()}, {{forecast.reach|3}} decades beyond the ladder. {reason}",
        _FIXES[word], cites=(decades,),
    )  # fmt: skip
