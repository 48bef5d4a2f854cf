"""Calibration error without the bias of bins."""

import numpy as np
import pytest
from scipy.special import expit, logit

from ridgeline.core.errors import InputError
from ridgeline.gate.statistics import calibration as made
from ridgeline.gate.statistics.interval import Interval


def run(rng: np.random.Generator, n: int, temperature: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """True probabilities seen through a temperature, and answers."""
    true = rng.beta(4, 1.5, n)
    return expit(temperature * logit(true)), (rng.random(n) < true).astype(float)


def test_the_square_is_the_mean_over_pairs_of_a_bin() -> None:
    confidence, correct = run(np.random.default_rng(0), 300)
    code, residual, total = made.equal_mass(confidence, 15), correct - confidence, 0.0
    for index in range(15):
        here = residual[code == index]
        pairs = np.outer(here, here)
        total += len(here) / 300 * (pairs.sum() - np.trace(pairs)) / (len(here) * (len(here) - 1))
    found = made.calibration(confidence, correct, 0.05)
    assert found.estimate == pytest.approx(-np.copysign(abs(total) ** 0.5, total))


def test_the_variance_is_that_of_the_closed_form() -> None:
    confidence, correct = run(np.random.default_rng(1), 4000, 1.3)
    bins = made._binned(confidence, correct)
    found = 0.0
    for index in range(len(bins.n)):
        here = (correct - confidence)[bins.code == index]
        n, spread = len(here), here.var(ddof=1)
        own = (here.sum() ** 2 - (here**2).sum()) / (n * (n - 1))
        found += (n / 4000) ** 2 * (4 * max(own, 0) * spread / n + 2 * spread**2 / (n * (n - 1)))
    assert bins.variance == pytest.approx(found)


def test_the_estimate_has_no_bias() -> None:
    rng, true = np.random.default_rng(2), 0.0
    runs = [made._binned(*run(rng, 1000)) for _ in range(300)]
    values = np.array([item.value for item in runs])
    assert abs(values.mean() - true) < 3 * values.std() / 300**0.5
    assert np.var(values) == pytest.approx(np.mean([item.variance for item in runs]), rel=0.6)


@pytest.mark.parametrize(("temperature", "n"), [(1.0, 1000), (1 / 0.8, 1000), (1.3, 1000), (1.3, 4000)])
def test_the_error_is_covered(temperature: float, n: int) -> None:
    rng, inside = np.random.default_rng(3), 0
    many = rng.beta(4, 1.5, 200_000)
    true = -float(((expit(temperature * logit(many)) - many) ** 2).mean() ** 0.5)
    for _ in range(200):
        found = made.calibration(*run(rng, n, temperature), 0.025)
        inside += found.low <= true <= found.high
    assert inside / 200 >= 0.93


def both(rng: np.random.Generator, n: int, before: float, after: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two temperatures on the same examples, and their answers."""
    true = rng.beta(4, 1.5, n)
    correct = (rng.random(n) < true).astype(float)
    return expit(before * logit(true)), expit(after * logit(true)), correct


@pytest.mark.parametrize(("before", "after"), [(1.0, 1.1), (1.3, 1.5)])
def test_a_change_is_covered_and_seen(before: float, after: float) -> None:
    rng = np.random.default_rng(4)
    many = rng.beta(4, 1.5, 200_000)
    errors = [float(((expit(t * logit(many)) - many) ** 2).mean()) for t in (before, after)]
    true = -((errors[1] - errors[0]) ** 0.5)
    found = []
    for _ in range(300):
        base, candidate, correct = both(rng, 2000, before, after)
        found.append(made.calibration_difference(base, correct, candidate, correct, 0.05))
    assert np.mean([item.low > true for item in found]) <= 0.06
    assert np.mean([item.low <= true <= item.high for item in found]) >= 0.88
    assert np.mean([item.estimate for item in found]) < 0


def test_the_binned_error_does_not_see_the_change() -> None:
    rng = np.random.default_rng(5)
    changes = []
    for _ in range(100):
        base, candidate, correct = both(rng, 100, 1.0, 1.1)
        changes.append(made.reliability(candidate, correct, 0.05, draws=2).error
                       - made.reliability(base, correct, 0.05, draws=2).error)  # fmt: skip
    assert abs(np.mean(changes)) < 0.006, "the true change is 0.012"


def test_the_covariance_is_exact_for_one_run() -> None:
    confidence, correct = run(np.random.default_rng(6), 5000, 1.3)
    bins = made._binned(confidence, correct)
    assert made._variance(bins, bins) == 0.0
    found = made.calibration_difference(confidence, correct, confidence, correct, 0.05)
    assert "no variance" in found.degenerate


def test_a_constant_that_is_right_is_calibrated() -> None:
    rng = np.random.default_rng(7)
    base, correct = run(rng, 4000)
    constant = np.full(4000, 4 / 5.5)
    found = made.calibration_difference(base, correct, constant, correct, 0.05)
    assert found.low < 0 < found.high, "each run is judged in its own bins"


def test_few_examples_are_no_evidence() -> None:
    confidence, correct = run(np.random.default_rng(8), 999)
    assert "999 examples of the 1,000" in made.calibration(confidence, correct, 0.05).degenerate
    assert made.calibration_difference(confidence, correct, confidence, correct, 0.05).degenerate
    assert not made.in_the_large(confidence, correct, 0.05).degenerate


def test_bins_keep_ties_together_and_reach_the_ends() -> None:
    confidence = np.r_[np.zeros(40), np.linspace(0.1, 0.9, 500), np.ones(60)]
    code = made.equal_mass(confidence, 15)
    assert len(set(code[:40])) == len(set(code[-60:])) == 1
    assert (code.min(), code.max()) == (0, 14)
    found = made.reliability(confidence, (confidence > 0.5).astype(float), 0.05)
    assert sum(row.n for row in found.bins) == 600
    assert (found.bins[0].confidence, found.bins[-1].confidence) == (0.0, 1.0)


def test_equal_confidences_are_one_bin() -> None:
    correct = np.r_[np.ones(700), np.zeros(300)]
    found = made.reliability(np.full(1000, 0.7), correct, 0.05)
    assert len(found.bins) == 1
    assert found.error == pytest.approx(0.0)
    assert made.calibration(np.full(1000, 0.9), correct, 0.05).estimate == pytest.approx(-0.2, abs=0.001)


def test_a_bin_of_one_example_is_skipped_and_counted() -> None:
    confidence = np.r_[np.full(1499, 0.5), 0.9]
    correct = np.r_[np.tile([0.0, 1.0], 750)]
    assert made.skipped_bins(confidence) == made.reliability(confidence, correct, 0.05).skipped == 1
    assert np.isfinite(made.calibration(confidence, correct, 0.05).low)


@pytest.mark.parametrize(
    ("confidence", "correct", "said"),
    [
        ([0.5, np.nan], [0, 1], r"confidences in \[0, 1\], got nan"),
        ([0.5, 1.01], [0, 1], r"confidences in \[0, 1\], got 1.01"),
        ([-0.1, 0.5], [0, 1], r"confidences in \[0, 1\], got -0.1"),
        ([0.5, 0.5], [0, 0.5], "answers of 0 or 1, got 0.5"),
        ([0.5, 0.5], [0, np.nan], "answers of 0 or 1, got nan"),
        ([0.5, 0.5], [0], "2 answers"),
        ([], [], "at least one confidence"),
    ],
)
def test_bad_input_is_refused(confidence: list[float], correct: list[float], said: str) -> None:
    for method in (made.calibration, made.in_the_large, made.reliability):
        with pytest.raises(InputError, match=said):
            method(np.array(confidence, dtype=float), np.array(correct, dtype=float), 0.05)


def test_runs_of_unequal_length_are_refused() -> None:
    one, other = np.full(5, 0.5), np.full(4, 0.5)
    for method in (made.calibration_difference, made.in_the_large_difference):
        with pytest.raises(InputError, match="5 paired confidences"):
            method(one, np.ones(5), other, np.ones(4), 0.05)


def test_in_the_large_is_signed_and_paired() -> None:
    rng = np.random.default_rng(9)
    confidence, correct = run(rng, 1500)
    sure = np.clip(confidence + 0.05, 0, 1)
    assert made.in_the_large(sure, correct, 0.05).low > 0
    found = made.in_the_large_difference(confidence, correct, sure, correct, 0.05)
    assert found.estimate == pytest.approx((sure - confidence).mean())
    assert found.high - found.low < 0.002, "the answers cancel"
    groups = np.repeat(np.arange(300), 5)
    assert made.in_the_large(sure, correct, 0.05, groups).clusters == 300


def test_both_signs_count_as_a_loss() -> None:
    found = made.both_sides(Interval(0.02, 0.01, 0.03, 100, 0.05, "paired t"))
    assert (found.estimate, found.low, found.high) == (-0.02, -0.03, -0.01)
    assert made.both_sides(Interval(0.0, -0.01, 0.02, 100, 0.05, "paired t")).high == 0.0


def test_the_expected_error_of_a_calibrated_model_is_shown() -> None:
    confidence, correct = run(np.random.default_rng(10), 1000)
    found = made.reliability(confidence, correct, 0.025)
    noise = [row.n / 1000 * (2 / np.pi * row.confidence * (1 - row.confidence) / row.n) ** 0.5 for row in found.bins]
    assert found.if_calibrated == pytest.approx(sum(noise), rel=0.05)
    assert found.if_calibrated > 0.03, "binned error of a model without any"
    assert found.error == pytest.approx(found.if_calibrated, abs=0.02)
    within = [row.band_low <= row.accuracy <= row.band_high for row in found.bins]
    assert sum(within) >= 12
    assert all(row.low <= row.accuracy <= row.high for row in found.bins)


def test_more_examples_take_more_bins() -> None:
    assert [made.bins_for(n) for n in (100, 1000, 10_000, 1_000_000)] == [15, 16, 50, 500]
