"""Compute budgets, and what they buy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arithmetic.worked import chip, number, printed, q

from ridgeline.arithmetic.budget import compute_budget, lifetime_compute, params_at_ratio, tokens_for, training_time
from ridgeline.core.errors import InputError

COMPUTE = st.floats(1e18, 1e28)


@given(chips=st.integers(1, 10**6), mfu=st.floats(0.01, 1.0), days=st.floats(0.1, 1000))
def test_the_time_that_a_budget_takes_is_the_time_it_was_made_of(chips: int, mfu: float, days: float) -> None:
    parts = (q(chips, "chip", "chips"), chip("H100").peak, q(mfu, "1", "mfu"))
    compute = compute_budget(*parts, q(days, "day", "time"))
    assert number(training_time(compute, *parts)) == pytest.approx(days)


@pytest.mark.parametrize(("chips", "days"), [(16_000, "11.4"), (1_000, "182.3")])
def test_days_of_6_3e24_flops(chips: int, days: str) -> None:
    peak = q(1e15, "FLOP/s/chip", "peak")
    found = training_time(q(6.3e24, "FLOP", "C"), q(chips, "chip", "chips"), peak, q(0.4, "1", "mfu"))
    assert number(found, "day") == printed(days)


@given(compute=COMPUTE, ratio=st.floats(0.1, 1e4))
def test_a_ratio_spends_the_whole_budget(compute: float, ratio: float) -> None:
    c = q(compute, "FLOP", "C")
    params = params_at_ratio(c, q(ratio, "token/param", "ratio"))
    tokens = tokens_for(c, params)
    assert number(tokens) / number(params) == pytest.approx(ratio)
    assert 6 * number(params) * number(tokens) == pytest.approx(compute)


@given(params=st.floats(1e6, 1e13), trained=st.floats(1e9, 1e14))
def test_serving_three_times_the_training_tokens_doubles_the_bill(params: float, trained: float) -> None:
    n, d = q(params, "param", "N"), q(trained, "token", "D")
    alone = number(lifetime_compute(n, d, q(0, "token", "served")))
    assert number(lifetime_compute(n, d, q(3 * trained, "token", "served"))) == pytest.approx(2 * alone)


def test_traffic_scenarios_at_once() -> None:
    served = np.array([1e12, 1e14, 1e16])
    found = lifetime_compute(q(70e9, "param", "N"), q(1.4e12, "token", "D"), q(served, "token", "served"))
    np.testing.assert_allclose(found.value, 6 * 70e9 * 1.4e12 + 2 * 70e9 * served)


@pytest.mark.parametrize("mfu", [0, 1.2, -0.4])
def test_impossible_mfu_is_refused(mfu: float) -> None:
    with pytest.raises(InputError, match="at most 1"):
        compute_budget(q(1, "chip", "chips"), chip("H100").peak, q(mfu, "1", "mfu"), q(1, "day", "time"))


def test_no_chips_are_refused() -> None:
    with pytest.raises(InputError, match="above zero"):
        compute_budget(q(0, "chip", "chips"), chip("H100").peak, q(0.4, "1", "mfu"), q(1, "day", "time"))
