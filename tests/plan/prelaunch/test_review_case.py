"""The page of a review."""

import json

import pytest
from tests.plan.reviews import against, facts, incident

from ridgeline.core.finding import RuleConfig
from ridgeline.plan.prelaunch.review_case import review_case


def test_the_decision_has_the_number_its_interval_and_its_convention() -> None:
    case = review_case(facts(claim={"mfu": "90%", "provenance": "folklore"}))
    text = case.text(case.decision)
    assert "90.0% is claimed" in text
    assert "80%:" in text
    assert "MFU counts 6N FLOPs a token, without attention" in text


@pytest.mark.parametrize(
    ("claim", "plan", "head"),
    [
        (0.9, {}, "Make the schedule again"),
        (0.9, {"tp": 16}, "Do not launch yet"),
        (None, {}, "Launch after the pilot"),
    ],
)
def test_the_decision_tells_a_bad_number_from_a_bad_design(
    claim: float | None, plan: dict[str, int], head: str
) -> None:
    of = facts(plan, claim=None if claim is None else {"mfu": claim})
    assert review_case(of).decision.startswith(head)


def test_findings_are_sorted_by_cost_and_only_of_the_review() -> None:
    case = review_case(facts({"tp": 16}, claim={"mfu": "60%"}, price={"dollars_per_chip_hour": 2.0}))
    assert all(finding.code.startswith("P2") for finding in case.findings)
    warned = [f.cost.rank for f in case.findings if str(f.verdict) in ("warn", "unknown")]
    assert warned == sorted(warned, reverse=True)


def test_unknowns_become_open_questions() -> None:
    case = review_case(facts())
    asked = case.sections[-1].paragraphs[1:]
    unknown = [finding.code for finding in case.findings if str(finding.verdict) == "unknown"]
    assert [text.partition(":")[0] for text in asked] == sorted(unknown, key=unknown.index)
    assert "P213" in unknown


def test_the_document_is_whole_json() -> None:
    document = json.loads(review_case(against(incident(claim={"mfu": "50%"}))).dumps())
    assert "{" not in document["decision"] + document["because"]
    assert all("{" not in text for section in document["sections"] for text in section["paragraphs"])
    assert "review.comparable" in document["tables"]


def test_a_design_as_small_as_a_pilot_says_so() -> None:
    case = review_case(facts(cluster={"chips": "8xH100"}))
    assert "no larger than a pilot" in case.text(
        next(s for s in case.sections if s.heading == "The pilot").paragraphs[0]
    )


def test_rules_may_be_ignored() -> None:
    case = review_case(against(incident()), config=RuleConfig(ignore=("P2",)))
    assert case.findings == []
    assert case.to_json()["decision"], "the page does not lean on what the rules cite"
