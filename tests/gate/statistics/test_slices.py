"""Slices, looks, and the least frequent ones."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from ridgeline.core.errors import InputError
from ridgeline.gate.statistics import sequential, slices
from ridgeline.gate.statistics.compare import compare


@pytest.mark.data
def test_every_subject_agrees_with_its_own_comparison(data_dir: Path) -> None:
    with gzip.open(data_dir / "gates" / "routellm_mmlu_correct.csv.gz", "rt") as file:
        rows = list(csv.reader(file))[1:]
    names = np.array([row[0] for row in rows], dtype=object)
    weak, strong = (np.array([row[k] == "True" for row in rows], dtype=float) for k in (2, 3))
    found = slices.by_slice(strong, weak, names, 0.05)
    assert len(found) == 57
    for name in ("anatomy", "virology"):
        at = names == name
        assert found[name].low == pytest.approx(compare(strong[at], weak[at], 0.05).low)
    assert compare(strong, weak, 0.05).estimate == pytest.approx(-0.125, abs=5e-4)
    assert len(slices.regressed(strong, weak, names, 0.05)) > 20


def test_real_scores_and_groups_by_slice() -> None:
    rng = np.random.default_rng(2)
    base, cand = rng.normal(size=(2, 300))
    names = np.array(["a", "b", "c"], dtype=object)[np.arange(300) % 3]
    groups = np.arange(300) // 6
    found = slices.by_slice(base, cand, names, 0.05, groups)
    at = names == "b"
    assert found["b"] == compare(base[at], cand[at], 0.05, groups[at])
    assert {item.method for item in found.values()} == {"CR2 t"}


def test_the_least_frequent_tenth() -> None:
    names = np.repeat(np.array(list("abcdefghijk"), dtype=object), [100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 5])
    assert slices.lowest_volume(slices.sizes(names)) == {"k", "j"}
    assert slices.lowest_traffic(slices.sizes(names)) == {"k", "j", "i"}
    assert slices.lowest_volume({"only": 4}) == {"only"}


def test_identical_models_raise_no_alarm() -> None:
    rng, alarms = np.random.default_rng(7), 0
    names = np.repeat(np.arange(6), [800, 500, 300, 200, 120, 80])
    for _ in range(60):
        draw = rng.random(2000)
        base = (draw < 0.5).astype(float)
        cand = np.where((draw < 0.02) | (draw > 0.98), 1 - base, base)
        alarms += bool(slices.regressed(base, cand, names, 0.05))
    assert alarms / 60 <= 0.12


def test_a_slice_without_variance_raises_no_alarm() -> None:
    base, cand = np.array([0.5, 0.5, 0.1, 0.9]), np.array([0.5, 0.5, 0.2, 0.7])
    assert slices.regressed(base, cand, np.array([0, 0, 1, 1]), 0.05) == {}


def test_shrinking_hides_the_tail() -> None:
    rng = np.random.default_rng(4)
    base = rng.integers(0, 2, 5000).astype(float)
    names = np.r_[np.repeat(np.arange(9), 530), np.full(230, 9)]
    cand = np.where((names == 9) & (rng.random(5000) < 0.2), 0.0, base)
    found = list(slices.by_slice(base, cand, names, 0.05).values())
    drawn = slices.shrunk(found)
    assert found[-1].estimate < drawn[-1] < 0


def _draws(rng: np.random.Generator, loss: float, discordant: float) -> np.ndarray:
    draw = rng.random(5000)
    return np.where(draw < (discordant - loss) / 2, 1.0, np.where(draw < discordant, -1.0, 0.0))


def test_peeking_every_hundred_ships_a_model_at_the_margin_rarely() -> None:
    rng, shipped, bet = np.random.default_rng(0), 0, 0
    for _ in range(300):
        found = _draws(rng, 0.02, 0.1)
        looks = [sequential.asymptotic(found[:n], 0.05, 5000) for n in range(100, 5001, 100)]
        shipped += any(look.low > -0.02 for look in looks if not look.degenerate)
        bet += sequential.betting_value(found, 0.02) >= 20
    assert shipped / 300 <= 0.05
    assert bet / 300 <= 0.05


def test_an_unchanged_model_ships_in_the_end() -> None:
    rng = np.random.default_rng(1)
    assert sequential.asymptotic(_draws(rng, 0, 0.1), 0.05, 5000).low > -0.02
    assert sequential.betting_value(_draws(rng, 0, 0.1), 0.02) >= 20


def test_few_discordant_pairs_are_no_evidence_yet() -> None:
    assert "of 10 discordant" in sequential.asymptotic(np.r_[np.zeros(500), -np.ones(3)], 0.05, 5000).degenerate


def test_betting_needs_bounded_scores() -> None:
    with pytest.raises(InputError, match="differences of scores"):
        sequential.betting_value(np.array([0.0, 3.0]), 0.02)
    with pytest.raises(InputError, match="a margin between 0 and 1"):
        sequential.betting_value(np.zeros(3), 0.0)
