"""Lengths: a log-normal by two of its figures."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.traffic.lengths import LogNormal, taken


@given(st.floats(1.0, 1e5), st.floats(1.0, 30.0))
def test_two_figures_give_one_distribution(p50: float, ratio: float) -> None:
    by_tail = LogNormal.of(p50=p50, p99=p50 * ratio)
    mean = p50 * np.exp(by_tail.sigma**2 / 2)
    assert LogNormal.of(p50=p50, mean=mean).sigma == pytest.approx(by_tail.sigma, abs=1e-6)
    by_mean = LogNormal.of(mean=mean, p99=p50 * ratio)
    if by_tail.sigma < 2.3:  # the smaller of two roots
        assert by_mean.sigma == pytest.approx(by_tail.sigma, abs=1e-4)


def test_draws_have_the_figures() -> None:
    tokens = LogNormal.of(p50=1000, p99=8000, most=20_000).draw(200_000, np.random.default_rng(0))
    assert np.percentile(tokens, [50, 99]) == pytest.approx([1000, 8000], rel=0.03)
    assert (tokens.min() >= 1, tokens.max()) == (True, 20_000)


def test_one_figure_is_every_request() -> None:
    assert LogNormal.of(p50=256).draw(5, np.random.default_rng(0)).tolist() == [256] * 5


@pytest.mark.parametrize(
    "bad",
    [{}, {"p99": 5.0}, {"p50": 5.0, "p99": 4.0}, {"p50": 5.0, "mean": 4.0}, {"p50": 1.0, "p99": 2.0, "mean": 3.0},
     {"p50": 0.0}, {"mean": float("nan")}, {"mean": 1.0, "p99": 1e6}],
)  # fmt: skip
def test_what_no_log_normal_has_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        LogNormal.of(**bad)


def test_rows_of_a_trace_start_over() -> None:
    assert taken(np.arange(3), 7).tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert set(taken(np.arange(3), 100, np.random.default_rng(0)).tolist()) == {0, 1, 2}
