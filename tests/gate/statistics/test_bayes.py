"""Worth of a detector at its prevalence."""

import numpy as np
import pytest
from scipy.special import expit

from ridgeline.core.errors import InputError
from ridgeline.gate.statistics import bayes
from ridgeline.gate.statistics.bayes import Rate
from ridgeline.gate.statistics.quantiles import normal


@pytest.mark.parametrize(("prevalence", "percent"), [(0.05, 48.65), (0.01, 15.38), (0.10, 66.7), (0.001, 1.77)])
def test_precision_at_ninety_and_five(prevalence: float, percent: float) -> None:
    assert 100 * bayes.ppv(0.9, 0.05, prevalence) == pytest.approx(percent, abs=0.05)


def test_precision_is_exact() -> None:
    assert bayes.ppv(0.9, 0.05, np.array([0.05, 0.01])) == pytest.approx([18 / 37, 2 / 13], rel=1e-12)
    assert bayes.npv(0.9, 0.05, 0.05) == pytest.approx(0.95 * 0.95 / (0.95 * 0.95 + 0.1 * 0.05))


def test_alarms_and_hits() -> None:
    assert bayes.false_alarms_per_hit(0.9, 0.05, 0.01) == pytest.approx(5.5)
    assert 1000 * bayes.alarms(0.9, 0.05, 0.01) == pytest.approx(9 + 49.5)
    assert 1000 * bayes.hits(0.9, 0.01) == pytest.approx(9)
    assert bayes.false_alarms_per_hit(0.0, 0.05, 0.01) == np.inf
    assert np.isnan(bayes.ppv(0.0, 0.0, 0.1))


def test_what_a_required_precision_needs() -> None:
    assert bayes.prevalence_needed(0.9, 0.05, 0.9) == pytest.approx(1 / 3)
    assert bayes.fpr_needed(0.9, 0.01, 0.9) == pytest.approx(0.00101, abs=5e-6)
    assert bayes.ppv(0.9, bayes.fpr_needed(0.9, 0.01, 0.9), 0.01) == pytest.approx(0.9)
    assert bayes.fpr_needed(0.9, 0.9, 0.01) == 1.0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: bayes.prevalence_needed(0.9, 0.05, 1.0), "a required PPV between 0 and 1"),
        (lambda: bayes.prevalence_needed(0.0, 0.05, 0.9), "a true-positive rate above zero"),
        (lambda: bayes.fpr_needed(0.9, 1.0, 0.9), "a prevalence below 1"),
        (lambda: Rate(3, 2), "between 0 and 2"),
        (lambda: Rate(0, 0), "the events of a rate"),
        (lambda: Rate(1.2), "between 0 and 1"),
        (lambda: Rate(float("nan"), 5), "between 0 and 5"),
    ],
)
def test_impossible_rates_are_refused(call: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()  # type: ignore[operator]


def test_a_hundred_of_each_leave_forty_points() -> None:
    found = bayes.ppv_interval(Rate(90, 100), Rate(5, 100), Rate(0.05), alpha=0.025)
    assert found.high - found.low == pytest.approx(0.40, abs=0.02)
    assert found.low < found.estimate < found.high
    assert bayes.ppv_interval(Rate(90, 100), Rate(5, 100), Rate(0.05), alpha=0.025) == found, "the draws are seeded"


def test_the_delta_method_agrees_where_counts_are_large() -> None:
    """On logit PPV = ln(TPR/FPR) + ln(p / (1 - p)); it has no answer at rates of 0 and 1."""
    rates = Rate(4500, 5000), Rate(2500, 50_000), Rate(1000, 20_000)
    drawn = bayes.ppv_interval(*rates, alpha=0.05)
    t, f, p = (rate.value for rate in rates)
    variance = (1 - t) / (t * 5000) + (1 - f) / (f * 50_000) + 1 / (20_000 * p * (1 - p))
    ends = np.log(t / f) + np.log(p / (1 - p)) + np.array([-1, 1]) * normal(0.05) * variance**0.5
    assert (drawn.low, drawn.high) == pytest.approx(tuple(expit(ends)), abs=0.002)
    assert bayes.npv_interval(*rates, alpha=0.05).low > 0.99


def test_precision_is_covered() -> None:
    rng, true, inside = np.random.default_rng(2), float(bayes.ppv(0.9, 0.05, 0.05)), 0
    for _ in range(400):
        rates = (
            Rate(rng.binomial(200, 0.9), 200),
            Rate(rng.binomial(1000, 0.05), 1000),
            Rate(rng.binomial(5000, 0.05), 5000),
        )
        found = bayes.ppv_interval(*rates, alpha=0.025)
        inside += found.low <= true <= found.high
    assert 0.92 <= inside / 400 <= 0.985


def test_the_precision_of_a_balanced_set_is_another_number() -> None:
    rng, true, inside = np.random.default_rng(4), float(bayes.ppv(0.9, 0.05, 0.05)), 0
    for _ in range(200):
        hits, false = rng.binomial(200, 0.9), rng.binomial(200, 0.05)
        found = bayes.rate_interval(Rate(hits, hits + false), alpha=0.025)
        inside += found.low <= true <= found.high
    assert inside / 200 <= 0.006


def test_no_event_leaves_an_interval() -> None:
    none = bayes.rate_interval(Rate(0, 50), alpha=0.05)
    assert none.low == 0.0
    assert 0 < none.high < 0.06
    assert bayes.rate_interval(Rate(50, 50), alpha=0.05).high == 1.0
    assert bayes.rate_interval(Rate(0.01), alpha=0.05).high == 0.01


def test_the_ratio_of_subgroups() -> None:
    found = bayes.ratio_interval(Rate(40, 400), Rate(100, 4000), alpha=0.025)
    assert found.estimate == pytest.approx(4.0)
    assert 2.5 < found.low < 4 < found.high < 6
    assert bayes.ratio_interval(Rate(4, 400), Rate(0, 4000), alpha=0.025).estimate == np.inf
