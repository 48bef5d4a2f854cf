"""A decision for continuous integration: JUnit XML, and the annotations of GitHub's workflow commands.

One test case a check. A check that does not ship is a failure of type ``no-ship``; one without enough evidence is a
failure of type ``inconclusive``, never *skipped*, which servers count as passed. What is only described is skipped.
Findings of other rules than the margin's are test cases of the class ``rules``: ``fail`` is a failure, ``unknown`` is
skipped, for whatever it concerns is not known and the checks have decided all the same.
"""

import re
from xml.etree import ElementTree as ET

from ridgeline.core.case import Case
from ridgeline.core.finding import Finding, Verdict
from ridgeline.gate.case import Decided, read_in
from ridgeline.gate.decision import Check, Outcome
from ridgeline.gate.rules.g001_inside_the_margin import check as margin_rule

_TYPES = {Outcome.NO_SHIP: "no-ship", Outcome.INCONCLUSIVE: "inconclusive"}
_LEVELS = {Outcome.SHIP: "notice", Outcome.NO_SHIP: "error", Outcome.INCONCLUSIVE: "warning"}
_VERDICTS = {Verdict.FAIL: "error", Verdict.UNKNOWN: "warning", Verdict.WARN: "warning", Verdict.PASS: "notice"}
ANNOTATIONS = 10  # of one level, after which GitHub shows none
# what XML 1.0 cannot hold, even escaped
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(decided: Decided, case: Case) -> str:
    """The decision as one test suite. ``case`` is the decision's, which fills the sentences."""
    name = f"ridgeline gate {decided.gate.name}"
    suite = ET.Element("testsuite", {"name": _text(name)})
    for check in decided.checks:
        _check(suite, decided, check)
    others = [finding for finding in case.findings if finding.code != margin_rule.code]
    for finding in others:
        _finding(suite, case, finding, name)
    failures = len(suite.findall("testcase/failure"))
    counts = {"tests": len(suite), "failures": failures, "errors": 0, "skipped": len(suite.findall("testcase/skipped"))}
    for key, number in counts.items():
        suite.set(key, str(number))
    ET.SubElement(suite, "system-out").text = _text(case.text(case.decision))
    root = ET.Element("testsuites", {"name": _text(name), "tests": suite.get("tests", ""), "failures": str(failures)})
    root.append(suite)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _check(suite: ET.Element, decided: Decided, check: Check) -> None:
    names = {"classname": _text(f"gate.{decided.gate.name}.{check.metric}"), "name": _text(check.name)}
    case = ET.SubElement(suite, "testcase", names)
    said = words(check)
    if not check.required:
        ET.SubElement(case, "skipped", {"message": _text(f"described only: {said}")})
    elif check.outcome in _TYPES:
        failure = {"type": _TYPES[check.outcome], "message": _text(f"{check.outcome}: {said}")}
        ET.SubElement(case, "failure", failure).text = _text(check.note)
    else:
        ET.SubElement(case, "system-out").text = _text(said)


def _finding(suite: ET.Element, case: Case, finding: Finding, name: str) -> None:
    test = ET.SubElement(suite, "testcase", {"classname": f"{name}.rules", "name": f"{finding.code} {finding.title}"})
    said = _text(case.text(finding.sentence))
    if finding.verdict is Verdict.FAIL:
        ET.SubElement(test, "failure", {"type": "fail", "message": said}).text = _text(case.text(finding.fix))
    elif finding.verdict is Verdict.UNKNOWN:
        ET.SubElement(test, "skipped", {"message": f"unknown: {said}"})
    else:
        ET.SubElement(test, "system-out").text = said


def words(check: Check) -> str:
    """A check in one line of plain numbers: change, interval, margin, n, what is needed."""
    at = check.interval
    more = f"; {check.needed:,} more {check.counts} would decide, {check.basis}" if check.needed else ""
    if at.degenerate:
        return f"no evidence: {at.degenerate}, n = {at.n:,}{more}"
    unit, scale = read_in(check)
    unit = {"point": " points", "%": "%", "1": ""}.get(unit, f" {unit}")
    change, low, high, margin = (f"{scale * end:.4g}" for end in (at.estimate, at.low, at.high, check.margin))
    against = f"{'required' if check.level else 'margin'} {margin}{unit}"
    return f"{check.metric} {change}{unit} ({low} to {high}), {against}, n = {at.n:,}{more}"


def annotations(decided: Decided, case: Case) -> list[str]:
    """Workflow commands of GitHub: the decision, then each check and finding that did not pass, the worst first."""
    name = f"gate {decided.gate.name}"
    found = [_annotation(_LEVELS[decided.outcome], f"{name}: {decided.outcome}", case.text(case.decision))]
    for check in decided.required:
        if check.outcome is not Outcome.SHIP:
            title = f"{name}: {check.name}: {check.outcome}"
            found.append(_annotation(_LEVELS[check.outcome], title, words(check)))
    for finding in case.findings:
        if finding.code != margin_rule.code and finding.verdict is not Verdict.PASS:
            title = f"{name}: {finding.code} {finding.title}"
            found.append(_annotation(_VERDICTS[finding.verdict], title, case.text(finding.sentence)))
    return _first(found)


def _first(found: list[str]) -> list[str]:
    """As many of each level as are shown; the last says how many more there are."""
    kept = []
    for level in ("error", "warning", "notice"):
        lines = [line for line in found if line.startswith(f"::{level} ")]
        kept += lines[: ANNOTATIONS - 1] if len(lines) > ANNOTATIONS else lines
        if len(lines) > ANNOTATIONS:
            more = len(lines) - ANNOTATIONS + 1
            kept.append(_annotation(level, "more", f"{more} more of this kind are in the report"))
    return sorted(kept, key=found.index) if len(kept) == len(found) else kept


def _annotation(level: str, title: str, message: str) -> str:
    escaped = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    head = title.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A").replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={head}::{escaped}"


def _text(text: str) -> str:
    return _NOT_XML.sub("�", text)
