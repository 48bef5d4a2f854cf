"""G108: how often the data were looked at."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.gate.registration.cited import Cited


@rule("G108", "The data are looked at as often as was registered")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The log of looks beside the record. Without `sequential = true` a plan allows one look, at its registered n: a
    second one at other data fails, and the outcome is then never SHIP; an early one is unknown. The same data read
    again is no new look.

    ## Why it matters
    An interval that holds once does not hold at every look. Looked at every hundred pairs up to 5,000, a test at 5%
    ships a model exactly at the margin 31% of the time.

    ## How to confirm
    `RECORD.looks.jsonl` has a line for each look, with its time, n, outcome and the hash of the line before.

    ## What to do, cheapest first
    1. Wait for the registered n, and look once.
    2. Register with `sequential = true`: the intervals then hold at every look, and are about half as wide again.
    3. Register anew for data that nobody has looked at.

    ## Sources
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Time-uniform central limit theory, arXiv:2103.06476;
    Armitage, McPherson and Rowe, Repeated significance tests on accumulating data, JRSS A 132, 1969.
    """
    if not isinstance(facts, Cited) or facts.record is None:
        return
    yield this.found(*_said(facts))


def _said(facts: Cited) -> tuple[Verdict, str, str]:
    if facts.plan.sequential:
        more = f", after {facts.earlier}" if facts.earlier else ""
        return Verdict.PASS, f"Registered as sequential: a look at n = {facts.n:,}{more}.", ""
    if facts.earlier:
        fix = "Take the first look's outcome, or register anew with `sequential = true` and new data."
        return Verdict.FAIL, f"The plan allows one look, and there is {facts.earlier}.", fix
    if facts.plan.n is not None and facts.n < facts.plan.n:
        said = f"Looked at {facts.n:,} of the {facts.plan.n:,} registered pairs."
        return Verdict.UNKNOWN, said, "Wait for the registered n; or register with `sequential = true`."
    return Verdict.PASS, f"The first look, at n = {facts.n:,}.", ""
