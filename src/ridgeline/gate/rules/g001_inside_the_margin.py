"""G001: is the loss excluded."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.format import parenthesised, printable
from ridgeline.gate.case import Decided, figures, reach
from ridgeline.gate.decision import Check, Outcome

_VERDICTS = {Outcome.SHIP: Verdict.PASS, Outcome.NO_SHIP: Verdict.FAIL, Outcome.INCONCLUSIVE: Verdict.UNKNOWN}

_ADD, _FIRST = "Add examples, or groups, to this check.", "Put this right first: no examples decide it."


@rule("G001", "The interval excludes the margin")
def check(facts: Decided, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Every required check of a gate: the lower one-sided bound of candidate minus baseline against minus the margin that
    was tolerated beforehand, or that of a level against what is required. Below for certain fails, above for certain
    passes, anything else is unknown.

    ## Why it matters
    A difference that is not significant is not a difference that is absent: with few examples nothing is significant.
    Asking whether the interval excludes the loss turns little data into *not enough evidence* instead of into *ship*.

    ## How to confirm
    Open the interval: its method, its n and its groups. Read the examples that were lost, in the table of flips.

    ## What to do, cheapest first
    1. Unknown: run the number of further examples that the check names, in that slice.
    2. Failed: read the examples that flipped, and fix what they share.
    3. Change the margin only in a new registration: the change stays visible.

    ## Sources
    Berger, Multiparameter hypothesis testing and acceptance sampling, Technometrics 24, 1982 (intersection-union);
    Tango, Statistics in Medicine 17, 1998.
    """
    for item in facts.required:
        yield _finding(facts, item, this)


def _finding(facts: Decided, item: Check, this: Rule) -> Finding:
    known = figures(facts.gate, item)
    cites = tuple(known[name] for name in ("delta", "low", "high", "margin", "n") if name in known)
    where = parenthesised(printable(f"{item.metric}, {item.name}"))
    if item.interval.degenerate:
        sentence, fix = f"{where}: no evidence, {item.interval.degenerate}.", _ADD if item.interval.n else _FIRST
    else:
        against = "where at least" if item.level else "against a margin of"
        least = f"{{{known['margin'].name}}}" + (" is required" if item.level else "")
        sentence = f"{where}: {{{known['delta'].name}}} ({reach(known)}) {against} {least}."
        fix = _fix(item)
    return this.found(_VERDICTS[item.outcome], sentence, fix, cites=cites)


def _fix(item: Check) -> str:
    if item.outcome is Outcome.SHIP:
        return ""
    if item.outcome is Outcome.NO_SHIP:
        if item.level:
            return "No further examples would change it: what is measured must."
        return "Read the examples that were lost in this check before anything else."
    more = f": {item.needed:,} more {item.counts} would decide, {item.basis}." if item.needed else "."
    return f"Run more examples{more}"
