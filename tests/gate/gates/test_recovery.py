"""Recovery: relative margins, tasks, and the rounded rule beside."""

import numpy as np
import pytest
from tests.gate.runs import flipped, pairs

from ridgeline.core.specs import build
from ridgeline.gate.decision import Outcome
from ridgeline.gate.gates.recovery import decide
from ridgeline.gate.registration.plan import Plan

PLAN = build(Plan, {"gate": "recovery"})


def test_the_rule_passes_what_the_interval_does_not_show() -> None:
    base, cand = flipped(1000, 82, 44, 0.75)  # keeps 94.9%: rounded, 0.95
    found = decide(pairs({"acc": base}, {"acc": cand}), PLAN)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.tables["gate.recovery.rule"].rows[0][4:6] == (0.95, "pass")
    chances = {row[1]: row[2] for row in found.tables["gate.recovery.luck"].rows}
    assert 30 < chances[94] < 45 < chances[95] < 70


def test_a_kept_benchmark_ships_and_a_lost_one_does_not() -> None:
    assert decide(pairs(*({"acc": run} for run in flipped(1000, 20, 15, 0.75))), PLAN).outcome is Outcome.SHIP
    assert decide(pairs(*({"acc": run} for run in flipped(1000, 100, 10, 0.75))), PLAN).outcome is Outcome.NO_SHIP


def test_tasks_are_slices_and_each_must_be_kept() -> None:
    large, small = flipped(3000, 10, 10, 0.7), flipped(30, 1, 1, 0.5)
    base, cand = (np.concatenate(parts) for parts in zip(large, small, strict=True))
    found = decide(pairs({"acc": base}, {"acc": cand}, task=["gsm8k"] * 3000 + ["aime"] * 30), PLAN)
    outcomes = {check.name: check.outcome for check in found.checks}
    assert outcomes == {"overall": Outcome.SHIP, "gsm8k": Outcome.SHIP, "aime": Outcome.INCONCLUSIVE}
    (aime,) = [check for check in found.checks if check.name == "aime"]
    assert aime.needed is not None
    assert aime.unit == "ratio"


def test_a_baseline_of_zero_is_no_evidence() -> None:
    found = decide(pairs({"acc": np.zeros(50)}, {"acc": np.ones(50)}), PLAN)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.tables["gate.recovery.rule"].rows[0][4:6] == ("", "no answer")
    assert "gate.recovery.luck" not in found.tables


def test_real_scores_take_fieller() -> None:
    rng = np.random.default_rng(0)
    base = 0.5 + 0.4 * rng.random(400)
    found = decide(pairs({"f1": base}, {"f1": 0.99 * base + rng.normal(0, 0.01, 400)}), PLAN)
    assert found.outcome is Outcome.SHIP
    assert "Fieller" in found.checks[0].interval.method
    assert found.checks[0].interval.estimate == pytest.approx(-0.01, abs=0.003)
