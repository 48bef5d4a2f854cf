"""G107: was the plan written down before the data was seen."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.format import parenthesised, printable
from ridgeline.gate.registration.cited import Cited


@rule("G107", "The margins were registered before the data was seen")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The plan that decided against the record of `ridgeline gate register`: every margin, slice, metric and level, the
    hash of the data or of its ids, and whether any result was written after the registration. No record warns. A
    changed plan or other data fails, and the outcome is then never SHIP. Results that are all older are unknown.

    ## Why it matters
    A margin that is chosen with the result in sight can be chosen to pass it. The error rates of the interval hold for
    a question that was fixed beforehand, and only for that one.

    ## How to confirm
    The record holds a hash of each part. Compare its `sha256` with the one in the commit or ticket that announced it.

    ## What to do, cheapest first
    1. Run `ridgeline gate register SPEC.toml --data FILE` before the next candidate exists, and cite the record.
    2. Where a margin must change, register again with the reason in `note`, and decide on data that nobody has seen.
    3. Keep the record under version control, where a second one does not replace it unseen.

    ## Sources
    Nosek et al., The preregistration revolution, PNAS 115, 2018; ICH E9, Statistical Principles for Clinical Trials,
    1998 (the margin of a non-inferiority trial is fixed in the protocol).
    """
    if not isinstance(facts, Cited):
        return
    yield this.found(*_said(facts))


def _said(facts: Cited) -> tuple[Verdict, str, str]:
    register = "Run `ridgeline gate register SPEC.toml --data FILE` before the next candidate exists."
    if facts.record is None:
        return Verdict.WARN, "The margins were not registered before the data was seen.", register
    when, name = f"{facts.record.registered:%Y-%m-%d %H:%M} UTC", facts.record.sha256[:12]
    faults = [f"{item.key} was {item.registered} when registered and is {item.used} now" for item in facts.changes]
    faults += facts.differs
    if faults:
        said = _plain(f"Not as registered on {when} ({name}): {'; '.join(faults)}.")
        return Verdict.FAIL, said, "Decide by the record, on its data; or register again, and decide on new data."
    if facts.late:
        return Verdict.UNKNOWN, _plain(f"Registered on {when} ({name}), but {facts.late}."), register
    return Verdict.PASS, f"Registered on {when} ({name}), and decided as registered.", ""


def _plain(text: str) -> str:
    return parenthesised(printable(text))
