"""Scores of ranked lists."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core.errors import InputError
from ridgeline.gate.statistics import ranking

RANKED, GOLD = ["x", "a", "y", "b", "z"], {"a", "b"}


def test_one_hop_is_not_all_hops() -> None:
    assert ranking.any_at(RANKED, GOLD, 3)
    assert not ranking.all_at(RANKED, GOLD, 3)
    assert ranking.all_at(RANKED, GOLD, 4)
    assert [ranking.recall_at(RANKED, GOLD, k) for k in (1, 2, 4)] == [0.0, 0.5, 1.0]


def test_ranks_of_the_relevant() -> None:
    assert ranking.reciprocal_rank(RANKED, GOLD) == 0.5
    assert ranking.reciprocal_rank(RANKED, GOLD, 1) == 0.0
    assert ranking.average_precision(RANKED, GOLD) == pytest.approx((1 / 2 + 2 / 4) / 2)
    gain, best = 1 / log2(3) + 1 / log2(5), 1 + 1 / log2(3)
    assert ranking.ndcg_at(RANKED, GOLD, 5) == pytest.approx(gain / best)
    assert ranking.ndcg_at(RANKED, GOLD, 1) == 0.0


def test_an_item_retrieved_twice_counts_once() -> None:
    assert ranking.recall_at(["a", "a"], GOLD, 2) == 0.5
    assert ranking.average_precision(["a", "a", "b"], GOLD) == pytest.approx((1 + 2 / 3) / 2)


@given(st.permutations(range(8)), st.sets(st.integers(0, 9), min_size=1), st.integers(1, 10))
def test_bounds_and_the_best_order(ranked: list[int], gold: set[int], k: int) -> None:
    best = sorted(gold) + list(range(20, 30))
    for score in (ranking.ndcg_at, ranking.recall_at):
        assert 0 <= score(ranked, gold, k) <= score(best, gold, k) <= 1 + 1e-12
    assert ranking.average_precision(best, gold) == pytest.approx(1.0)
    assert ranking.all_at(ranked, gold, k) <= ranking.any_at(ranked, gold, k)


def test_nothing_to_find_is_refused() -> None:
    with pytest.raises(InputError, match="at least one relevant item"):
        ranking.recall_at(RANKED, [], 3)
    with pytest.raises(InputError, match="k of at least 1"):
        ranking.any_at(RANKED, GOLD, 0)


@pytest.mark.parametrize(("n", "points"), [(50, 13.4), (100, 9.6)])
def test_small_sets_cannot_see_twelve_points(n: int, points: float) -> None:
    found = ranking.wilson(n // 2, n, 0.025)
    assert 100 * (found.high - found.low) / 2 == pytest.approx(points, abs=0.05)


def test_rates_at_the_ends() -> None:
    none = ranking.wilson(0, 20, 0.025)
    assert none.low == pytest.approx(0.0, abs=1e-12)
    assert none.high == pytest.approx(0.161, abs=5e-4)
    assert ranking.wilson(0, 0, 0.025).degenerate == "no examples"
    with pytest.raises(InputError, match="between 0 and 5 events"):
        ranking.wilson(6, 5, 0.025)
