"""Candidate over baseline: its interval, its size at the margin, and the rule of rounded means that it replaces."""

import numpy as np
import pytest
from tests.gate.runs import flipped, texts

from ridgeline.gate.statistics.ratio import (
    Counts,
    counts_of,
    paired_ratio,
    ratio_statistic,
    ratio_variance,
    rule_passes,
    rule_probability,
)


@pytest.mark.parametrize(
    ("recovery", "passes"), [(0.95, 0.627), (0.94, 0.375), (0.93, 0.171), (0.97, 0.960), (1.0, 1.0)]
)
def test_how_often_the_rounded_rule_passes(recovery: float, passes: float) -> None:
    """GSM8K of 1,000 questions, a baseline of 75%, 5% gained and 5% lost beside the true loss; simulated elsewhere."""
    assert rule_probability((1000, 0.75, 0.05), recovery) == pytest.approx(passes, abs=0.005)


def test_the_exact_probability_is_what_a_simulation_finds() -> None:
    rng, n, right, gained = np.random.default_rng(0), 200, 0.6, 0.04
    lost = right * 0.06 + gained
    drawn = rng.multinomial(n, [right - lost, gained, lost, 1 - right - gained], size=4000)
    passed = np.mean([rule_passes((both + more) / (both + less), 2, 0.95) for both, more, less, _ in drawn])
    assert rule_probability((n, right, gained), 0.94) == pytest.approx(passed, abs=0.025)


def test_rounding_moves_the_threshold() -> None:
    assert rule_passes(0.9451, 2, 0.95)
    assert not rule_passes(0.9449, 2, 0.95)


@pytest.mark.parametrize(("n", "gained"), [(100, 0.0), (100, 0.01), (300, 0.01), (1000, 0.0), (1000, 0.05)])
def test_size_at_the_margin(n: int, gained: float) -> None:
    rng, right, recovery, runs = np.random.default_rng(2), 0.75, 0.95, 2000
    lost = right * (1 - recovery) + gained
    drawn = rng.multinomial(n, [right - lost, gained, lost, 1 - right - gained], size=runs)
    shipped = np.mean(
        [ratio_statistic(Counts(float(row[0]), float(row[1]), float(row[2]), n), recovery) > 1.6449 for row in drawn]
    )
    assert shipped < 0.06 + 2 * (0.05 * 0.95 / runs) ** 0.5


def test_the_statistic_falls() -> None:
    counts = Counts(700, 20, 50, 1000)
    values = [ratio_statistic(counts, ratio) for ratio in np.linspace(0.5, 2, 40)]
    assert values == sorted(values, reverse=True)
    assert ratio_statistic(counts, 720 / 750) == pytest.approx(0, abs=1e-9)


def test_identical_runs_keep_an_open_interval() -> None:
    base, _ = flipped(1000, 0, 0, 0.75)
    found = paired_ratio(base, base, 0.05)
    assert found.estimate == 0
    assert found.degenerate == ""
    assert -0.006 < found.low < 0 < found.high < 0.006


def test_the_ends_are_where_the_score_crosses() -> None:
    base, cand = flipped(400, 30, 10)
    found = paired_ratio(base, cand, 0.05)
    for end, level in ((found.low, 1.6449), (found.high, -1.6449)):
        assert ratio_statistic(counts_of(base, cand), 1 + end) == pytest.approx(level, abs=1e-3)


def test_fieller_on_real_scores() -> None:
    rng = np.random.default_rng(1)
    base = rng.random(500) + 1
    found = paired_ratio(base, 0.97 * base + rng.normal(0, 0.02, 500), 0.05)
    assert found.low < -0.03 < found.high
    assert found.high - found.low < 0.003
    assert "Fieller" in found.method


@pytest.mark.parametrize(
    ("base", "cand", "why"),
    [
        ([1.0], [0.0], "fewer than two pairs"),
        ([0.0] * 5, [1.0] * 5, "no example is right in the baseline"),
        ([1.0] * 5, [0.0] * 5, "no example is right in the candidate"),
        ([0.5, -0.5, 0.2, -0.2], [0.4, 0.1, 0.2, 0.3], "cannot be told from zero"),
        ([0.5, 0.6, 0.7], [0.5, 0.6, 0.7], "all differences are equal"),
    ],
)
def test_no_evidence(base: list[float], cand: list[float], why: str) -> None:
    assert why in paired_ratio(np.array(base), np.array(cand), 0.05).degenerate


def test_clusters_widen_and_one_is_none() -> None:
    base, cand = flipped(400, 40, 0)
    groups = texts([row // 20 for row in range(400)])
    clustered, plain = paired_ratio(base, cand, 0.05, groups), paired_ratio(base, cand, 0.05)
    assert clustered.clusters == 20
    assert clustered.high - clustered.low > 1.5 * (plain.high - plain.low)
    assert paired_ratio(base, cand, 0.05, texts(["g"] * 400)).degenerate == "one group"


def test_the_variance_is_that_of_the_ratio() -> None:
    rng = np.random.default_rng(4)
    probabilities, n = [0.66, 0.04, 0.09, 0.21], 600
    drawn = rng.multinomial(n, probabilities, size=3000)
    ratios = (drawn[:, 0] + drawn[:, 1]) / (drawn[:, 0] + drawn[:, 2])
    base, cand = flipped(10_000, 900, 400, 0.75)
    assert ratio_variance(base, cand) / n == pytest.approx(ratios.var(), rel=0.1)
