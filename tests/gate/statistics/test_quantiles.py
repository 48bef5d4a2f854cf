"""The quantiles against those of the distributions they stand for."""

import math

import pytest
from scipy import stats

from ridgeline.gate.statistics.quantiles import normal, student

ALPHAS = (1e-6, 0.01, 0.05, 0.5, 0.8)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_normal(alpha: float) -> None:
    assert normal(alpha) == stats.norm.isf(alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("freedom", [1, 2.5, 30, 1e6])
def test_student(alpha: float, freedom: float) -> None:
    assert student(alpha, freedom) == pytest.approx(stats.t.isf(alpha, freedom), rel=1e-12)


def test_student_needs_a_degree_of_freedom() -> None:
    assert math.isnan(student(0.05, 0))
