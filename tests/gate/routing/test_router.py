"""Thresholds, slice means of the choosing half, the constant, and what is saved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.runs import texts

from ridgeline.core.errors import InputError
from ridgeline.gate.routing.router import Examples, against_constant, by_slice, choose, saved, side
from ridgeline.gate.statistics.compare import compare

RNG = np.random.default_rng(5)


def binary(n: int = 2000) -> Examples:
    signal = RNG.random(n).round(2)
    weak = (RNG.random(n) < signal).astype(float)
    return Examples(weak, (RNG.random(n) < 0.9).astype(float), signal)


def test_the_threshold_is_the_lowest_whose_bound_is_inside() -> None:
    data = binary()
    chosen = choose(data, 0.03, 0.05)

    def low(threshold: float) -> float:
        return compare(data.strong, data.cascade(threshold), 0.05).low

    inside = [value for value in np.unique(data.signal) if low(value) > -0.03]
    assert chosen == min(inside)


def test_real_scores_too() -> None:
    plain = binary()
    data = Examples(plain.weak * 0.7, plain.strong * 0.9, plain.signal)
    found = choose(data, 0.03, 0.05)
    assert compare(data.strong, data.cascade(found), 0.05).low > -0.03
    below = np.unique(data.signal[data.signal < found])[-1]
    assert compare(data.strong, data.cascade(float(below)), 0.05).low <= -0.03


def test_where_nothing_is_inside_every_example_escalates() -> None:
    data = Examples(np.zeros(200), np.ones(200), np.linspace(0, 1, 200))
    assert choose(data, 0.001, 0.05) == np.inf
    assert side(data, np.inf).escalated == 1.0
    with pytest.raises(InputError, match="constant"):
        choose(Examples(np.zeros(9), np.ones(9), np.ones(9)), 0.1, 0.05)


def test_a_slice_has_the_mean_of_the_choosing_half_and_an_unseen_one_escalates() -> None:
    names, weak = texts(["a", "a", "a", "b", "c"]), np.array([1.0, 0.0, 0.0, 1.0, 1.0])
    signal, unseen = by_slice(weak, names, np.array([True, True, False, True, False]))
    assert signal.tolist() == [0.5, 0.5, 0.5, 1.0, -np.inf]
    assert unseen == ["c"]
    assert choose(Examples(weak, np.ones(5), signal), 5.0, 0.05) == 0.5


def test_the_figures_of_a_half() -> None:
    data = Examples(np.array([1.0, 0, 0, 1]), np.array([1.0, 1, 1, 0]), np.array([0.9, 0.8, 0.1, 0.2]))
    found = side(data, 0.5)
    assert (found.escalated, found.weak, found.strong, found.cascade) == (0.5, 0.5, 0.75, 0.5)
    assert (found.needs, found.recall, found.precision) == (2, 0.5, 0.5)
    assert found.constant == 0.625
    assert np.isnan(side(data, 0.0).precision)


@given(st.integers(0, 1000))
def test_the_gain_over_a_constant_is_that_of_the_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = Examples(rng.random(50), rng.random(50), rng.random(50))
    found = side(data, 0.4)
    assert against_constant(data, 0.4).mean() == pytest.approx(found.cascade - found.constant)


def test_saved_is_the_ratio_of_sums_and_confidence_pays_for_both() -> None:
    kept = np.array([True, False, True])
    costs = np.array([1.0, 1.0, 2.0]), np.array([10.0, 20.0, 30.0])
    rows, share = saved("slice", kept, costs)
    assert share == pytest.approx(1 - 23 / 60)
    assert rows.mean() == pytest.approx(share)
    _, both = saved("confidence", kept, costs)
    assert both == pytest.approx(1 - 24 / 60)


def test_the_interval_of_the_saving_covers() -> None:
    covered = 0
    for _ in range(300):
        kept, strong = RNG.random(200) < 0.6, RNG.gamma(2.0, 5.0, 200)
        rows, _ = saved("slice", kept, (0.1 * strong, strong))
        found = compare(np.zeros(200), rows, 0.05)
        covered += found.low < 0.6 * 0.9 < found.high
    assert 0.84 < covered / 300 < 0.96
