"""Paired differences: Tango's score interval and Student's t."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, t

from ridgeline.gate.statistics import paired
from ridgeline.gate.statistics.compare import compare


def test_no_discordant_pair_leaves_the_interval_open() -> None:
    found = paired.paired_binary(0, 0, 100, 0.025)
    assert found.low == pytest.approx(-0.0370, abs=5e-5)
    assert found.high == pytest.approx(0.0370, abs=5e-5)
    assert not found.degenerate


@given(st.integers(2, 400), st.data())
def test_the_ends_are_roots_of_the_statistic(n: int, data: st.DataObject) -> None:
    gained = data.draw(st.integers(0, n))
    lost = data.draw(st.integers(0, n - gained))
    low, high = paired.tango_ends(gained, lost, n, 0.05)
    assert -1 <= low <= (gained - lost) / n <= high <= 1
    assert paired.tango_statistic(gained, lost, n, low - 1e-9) >= 1.645 - 1e-3 or low < -1 + 1e-6
    assert paired.tango_statistic(gained, lost, n, high + 1e-9) <= -1.645 + 1e-3 or high > 1 - 1e-6
    if gained and gained < n:
        assert paired.tango_statistic(gained, lost, n, low + 1e-9) <= 1.645
    if lost and lost < n:
        assert paired.tango_statistic(gained, lost, n, high - 1e-9) >= -1.645


def test_where_nothing_was_gained_the_loss_is_a_plain_rate() -> None:
    lost = np.arange(12)
    low, high = paired.tango_ends(0, lost, 270, 0.05)
    assert float(binom.pmf(lost, 270, 0.01)[low > -0.01].sum()) <= 0.05, "6.6% by the score alone"
    up, down = paired.tango_ends(lost, 0, 270, 0.05)
    assert np.allclose(down, -low)
    assert np.allclose(up, -high)


def test_rare_losses_have_a_longer_bound() -> None:
    rng, ships = np.random.default_rng(2), 0
    for _ in range(500):
        difference = rng.normal(0, 0.02, 1000) - 2 * (rng.random(1000) < 0.005)
        ships += paired.paired_mean(difference, 0.05).low > -0.01
    assert ships / 500 <= 0.06, "12% by Student's t"
    mirrored = paired.paired_mean(-difference, 0.05)
    assert mirrored.high == pytest.approx(-paired.paired_mean(difference, 0.05).low)


def test_even_tails_leave_students_interval() -> None:
    found = paired.paired_mean(np.r_[-np.arange(1.0, 20), np.arange(1.0, 20)], 0.05)
    assert found.high == pytest.approx(t.isf(0.05, 37) * np.sqrt(2 * 2470 / 37 / 38))
    assert found.low == pytest.approx(-found.high)


def test_swapping_the_runs_mirrors_the_interval() -> None:
    one, other = paired.paired_binary(3, 11, 500, 0.05), paired.paired_binary(11, 3, 500, 0.05)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


@pytest.mark.parametrize(("margin", "discordant", "n"), [(0.01, 0.02, 100), (0.02, 0.1, 300), (0.05, 0.2, 1000)])
def test_a_model_at_the_margin_ships_in_at_most_six_of_a_hundred(margin: float, discordant: float, n: int) -> None:
    draw = np.random.default_rng(1).multinomial(
        n, [(discordant - margin) / 2, (discordant + margin) / 2, 1 - discordant], 4000
    )
    low, _ = paired.tango_ends(draw[:, 0], draw[:, 1], n, 0.05)
    assert (low > -margin).mean() <= 0.06


def test_equal_differences_are_no_evidence() -> None:
    assert "no variance" in paired.paired_mean(np.full(50, 0.3), 0.05).degenerate
    assert paired.paired_mean(np.array([0.1]), 0.05).degenerate
    assert paired.paired_binary(1, 0, 1, 0.05).degenerate


def test_the_default_follows_the_kind_of_score() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 2, 60).astype(float), rng.integers(0, 2, 60).astype(float)
    real, more = rng.normal(size=60), rng.normal(size=60)
    groups = np.repeat(np.arange(20), 3)
    assert compare(one, other, 0.05).method == "Tango score"
    assert compare(real, more, 0.05).method == "paired t"
    assert compare(one, other, 0.05, groups).method == "Tango score on effective counts"
    assert compare(real, more, 0.05, groups).method == "CR2 t"
    assert compare(real, more, 0.05, np.arange(60)).method == "paired t"
