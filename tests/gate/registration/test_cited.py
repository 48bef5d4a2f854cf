"""What a decision says of its registration: G107 and G108, and when it cannot be SHIP."""

from datetime import UTC, datetime, timedelta

import pytest

from ridgeline.core.finding import RuleConfig, Verdict
from ridgeline.core.specs import build
from ridgeline.gate.case import Decided
from ridgeline.gate.decision import Check, Outcome
from ridgeline.gate.gate import Gate
from ridgeline.gate.registration.cited import Cited, with_registration
from ridgeline.gate.registration.looks import Look
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.registration.record import Data, Record, Seen, signed
from ridgeline.gate.statistics.interval import Interval

WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
PLAN = build(Plan, {"gate": "precision"})
BARE = Record(PLAN, WHEN, "1", (Data("a.csv", "file", "aa"),))
RECORD = Record(PLAN, WHEN, "1", BARE.data, (), signed(BARE))
SEEN = Seen((("a.csv", "aa", None), ("b.csv", "bb", WHEN + timedelta(hours=1))))
LOOK = Look(RECORD.sha256, "2026-03-05T00:00:00Z", "other", 100, "INCONCLUSIVE", "")


def decided(low: float = -0.005) -> Decided:
    interval = Interval(low + 0.001, low, low + 0.002, 400, 0.05, "test")
    return Decided(Gate("precision", "Precision", "A loss."), "b", (Check("overall", "accuracy", interval, 0.01, "%"),))


def told(cited: Cited, config: RuleConfig | None = None, low: float = -0.005) -> tuple[Outcome, dict[str, Verdict]]:
    found = with_registration(decided(low), cited, config)
    return found.outcome, {item.code: item.verdict for item in found.findings}


def test_no_registration_warns_and_ships() -> None:
    assert told(Cited(PLAN)) == (Outcome.SHIP, {"G107": Verdict.WARN})


def test_as_registered() -> None:
    found = told(Cited(PLAN, RECORD, SEEN, (), "now", 400))
    assert found == (Outcome.SHIP, {"G107": Verdict.PASS, "G108": Verdict.PASS})


@pytest.mark.parametrize(
    ("cited", "code"),
    [
        (Cited(PLAN.model_copy(update={"margin": 0.02}), RECORD, SEEN, (), "now", 400), "G107"),
        (Cited(PLAN, RECORD, Seen((("a.csv", "changed", None),)), (), "now", 400), "G107"),
        (Cited(PLAN, RECORD, SEEN, (LOOK,), "now", 400), "G108"),
    ],
)
def test_what_departs_from_the_record_cannot_ship(cited: Cited, code: str) -> None:
    outcome, verdicts = told(cited)
    assert outcome is Outcome.INCONCLUSIVE
    assert verdicts[code] is Verdict.FAIL
    assert told(cited, low=-0.05)[0] is Outcome.NO_SHIP  # a loss stays one


def test_an_ignored_rule_blocks_all_the_same() -> None:
    changed = Cited(PLAN.model_copy(update={"margin": 0.02}), RECORD, SEEN, (), "now", 400)
    assert told(changed, RuleConfig(ignore=("G1",))) == (Outcome.INCONCLUSIVE, {})


def test_both_values_of_a_changed_margin_are_in_the_report() -> None:
    changed = Cited(PLAN.model_copy(update={"margin": 0.02}), RECORD, SEEN, (), "now", 400)
    (said, _) = with_registration(decided(), changed).findings
    assert "margin was 0.01 when registered and is 0.02 now" in said.sentence


def test_registered_with_the_results_in_sight_is_unknown() -> None:
    late = Cited(
        PLAN, RECORD, Seen((("a.csv", "aa", None), ("b.csv", "bb", WHEN - timedelta(hours=1)))), (), "now", 400
    )
    assert told(late) == (Outcome.SHIP, {"G107": Verdict.UNKNOWN, "G108": Verdict.PASS})


def test_looks() -> None:
    again = Cited(PLAN, RECORD, SEEN, (LOOK,), "other", 400)  # the same data as before
    assert told(again)[1]["G108"] is Verdict.PASS
    sequential = PLAN.model_copy(update={"sequential": True})
    record = Record(sequential, WHEN, "1", RECORD.data, (), "x")
    assert told(Cited(sequential, record, SEEN, (LOOK,), "now", 400))[1]["G108"] is Verdict.PASS
    planned = PLAN.model_copy(update={"n": 1000})
    early = Cited(planned, Record(planned, WHEN, "1", RECORD.data, (), "x"), SEEN, (), "now", 400)
    assert told(early)[1]["G108"] is Verdict.UNKNOWN
