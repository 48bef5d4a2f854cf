"""Areas under the ROC curve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core.errors import InputError
from ridgeline.gate.statistics import auc

Drawn = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def drawn(rng: np.random.Generator, users: int, each: int = 6) -> Drawn:
    """Two scores of one label, by users who share a taste."""
    who = np.repeat(np.arange(users), each)
    taste = rng.normal(size=users)[who]
    labels = (taste + rng.normal(size=len(who)) > 0.5).astype(float)
    base = taste + rng.normal(size=len(who)) + labels
    candidate = base + rng.normal(0, 0.5, users)[who] + rng.normal(0, 0.5, len(who))
    return base, candidate, labels, who


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=4, max_size=40))
def test_placements_are_those_of_all_pairs(rows: list[tuple[int, bool]]) -> None:
    scores, labels = np.array([float(s) for s, _ in rows]), np.array([float(y) for _, y in rows])
    if labels.all() or not labels.any():
        return
    up, down = scores[labels == 1], scores[labels == 0]
    wins = (up[:, None] > down).astype(float) + 0.5 * (up[:, None] == down)
    found = auc.placements(scores, labels)
    assert found[labels == 1] == pytest.approx(wins.mean(axis=1))
    assert found[labels == 0] == pytest.approx(wins.mean(axis=0))
    assert auc.auc(scores, labels) == pytest.approx(wins.mean())


def test_the_variance_is_delongs() -> None:
    base, candidate, labels, _ = drawn(np.random.default_rng(0), 60)
    up, down = (np.stack([auc.placements(s, labels)[labels == y] for s in (base, candidate)]) for y in (1, 0))
    joint = np.cov(up) / up.shape[1] + np.cov(down) / down.shape[1]
    error = (joint[0, 0] + joint[1, 1] - 2 * joint[0, 1]) ** 0.5
    found = auc.auc_difference(base, candidate, labels, alpha=0.025)
    shorter = min(found.high - found.estimate, found.estimate - found.low)
    assert shorter / 1.959964 == pytest.approx(error)
    assert found.estimate == pytest.approx(auc.auc(candidate, labels) - auc.auc(base, labels))


def test_users_of_one_example_are_no_groups() -> None:
    base, candidate, labels, who = drawn(np.random.default_rng(1), 200, each=1)
    assert auc.auc_difference(base, candidate, labels, who, alpha=0.05).method == "DeLong"


def test_a_doubled_example_is_no_new_evidence() -> None:
    base, candidate, labels, who = drawn(np.random.default_rng(2), 300, each=1)
    twice = [np.repeat(item, 2) for item in (base, candidate, labels, who)]
    one, two = auc.auc_difference(base, candidate, labels, alpha=0.05), auc.auc_difference(*twice, alpha=0.05)
    assert two.estimate == pytest.approx(one.estimate)
    assert two.high - two.low == pytest.approx(one.high - one.low, rel=0.02)


def test_by_user_covers_where_the_plain_one_is_too_narrow() -> None:
    rng = np.random.default_rng(3)
    big = drawn(rng, 60_000)
    true = auc.auc(big[1], big[2]) - auc.auc(big[0], big[2])
    misses = np.zeros(2)
    for _ in range(300):
        base, candidate, labels, who = drawn(rng, 300)
        for index, users in enumerate((None, who)):
            found = auc.auc_difference(base, candidate, labels, users, alpha=0.025)
            misses[index] += not found.low <= true <= found.high
    assert misses[1] / 300 <= 0.08
    assert misses[0] > misses[1]


def test_no_evidence() -> None:
    base, candidate, labels, _ = drawn(np.random.default_rng(5), 40)
    one = np.zeros(len(labels), dtype=np.int64)
    assert auc.auc_difference(base, candidate, labels, one, alpha=0.05).degenerate == "one user"
    assert "both orders agree" in auc.auc_difference(base, 3 * base + 1, labels, alpha=0.05).degenerate
    few = np.r_[1.0, np.zeros(9)]
    assert "fewer than two positives" in auc.auc_interval(np.arange(10.0), few, alpha=0.05).degenerate


@pytest.mark.parametrize(
    ("scores", "labels", "said"),
    [
        ([0.1, np.nan], [0, 1], "finite scores"),
        ([0.1, 0.2], [0, 2], "labels of 0 or 1"),
        ([0.1, 0.2], [1, 1], "both classes"),
        ([0.1, 0.2], [1, 0, 1], "2 labels"),
    ],
)
def test_bad_input_is_refused(scores: list[float], labels: list[float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        auc.auc(np.array(scores), np.array(labels, dtype=float))


def test_a_million_scores_are_ranked_not_compared() -> None:
    base, candidate, labels, who = drawn(np.random.default_rng(6), 30_000)
    assert auc.auc_difference(base, candidate, labels, who, alpha=0.05).clusters == 30_000
