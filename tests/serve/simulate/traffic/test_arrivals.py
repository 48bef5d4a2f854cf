"""Arrival processes: their mean rate, their dispersion, and what is refused."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.traffic.arrivals import Bursts, gamma, on_off, poisson, rate_of
from ridgeline.serve.simulate.traffic.requests import Floats
from ridgeline.serve.simulate.traffic.summary import dispersion


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(st.floats(0.01, 1e4), st.integers(1, 200), st.integers(0, 50))
def test_times_rise_and_repeat_with_their_seed(rate: float, n: int, seed: int) -> None:
    makers: list[Callable[[np.random.Generator], Floats]] = [
        lambda r: poisson(rate, n, r),
        lambda r: gamma(rate, 2.5, n, r),
        lambda r: on_off(rate, Bursts(), n, r),
    ]
    for make in makers:
        times = make(random(seed))
        assert times.shape == (n,)
        assert (np.diff(times) >= 0).all()
        assert (times >= 0).all()
        assert np.array_equal(times, make(random(seed)))


@pytest.mark.parametrize("cv", [0.5, 1.0, 3.0])
def test_gamma_has_its_rate_and_its_variation(cv: float) -> None:
    times = gamma(5.0, cv, 100_000, random())
    gaps = np.diff(times)
    assert rate_of(times) == pytest.approx(5.0, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.03)


def test_poisson_has_a_dispersion_of_one() -> None:
    assert dispersion(poisson(20.0, 100_000, random())) == pytest.approx(1.0, abs=0.05)


def test_bursts_keep_the_mean_rate() -> None:
    bursts = Bursts(ratio=10, on_s=1.0, off_s=5.0)
    times = on_off(5.0, bursts, 200_000, random())
    assert rate_of(times) == pytest.approx(5.0, rel=0.03)
    assert dispersion(times) > 3
    off = 5.0 * bursts.off_share
    assert (bursts.on_s * 10 * off + bursts.off_s * off) / 6.0 == pytest.approx(5.0)


def test_bursts_of_one_rate_are_poisson() -> None:
    times = on_off(20.0, Bursts(ratio=1, on_s=2, off_s=2), 50_000, random())
    assert dispersion(times) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match="requests per second above zero"):
        poisson(rate, 10, random())


@pytest.mark.parametrize("bad", [{"ratio": 0.5}, {"on_s": 0.0}, {"off_s": float("nan")}])
def test_bursts_that_are_none_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Bursts(**bad)


def test_all_at_once_has_no_rate() -> None:
    assert rate_of(np.zeros(5)) == float("inf")
