"""JUnit XML that servers read, and annotations that GitHub reads."""

from typing import Any
from xml.etree import ElementTree as ET

from ridgeline.core.finding import Finding, Verdict
from ridgeline.gate.case import Decided, case_of
from ridgeline.gate.decision import Check
from ridgeline.gate.gate import Gate
from ridgeline.gate.junit import ANNOTATIONS, annotations, junit, words
from ridgeline.gate.statistics.interval import Interval

GATE = Gate("trial", "A trial", "A loss that nobody sees.")
FOUND = Finding("G107", "Registered", Verdict.FAIL, "The margin was changed.", "Register again.")


def check(name: str, low: float, high: float, **more: Any) -> Check:
    interval = Interval((low + high) / 2, low, high, 400, 0.05, "test", None, more.pop("degenerate", ""))
    return Check(name, "accuracy", interval, 0.01, "%", **more)


SHIP, OPEN, LOST = check("overall", -0.004, 0.006), check("code", -0.03, 0.02, needed=9), check("low", -0.2, -0.1)
DESCRIBED = check("mean", -0.2, -0.1, required=False)


def suite(*checks: Check, findings: tuple[Finding, ...] = ()) -> ET.Element:
    decided = Decided(GATE, "b against a", checks, findings=findings)
    found = ET.fromstring(junit(decided, case_of(decided)))
    assert found.tag == "testsuites"
    return found[0]


def test_one_case_a_check() -> None:
    found = suite(SHIP, OPEN, LOST, DESCRIBED)
    assert {key: found.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4", "failures": "2", "errors": "0", "skipped": "1",
    }  # fmt: skip
    failures = [(case, failure) for case in found.iter("testcase") for failure in case.iter("failure")]
    types = {case.get("name"): failure.get("type") for case, failure in failures}
    assert types == {"code": "inconclusive", "low": "no-ship"}
    assert {case.get("classname") for case in found.iter("testcase")} == {"gate.trial.accuracy"}


def test_the_message_has_the_numbers() -> None:
    assert words(OPEN) == (
        "accuracy -0.5 points (-3 to 2), margin 1 points, n = 400; 9 more pairs would decide, if there is no difference"
    )
    assert words(check("overall", 0, 0, degenerate="one group")) == "no evidence: one group, n = 400"


def test_findings_are_cases_of_their_own() -> None:
    found = suite(SHIP, findings=(FOUND,))
    (rules,) = [case for case in found.iter("testcase") if case.get("classname") == "ridgeline gate trial.rules"]
    assert rules.get("name") == "G107 Registered"
    assert [failure.get("type") for failure in rules.iter("failure")] == ["fail"]


def test_an_unknown_finding_fails_no_build() -> None:
    unknown = Finding("G107", "Registered", Verdict.UNKNOWN, "Nobody knows.", "")
    assert suite(SHIP, findings=(unknown,)).get("failures") == "0"


def test_names_that_xml_cannot_hold() -> None:
    found = suite(check('a<b>&"\x00\x1b\ud800', -0.004, 0.006))
    assert next(found.iter("testcase")).get("name") == 'a<b>&"���'


def lines(*checks: Check, findings: tuple[Finding, ...] = ()) -> list[str]:
    decided = Decided(GATE, "b against a", checks, findings=findings)
    return annotations(decided, case_of(decided))


def test_annotations_escape_what_would_end_them() -> None:
    first, *rest = lines(SHIP, OPEN, LOST, DESCRIBED, findings=(FOUND,))
    assert first.startswith("::error title=gate trial%3A NO-SHIP::NO-SHIP: accuracy")
    assert "90%25 interval" in first
    assert [line.partition(" ")[0] for line in rest] == ["::error", "::warning", "::error"]
    assert all(line.count("\n") == 0 for line in (first, *rest))
    (only, *_) = lines(check("a,b:c\nd", -0.2, -0.1))[1:]
    assert "title=gate trial%3A a%2Cb%3Ac%0Ad%3A NO-SHIP::" in only


def test_a_ship_is_a_notice() -> None:
    assert [line.partition(" ")[0] for line in lines(SHIP)] == ["::notice"]


def test_no_more_annotations_than_are_shown() -> None:
    found = lines(*(check(f"s{index}", -0.2, -0.1) for index in range(30)))
    assert len(found) == ANNOTATIONS
    assert found[-1] == "::error title=more::22 more of this kind are in the report"
