"""Precision at real prevalence: the worked numbers, coverage, and what is never blessed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core.errors import InputError
from ridgeline.gate.case import Decided, case_of
from ridgeline.gate.decision import Check, Outcome
from ridgeline.gate.detector.rates import Detector, Measured, Stakes, detector
from ridgeline.gate.gates.bayes import Question, decide
from ridgeline.gate.statistics.bayes import Rate, ppv, ppv_interval

POINTS = Measured(detector(Rate(0.9), Rate(0.05)))
COUNTS = Measured(detector(Rate(180, 200), Rate(50, 1000)))
BOTH = (Rate(0.05), Rate(0.01))


def value(decided: Decided, name: str) -> float:
    return float(case_of(decided).find(f"gate.bayes.{name}").value)


def check_of(decided: Decided, name: str) -> Check:
    return next(check for check in decided.checks if check.name == name)


def test_the_worked_numbers() -> None:
    found = decide(POINTS, Question(BOTH, 0.9))
    assert value(found, "at_5.ppv") == pytest.approx(100 * 0.045 / 0.0925, rel=1e-12)
    assert value(found, "at_1.ppv") == pytest.approx(100 * 0.009 / 0.0585, rel=1e-12)
    assert (round(value(found, "at_5.ppv"), 2), round(value(found, "at_1.ppv"), 2)) == (48.65, 15.38)
    assert value(found, "at_1.false_per_hit") == pytest.approx(5.5)
    assert value(found, "prevalence_needed") == pytest.approx(100 / 3)
    assert value(found, "at_1.fpr_needed") == pytest.approx(0.101, abs=5e-4)
    assert value(found, "at_1.npv") == pytest.approx(100 * 0.9405 / 0.9415, rel=1e-9)


def test_a_day_and_its_costs() -> None:
    stakes = Stakes(20_000, 40, 900)
    found = decide(COUNTS, Question(BOTH, 0.9, stakes=stakes))
    assert value(found, "at_1.hits") == pytest.approx(180)
    assert value(found, "at_1.false_alarms") == pytest.approx(990)
    assert value(found, "at_1.alarms") == pytest.approx(1170)
    assert value(found, "at_1.misses") == pytest.approx(20)
    assert value(found, "at_1.cost_of_acting") == pytest.approx(990 * 40 + 20 * 900)
    assert value(found, "at_1.cost_of_none") == pytest.approx(200 * 900)


def test_costs_say_what_precision_is_required() -> None:
    found = decide(COUNTS, Question((Rate(0.05),), stakes=Stakes(None, 10, 90)))
    (check,) = found.checks
    assert check.margin == pytest.approx(0.1)
    assert found.outcome is Outcome.SHIP


@given(
    st.floats(0.01, 1), st.floats(0.0001, 1), st.floats(1e-6, 0.999), st.floats(0.01, 0.99), st.booleans()
)  # fmt: skip
def test_points_never_ship(tpr: float, fpr: float, prevalence: float, required: float, irreversible: bool) -> None:
    low, high = sorted((tpr, fpr))
    found = decide(Measured(detector(Rate(high), Rate(low))), Question((Rate(prevalence),), required, irreversible))
    right = float(ppv(high, low, prevalence))
    assert found.outcome is (Outcome.NO_SHIP if right < required else Outcome.INCONCLUSIVE)


def test_nothing_required_is_nothing_decided() -> None:
    found = decide(POINTS, Question(BOTH))
    assert found.outcome is Outcome.INCONCLUSIVE
    case = case_of(found)
    assert "48.65% at a prevalence of 5%" in case.text(case.because)
    assert "15.38%" in case.text(case.because)


def test_an_irreversible_action_needs_a_stated_precision() -> None:
    with pytest.raises(InputError, match="Expected --ppv beside --irreversible"):
        decide(COUNTS, Question(BOTH, irreversible=True, stakes=Stakes(None, 1, 9)))
    for required in (0.0, 1.0, float("nan")):
        with pytest.raises(InputError, match="between 0 and 1"):
            decide(COUNTS, Question(BOTH, required))


def test_an_irreversible_action_needs_it_in_every_subgroup() -> None:
    groups = {"good": detector(Rate(950, 1000), Rate(2, 9000)), "bad": detector(Rate(90, 100), Rate(90, 1000)),
              "empty": Detector(Rate(0.0), Rate(3, 500), "no positives")}  # fmt: skip
    found = Measured(detector(Rate(1040, 1100), Rate(95, 10_500)), groups, dict.fromkeys(groups, groups["good"]))
    asked = Question((Rate(0.2),), 0.9)
    assert decide(found, asked).outcome is Outcome.SHIP
    strict = decide(found, Question((Rate(0.2),), 0.9, irreversible=True))
    assert strict.outcome is Outcome.NO_SHIP
    assert check_of(strict, "good at 20%").outcome is Outcome.SHIP
    assert check_of(strict, "bad at 20%").outcome is Outcome.NO_SHIP
    assert check_of(strict, "empty at 20%").outcome is Outcome.INCONCLUSIVE
    table = strict.tables["gate.bayes.groups"]
    rows = {row[0]: dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows}
    assert rows["bad"]["low"] > 100
    assert rows["empty"]["note"] == "no positives"
    assert rows["empty"]["ppv"] == ""


def test_further_labels_that_would_decide_do() -> None:
    asked = Question((Rate(0.1),), 0.8)
    found = decide(Measured(detector(Rate(180, 200), Rate(8, 400))), asked)
    (check,) = found.checks
    assert check.outcome is Outcome.INCONCLUSIVE
    assert check.needed is not None
    times = (600 + check.needed) / 600
    rng, ships = np.random.default_rng(3), 0
    for _ in range(60):
        n1, n0 = round(200 * times), round(400 * times)
        who = Detector(Rate(rng.binomial(n1, 0.9), n1), Rate(rng.binomial(n0, 0.02), n0))
        ships += decide(Measured(who), asked).outcome is Outcome.SHIP
    assert 0.65 < ships / 60 < 0.97


def test_a_sampled_prevalence_can_be_what_is_missing() -> None:
    known = decide(COUNTS, Question((Rate(0.3),), 0.85)).checks[0].interval
    sampled = decide(COUNTS, Question((Rate(30, 100),), 0.85)).checks[0]
    assert sampled.interval.low < known.low
    assert sampled.interval.high > known.high
    assert sampled.needed is None


def test_precision_of_a_balanced_test_set_is_not_precision_in_the_field() -> None:
    """The interval of the test set's own precision covers the truth hardly ever; that of its rates as often as said."""
    rng, runs, n, p = np.random.default_rng(4), 400, 500, 0.05
    truth = float(ppv(0.9, 0.05, p))
    tests, rates = 0, 0
    for _ in range(runs):
        hits, false = rng.binomial(n, 0.9), rng.binomial(n, 0.05)
        own = Rate(hits, hits + false)
        low, high = np.quantile(own.draws(rng), [0.025, 0.975])
        tests += low <= truth <= high
        at = ppv_interval(Rate(hits, n), Rate(false, n), Rate(p), alpha=0.025)
        rates += at.low <= truth <= at.high
    assert tests / runs <= 0.006
    assert 0.92 < rates / runs < 0.98


def test_it_ships_a_false_precision_seldom() -> None:
    rng, runs, p = np.random.default_rng(5), 600, 0.05
    truth = float(ppv(0.9, 0.05, p))
    lows = [
        ppv_interval(Rate(hits, 200), Rate(false, 800), Rate(p), alpha=0.05).low
        for hits, false in zip(rng.binomial(200, 0.9, runs), rng.binomial(800, 0.05, runs), strict=True)
    ]
    assert np.mean(np.array(lows) > truth) <= 0.07


def test_no_false_alarm_seen_is_not_none_there() -> None:
    found = decide(Measured(detector(Rate(90, 100), Rate(0, 100))), Question((Rate(0.01),), 0.9))
    (check,) = found.checks
    assert check.interval.estimate == 1.0
    assert check.interval.low < 0.5
    assert found.outcome is Outcome.INCONCLUSIVE
    case_of(found).dumps()


def test_an_interval_holds_its_estimate_where_no_false_alarm_was_seen() -> None:
    found = decide(Measured(detector(Rate(200, 200), Rate(0, 20))), Question((Rate(0.001),), 0.9))
    check = check_of(found, "prevalence 0.1%")
    assert (check.interval.estimate, check.interval.high) == (1.0, 1.0)
    assert check.outcome is Outcome.INCONCLUSIVE
    assert "takes a prevalence of" not in case_of(found).because
