"""Regression: every task against its margin, the list of those that lost, the mean over tasks described."""

import numpy as np
import pytest
from tests.gate.runs import flipped, pairs

from ridgeline.core.specs import build
from ridgeline.gate.case import Decided
from ridgeline.gate.decision import Outcome
from ridgeline.gate.gates.regression import decide
from ridgeline.gate.registration.plan import Plan

PLAN = build(Plan, {"gate": "regression"})


def decided(tasks: dict[str, tuple[int, int, int]], plan: Plan = PLAN) -> Decided:
    """Tasks of (examples, lost, gained)."""
    parts = [flipped(*counts) for counts in tasks.values()]
    base, cand = (np.concatenate(column) for column in zip(*parts, strict=True))
    names = [name for name, (n, *_) in tasks.items() for _ in range(n)]
    return decide(pairs({"acc": base}, {"acc": cand}, task=names), plan)


def test_a_lost_task_is_named_though_the_average_rises() -> None:
    found = decided({"gained": (1500, 0, 90), "same": (1000, 5, 5), "lost": (800, 70, 5)})
    outcomes = {check.name: check.outcome for check in found.checks if check.required}
    assert outcomes == {"overall": Outcome.SHIP, "gained": Outcome.SHIP, "same": Outcome.SHIP, "lost": Outcome.NO_SHIP}
    (row,) = found.tables["gate.regressed"].rows
    assert row[0] == "lost"
    assert row[2] == pytest.approx(-100 * 65 / 800)


def test_the_mean_over_tasks_counts_each_once() -> None:
    found = decided({"large": (9000, 0, 0), "small": (1000, 20, 0)})
    (macro,) = [check for check in found.checks if check.name == "mean over tasks"]
    assert macro.interval.estimate == pytest.approx(-0.01)
    assert not macro.required


def test_a_loss_within_its_margin_is_listed_and_ships() -> None:
    found = decided({"large": (20_000, 100, 0), "other": (5000, 5, 5)})
    assert found.outcome is Outcome.SHIP
    assert [row[0] for row in found.tables["gate.regressed"].rows] == ["large"]


def test_nothing_lost_has_no_list() -> None:
    found = decided({"a": (1000, 5, 5), "b": (1000, 5, 5)})
    assert "gate.regressed" not in found.tables
    assert found.sections[0].paragraphs == ("No task lost for certain, after Holm's correction.",)


def test_one_task_is_no_suite() -> None:
    base, cand = flipped(3000, 5, 5)
    found = decide(pairs({"acc": base}, {"acc": cand}), PLAN)
    assert found.outcome is Outcome.INCONCLUSIVE
