"""Schedules as arrays: their shape, their ends and what is refused."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core.errors import InputError
from ridgeline.forecast.schedules import Array, Ramp, constant, cosine, linear, step_decay, wsd

RAMP = Ramp(steps=1000, peak=3e-4, warmup=100)
EVERY = {
    "constant": constant(RAMP),
    "cosine": cosine(RAMP, 3e-5),
    "linear": linear(RAMP, 3e-5),
    "wsd": wsd(RAMP, 3e-5, 800),
    "wsd exponential": wsd(RAMP, 3e-5, 800, "exponential"),
    "wsd sqrt": wsd(RAMP, 3e-5, 800, "sqrt"),
    "step decay": step_decay(RAMP, {500: 1e-4, 800: 3e-5}),
}


@pytest.mark.parametrize("name", EVERY)
def test_warm_up_and_length(name: str) -> None:
    lr = EVERY[name]
    assert lr.shape == (1000,)
    assert lr[:100].tolist() == np.linspace(0, 3e-4, 100).tolist()
    assert lr[100] == pytest.approx(3e-4)
    assert np.all(np.diff(lr[100:]) <= 0)
    assert 3e-5 <= lr[-1] <= 3e-4


def test_half_way() -> None:
    middle = 550
    assert EVERY["cosine"][middle] == pytest.approx((3e-4 + 3e-5) / 2)
    assert EVERY["linear"][middle] == pytest.approx((3e-4 + 3e-5) / 2)
    assert EVERY["wsd"][900] == pytest.approx((3e-4 + 3e-5) / 2)
    assert EVERY["wsd exponential"][900] == pytest.approx(np.sqrt(3e-4 * 3e-5))
    assert EVERY["wsd sqrt"][850] == pytest.approx(3e-4 - 0.5 * (3e-4 - 3e-5))
    assert EVERY["wsd"][799] == 3e-4
    assert EVERY["step decay"][[499, 500, 799, 800]].tolist() == [3e-4, 1e-4, 1e-4, 3e-5]


@given(steps=st.integers(2, 400), warmup=st.integers(0, 400), share=st.floats(0, 1))
def test_the_end_is_one_step_behind_the_last(steps: int, warmup: int, share: float) -> None:
    warmup = min(warmup, steps - 1)
    ramp = Ramp(steps, 1.0, warmup)
    start = warmup + int(share * (steps - 1 - warmup))
    lr = wsd(ramp, 0.1, start)
    assert lr.size == steps
    assert lr[-1] - 0.9 / (steps - start) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Ramp(0, 1.0), "Expected at least one step"),
        (lambda: Ramp(10, 1.0, 11), "Expected a warm-up of 0 to 10 steps, got 11"),
        (lambda: Ramp(10, float("nan")), "Expected a positive peak rate"),
        (lambda: wsd(RAMP, 0.0, 50), "Expected a step from 100"),
        (lambda: wsd(RAMP, 0.0, 1000), "Expected a step from 100"),
        (lambda: wsd(RAMP, 0.0, 800, "exponential"), "Expected a positive end rate"),
        (lambda: wsd(RAMP, 0.0, 800, "square"), "Expected one of linear, exponential, sqrt, got 'square'"),
        (lambda: cosine(RAMP, -1.0), "Expected a rate of 0 or more"),
        (lambda: step_decay(RAMP, {20: 1e-5}), "Expected a step from 100"),
    ],
)
def test_what_is_refused(call: Callable[[], Array | Ramp], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
