"""The truncation gate: which length ships, and whether an approximation is worth it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scripts.gate_examples.truncation import Signal, draw
from tests.gate.truncation.test_curve import scores_of

from ridgeline.arithmetic.flops import forward_parts
from ridgeline.arithmetic.named import named
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.params import Leaves
from ridgeline.core.errors import InputError
from ridgeline.gate.case import Decided, case_of
from ridgeline.gate.decision import Outcome
from ridgeline.gate.gates.truncation import Setting, decide
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.truncation.scores import ALONE, Scores

LENGTHS = (16, 64, 256, 1024)
LLAMA, _ = named("llama-3-8b")


def scores(users: int = 1000, seed: int = 3, **keys: Any) -> Scores:
    return scores_of(draw(np.random.default_rng(seed), users, 4, LENGTHS, Signal(**keys)))


def decided(found: Scores, setting: Setting | None = None, **keys: Any) -> Decided:
    return decide(found, setting or Setting(), Plan(gate="truncation", **keys))


def test_the_shortest_length_that_holds() -> None:
    found = decided(scores(noise=0.01))
    case = case_of(found)
    assert found.outcome is Outcome.SHIP
    assert case.find("gate.truncation.flattens_at").value == 256
    assert case.find("gate.truncation.not_before").value == 256
    assert found.worst is not None
    assert found.worst.metric == "AUC at 256 events"
    assert "64 loses more than the margin" in found.change


def test_a_length_that_is_given() -> None:
    short = decided(scores(), Setting(64))
    assert short.outcome is Outcome.NO_SHIP
    assert {check.metric for check in short.required} == {"AUC at 64 events"}
    assert decided(scores(noise=0.01), Setting(256)).outcome is Outcome.SHIP


def test_no_length_but_the_longest() -> None:
    found = decided(scores(depth=1024))
    assert found.outcome is Outcome.NO_SHIP
    assert "No length but the longest, 1024 events" in found.change
    assert "gate.truncation.flattens_at" not in case_of(found).quantities


def test_few_examples_are_inconclusive_with_the_number_needed() -> None:
    found = decided(scores(40, noise=0.3), Setting(256))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "would decide" in case_of(found).because


def test_a_length_without_effect() -> None:
    """RecBole 1478."""
    once = scores()
    found = decided(replace(once, at=dict.fromkeys(LENGTHS, once.at[1024])))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "bit-identical: the length was not applied" in case_of(found).because


def test_users_that_no_length_cuts_are_counted_apart() -> None:
    once = scores()
    assert once.history is not None
    short = int((once.history <= 16).sum())
    found = decided(once)
    assert short > 0
    assert [(item.count, item.what.partition(":")[0]) for item in found.lost] == [
        (short, "examples of users with at most 16 events")
    ]
    assert found.checks[0].interval.n == len(once) - short
    unknown = decided(replace(once, history=None))
    assert "no column of history" in unknown.lost[0].what


def test_losses_by_user() -> None:
    drawn = draw(np.random.default_rng(4), 800, 4, LENGTHS, Signal(noise=0.01))
    sign = 2.0 * drawn.label - 1
    losses = {length: np.logaddexp(0, -sign * (score - 0.3)) for length, score in drawn.at.items()}
    found = decided(replace(scores_of(drawn), metric="loss", at=losses, labels=None), margin=0.01, slice_margin=0.05)
    assert found.worst is not None
    assert found.worst.unit == "nat"
    assert found.worst.metric == "loss at 256 events"
    assert found.checks[0].interval.method == "CR2 t"


def approximate(once: Scores, change: float, seed: int = 9) -> Scores:
    """Another system: the scores at the longest history with noise, or with more of the label."""
    rng = np.random.default_rng(seed)
    assert once.labels is not None
    values = once.at[1024] + (change * once.labels if change > 0 else -change * rng.normal(0, 1, len(once)))
    order = rng.permutation(len(once))
    return replace(once, keys=once.keys[order], labels=once.labels[order], at={ALONE: values[order]},
                   users=None, history=None)  # fmt: skip


@pytest.mark.parametrize(("change", "words"), [
    (-1.0, "not worth it: against exact attention over 256 events it loses"),
    (-0.001, "not worth it"),
    (0.5, "better than exact attention over 256 events"),
])  # fmt: skip
def test_an_approximation(change: float, words: str) -> None:
    once = scores(noise=0.01)
    found = decided(once, Setting(approximate=approximate(once, change), model=LLAMA))
    assert words in found.change
    assert found.outcome is Outcome.SHIP  # it is described: it does not decide on the length
    assert "Exact attention over 256 events takes no more" in found.sections[-1].paragraphs[-1]


def test_an_approximation_that_few_examples_cannot_judge() -> None:
    once = scores(30)
    found = decided(once, Setting(256, approximate=approximate(once, -0.2)))
    assert "not decided" in found.change


def test_costs_are_those_of_the_model() -> None:
    table = decided(scores(), Setting(model=LLAMA)).tables["gate.truncation.curve"]
    parts = forward_parts(Leaves(LLAMA), Batch.of(256), "exact")
    row = next(row for row in table.rows if row[0] == 256)
    assert row[6].base == pytest.approx(sum(float(part.base) for part in parts.values()))
    core = float(parts["attention_scores"].base) + float(parts["attention_values"].base)  # type: ignore[index]
    assert row[7] == pytest.approx(100 * core / float(row[6].base))
    assert table.rows[-1][8] == 100


def test_bad_input() -> None:
    once = scores(50)
    with pytest.raises(InputError, match="two history lengths"):
        decided(replace(once, at={64: once.at[64]}))
    with pytest.raises(InputError, match="below the longest"):
        decided(once, Setting(1024))
    with pytest.raises(InputError, match="below the longest"):
        decided(once, Setting(100))
    other = approximate(once, -0.1)
    with pytest.raises(InputError, match="none that match"):
        decided(once, Setting(approximate=replace(other, keys=np.array([f"x{k}" for k in other.keys], dtype=object))))
    assert other.labels is not None
    with pytest.raises(InputError, match="equal labels"):
        decided(once, Setting(approximate=replace(other, labels=1 - other.labels)))
    with pytest.raises(InputError, match="scores for auc"):
        decided(once, Setting(approximate=replace(other, metric="loss")))


@pytest.mark.parametrize(("at", "said"), [("noise", "not above chance"), ("label", "hold the label")])
def test_scores_of_chance_and_scores_that_hold_the_label_do_not_ship(at: str, said: str) -> None:
    found, rng = scores(), np.random.default_rng(0)
    assert found.labels is not None
    base = rng.normal(size=len(found)) if at == "noise" else found.labels * 9 + rng.normal(size=len(found))
    same = {length: base + 0.01 * rng.normal(size=len(found)) for length in found.lengths}
    judged = decided(replace(found, at=same))
    assert judged.outcome is Outcome.INCONCLUSIVE
    assert said in judged.checks[0].interval.degenerate
    assert "none is excluded" in judged.change
