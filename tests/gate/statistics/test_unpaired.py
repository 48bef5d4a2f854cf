"""Two rates of different examples: published intervals, size at the margin, and the levels of many looks."""

import numpy as np
import pytest

from ridgeline.gate.statistics.unpaired import Count, counted, difference_of_rates, field_needed, spent

# Newcombe 1998, Statistics in Medicine 17, 873-890, table II, method 10: 95% intervals.
PUBLISHED = [
    ((56, 70), (48, 80), (0.0524, 0.3339)),
    ((9, 10), (3, 10), (0.1705, 0.8090)),
    ((6, 7), (2, 7), (0.0582, 0.8062)),
    ((5, 56), (0, 29), (-0.0381, 0.1926)),
    ((0, 10), (0, 20), (-0.1611, 0.2775)),
    ((10, 10), (0, 20), (0.6791, 1.0000)),
]


def count(events: int, n: int) -> Count:
    return Count(events, n, float(n))


@pytest.mark.parametrize(("first", "second", "ends"), PUBLISHED)
def test_intervals_of_the_literature(
    first: tuple[int, int], second: tuple[int, int], ends: tuple[float, float]
) -> None:
    found = difference_of_rates(count(*first), count(*second), 0.025)
    assert (found.low, found.high) == pytest.approx(ends, abs=5e-5)
    assert found.estimate == pytest.approx(first[0] / first[1] - second[0] / second[1])


@pytest.mark.parametrize("rate", [0.002, 0.01, 0.05])
def test_a_field_at_the_margin_is_seldom_shipped(rate: float) -> None:
    rng, margin = np.random.default_rng(5), 0.01
    offline = 1 - rng.binomial(4000, rate, 1500) / 4000
    field = 1 - rng.binomial(3000, rate + margin, 1500) / 3000
    shipped = [
        difference_of_rates(count(round(f * 3000), 3000), count(round(o * 4000), 4000), 0.05).low > -margin
        for f, o in zip(field, offline, strict=True)
    ]
    assert np.mean(shipped) <= 0.06


def test_clusters_are_not_independent_examples() -> None:
    rng, margin, wrong = np.random.default_rng(6), 0.03, 0
    for _ in range(250):
        field, names = clustered(rng, 60, 0.05 + margin)
        offline, others = clustered(rng, 60, 0.05)
        interval = difference_of_rates(counted(field, names, 0.05), counted(offline, others, 0.05), 0.05)
        wrong += interval.low > -margin
    assert wrong / 250 <= 0.06
    assert interval.clusters == 60
    assert "effective" in interval.method


def clustered(rng: np.random.Generator, groups: int, rate: float, each: int = 20, icc: float = 0.2):  # type: ignore[no-untyped-def]
    size = 1 / icc - 1
    errors = rng.binomial(1, np.repeat(rng.beta(rate * size, (1 - rate) * size, groups), each)) == 1
    return ~errors, np.repeat(np.arange(groups), each).astype(object)


def test_what_is_no_evidence() -> None:
    some = np.array([True, False, True])
    assert counted(some[:0], None, 0.05).why == "no examples"
    assert counted(some, np.array(["a", "a", "a"], dtype=object), 0.05).why == "one cluster"
    assert counted(some, np.array(["a", "b", "c"], dtype=object), 0.05) == Count(2, 3, 3.0)
    found = difference_of_rates(counted(some[:0], None, 0.05), count(5, 10), 0.05)
    assert found.degenerate == "no examples"


def test_the_field_sample_that_is_needed_is_enough() -> None:
    rng, size, rate = np.random.default_rng(7), 20_000, 0.02
    seen = count(round(size * (1 - rate)), size)
    n = int(field_needed(seen, seen, 0.01, alpha=0.05))
    ships = [
        difference_of_rates(count(n - f, n), count(size - o, size), 0.05).low > -0.01
        for f, o in zip(rng.binomial(n, rate, 1000), rng.binomial(size, rate, 1000), strict=True)
    ]
    assert 0.77 < np.mean(ships) < 0.88


def test_clustered_examples_are_needed_in_greater_number() -> None:
    free, held = Count(980, 1000, 1000.0), Count(980, 1000, 250.0, 50)
    offline = count(98_000, 100_000)
    assert field_needed(held, offline, 0.02, alpha=0.05) > 3 * field_needed(free, offline, 0.02, alpha=0.05)


def test_no_field_sample_mends_a_small_offline_one() -> None:
    assert field_needed(count(980, 1000), count(48, 50), 0.01, alpha=0.05) == float("inf")


def test_all_looks_together_spend_alpha() -> None:
    levels = [spent(0.05, look) for look in range(1, 5000)]
    assert sum(levels) == pytest.approx(0.05, rel=1e-3)
    assert sum(levels) < 0.05
    assert levels == sorted(levels, reverse=True)


def test_many_looks_at_a_field_at_the_margin_seldom_ship_it_once() -> None:
    """Ten looks, each at the whole of alpha, ship it in a fifth of histories and more."""
    rng, runs, ever, naive = np.random.default_rng(8), 300, 0, 0
    for _ in range(runs):
        offline = count(20_000 - rng.binomial(20_000, 0.02), 20_000)
        fields = [count(2000 - rng.binomial(2000, 0.03), 2000) for _ in range(10)]
        ever += any(
            difference_of_rates(field, offline, spent(0.05, look)).low > -0.01 for look, field in enumerate(fields, 1)
        )
        naive += any(difference_of_rates(field, offline, 0.05).low > -0.01 for field in fields)
    assert ever / runs <= 0.06
    assert naive / runs > 0.2
