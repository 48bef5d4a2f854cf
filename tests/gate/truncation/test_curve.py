"""Lengths against the longest: the fixed sequence, and what scores cannot say."""

from dataclasses import replace

import numpy as np
import pytest
from scripts.gate_examples.truncation import Drawn, Signal, draw

from ridgeline.gate.decision import Check, Outcome
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.auc import auc
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.truncation.curve import buckets, difference, flattens, informed, not_applied, not_before, step
from ridgeline.gate.truncation.scores import Scores

PLAN = Plan(gate="truncation")
LENGTHS = (16, 64, 256, 1024)


def scores_of(drawn: Drawn, *, history: bool = True) -> Scores:
    keys = np.array([str(at) for at in range(len(drawn.user))], dtype=object)
    users = drawn.user.astype(str).astype(object)
    return Scores("auc", keys, drawn.at, users, drawn.label.astype(float), drawn.history if history else None)


def scores(users: int = 300, seed: int = 0, signal: Signal | None = None) -> Scores:
    return scores_of(draw(np.random.default_rng(seed), users, 4, LENGTHS, signal))


def check(low: float, high: float) -> Check:
    return Check("overall", "AUC", Interval((low + high) / 2, low, high, 100, 0.05, "t"), 0.005)


SHIP, FAIL, OPEN = check(-0.001, 0.001), check(-0.1, -0.05), check(-0.1, 0.1)


@pytest.mark.parametrize(("steps", "flat", "first"), [
    ({16: FAIL, 64: SHIP, 256: SHIP}, 64, 64),
    ({16: FAIL, 64: OPEN, 256: SHIP}, 256, 64),
    ({16: SHIP, 64: OPEN, 256: SHIP}, 256, 16),  # a shorter length that passes by chance is not believed
    ({16: FAIL, 64: FAIL, 256: FAIL}, None, 1024),
    ({16: FAIL, 64: FAIL, 256: OPEN}, None, 256),
    ({16: SHIP, 64: SHIP, 256: SHIP}, 16, 16),
])  # fmt: skip
def test_where_the_curve_flattens(steps: dict[int, Check], flat: int | None, first: int) -> None:
    every = {length: [found] for length, found in steps.items()}
    assert flattens(every) == flat
    assert not_before(every, 1024) == first


def test_a_slice_that_fails_stops_the_sequence() -> None:
    assert flattens({64: [SHIP], 256: [SHIP, replace(FAIL, name="users above 1024 events")]}) is None


def test_buckets_hold_every_informed_example_once() -> None:
    found = scores()
    rows, parts = informed(found), buckets(found, informed(found))
    assert found.history is not None
    assert (found.history[rows] > 16).all()
    assert sorted(np.concatenate(list(parts.values())).tolist()) == rows.tolist()
    assert list(parts) == [
        "users of 17 to 64 events",
        "users of 65 to 256 events",
        "users of 257 to 1024 events",
        "users above 1024 events",
    ]
    assert found.history[parts["users of 65 to 256 events"]].min() > 64
    assert found.history[parts["users of 65 to 256 events"]].max() <= 256


def test_a_length_that_was_not_applied_is_no_evidence() -> None:
    """RecBole 1478: ``seq_len`` did not truncate, so that every length had the same scores."""
    found = scores()
    same = replace(found, at=dict.fromkeys(LENGTHS, found.at[1024]))
    assert "bit-identical" in not_applied(same, 64, informed(same))
    checks = step(same, 64, informed(same), PLAN)
    assert [one.outcome for one in checks] == [Outcome.INCONCLUSIVE]
    unknown = replace(same, history=None)
    assert "or no history is longer" in not_applied(unknown, 64, informed(unknown))


def test_users_whose_history_fits_do_not_hide_it() -> None:
    """Scores of short histories differ by retraining; those of long ones are the same to the last bit."""
    found = scores()
    assert found.history is not None
    moved = np.where(found.history <= 64, found.at[1024] + 0.01, found.at[1024])
    same = replace(found, at={**found.at, 64: moved})
    assert "bit-identical" in not_applied(same, 64, informed(same))
    assert not_applied(found, 64, informed(found)) == ""


def test_no_history_longer_than_a_length() -> None:
    found = scores()
    assert found.history is not None
    short = replace(found, history=np.minimum(found.history, 256))
    assert "no history is longer than 256" in not_applied(short, 256, informed(short))


def test_slices_that_a_length_does_not_cut_are_not_asked() -> None:
    found = scores()
    names = {one.name for one in step(found, 256, informed(found), PLAN)}
    assert "users of 65 to 256 events" not in names  # its whole history fits
    assert {"overall", "users of 257 to 1024 events", "users above 1024 events", "lowest-volume decile"} <= names


def test_a_slice_of_one_class_is_no_evidence() -> None:
    found = scores()
    assert found.labels is not None
    assert found.history is not None
    labels = np.where(found.history > 1024, 1.0, found.labels)
    by_name = {one.name: one for one in step(replace(found, labels=labels), 64, informed(found), PLAN)}
    assert by_name["users above 1024 events"].interval.degenerate == "all labels are equal: no AUC"


def test_loss_is_turned_so_that_higher_is_better() -> None:
    keys = np.array(list("abcdef"), dtype=object)
    at = {64: np.array([1.0, 1.1, 0.9, 1.0, 1.2, 0.8]), 256: np.array([0.9, 1.0, 0.7, 0.95, 1.0, 0.7])}
    found = Scores("loss", keys, at)
    interval = difference(found, at[64], at[256], np.arange(6), 0.05)
    assert interval.estimate == pytest.approx(float((at[256] - at[64]).mean()))
    assert interval.high < 0


def test_coverage_by_user() -> None:
    """A 90% interval of the AUC lost at 64 events holds the true loss, with four examples of each user."""
    rng = np.random.default_rng(5)
    large = draw(rng, 150_000, 1, LENGTHS)
    rows = large.history > 16
    truth = auc(large.at[64][rows], large.label[rows].astype(float)) - auc(
        large.at[1024][rows], large.label[rows].astype(float)
    )
    hits, runs = 0, 200
    for _ in range(runs):
        found = scores_of(draw(rng, 150, 4, LENGTHS))
        at = informed(found)
        interval = difference(found, found.at[64][at], found.at[1024][at], at, 0.05)
        hits += interval.low <= truth <= interval.high
    assert 0.84 <= hits / runs <= 0.96


def test_depth_is_found() -> None:
    """The true depth, 256, is inside the interval of where the curve flattens; too short a length is claimed rarely."""
    inside, runs = 0, 25
    for seed in range(runs):
        found = scores(500, seed)
        rows = informed(found)
        steps = {length: step(found, length, rows, PLAN)[:1] for length in LENGTHS[:-1]}
        inside += not_before(steps, 1024) <= 256 <= (flattens(steps) or 1024)
    assert inside >= 23
