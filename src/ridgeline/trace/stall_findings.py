"""What the rules on periodic stalls share: a finding for each stall of a cause, with what it costs per step."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict
from ridgeline.core.quantity import Quantity, derive
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l3 import Cause, Stall, StripChart, quantities


def stall_findings(facts: TraceFacts, this: Rule, cause: Cause, what: str, fix: str) -> Iterable[Finding]:
    """A finding a stall of ``cause`` above the threshold; else one pass; nothing without a log or a search.

    ``what`` completes "... stalls the run every 20 steps". A stall whose cause is read from its shape alone warns.
    """
    chart = facts.l3
    if chart is None:
        return
    found = chart.caused_by(cause)
    findings = [_finding(facts, this, (chart, stall), what, fix) for stall in found]
    dear = [finding for finding in findings if finding.verdict is not Verdict.PASS]
    yield from dear or findings[:1]
    if not found and chart.searched:
        steps = int(chart.log.count[chart.kept].sum())
        yield this.found(Verdict.PASS, f"{what} shows no period in {steps:,} steps.", "")


def _finding(facts: TraceFacts, this: Rule, at: tuple[StripChart, Stall], what: str, fix: str) -> Finding:
    chart, stall = at
    known = quantities(chart)
    i = chart.stalls.index(stall)
    lost, each = known[f"stall.{i}"], known[f"stall.{i}.each"]
    share = share_of(lost, known["mean"], f"Share of the step lost to stalls every {stall.period:.4g} steps")
    about = "" if stall.period_exact else "about "
    likely = "" if stall.certain else " (likely)"
    sentence = (
        f"{what}{likely} stalls the run every {about}{stall.period:.4g} steps, first at step {stall.first}, "
        f"for {{{each.name}}} each: {{{lost.name}}} per step over {stall.occurrences}. {_sentence(stall.evidence)}"
    )
    verdict = Verdict.PASS if this.holds(share) else Verdict.FAIL if stall.certain else Verdict.WARN
    return this.found(verdict, sentence, fix, value=share, cost=facts.cost(lost), cites=(lost, each, known["mean"]))


def share_of(part: Quantity, step: Quantity, label: str) -> Quantity:
    """``<part>.share`` (percent): seconds per step over the mean step."""
    return derive(f"{part.name}.share", "part/step", "%", part=part, step=step).titled(label)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""
