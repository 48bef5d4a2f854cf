"""What a form gives for free: derivatives by complex steps, bounds and the scales of its constants."""

import numpy as np
import pytest
from tests.forecast.ladders import LAW_H, noisy

from ridgeline.forecast.form import Form, Parameter
from ridgeline.forecast.laws import chinchilla

FORM = chinchilla.FORM
COLUMNS = {name: noisy()[name] for name in ("N", "D")}


def test_natural_and_internal_are_inverse() -> None:
    theta = FORM.internal(LAW_H)
    assert {symbol: float(value) for symbol, value in FORM.natural(theta).items()} == pytest.approx(dict(LAW_H))
    assert theta[0] == pytest.approx(np.log(LAW_H["A"]))
    assert theta[3] == LAW_H["alpha"]


def test_a_bound_of_zero_of_a_logarithm_is_no_bound() -> None:
    low, high = FORM.box
    assert np.all(low < high)
    assert np.exp(low[2]) == pytest.approx(1e-6)
    assert Parameter("x", True, 1.0, 2.0, "a test").internal(2.0) == pytest.approx(np.log(2))


def test_default_gradient_is_exact() -> None:
    theta = FORM.internal(LAW_H)
    _, slopes = Form.gradient(FORM, theta, COLUMNS)
    loss = np.exp(FORM.log_loss(theta, COLUMNS))
    assert slopes[:, 2] == pytest.approx(LAW_H["E"] / loss, rel=1e-14)
    assert slopes[:, 0] == pytest.approx(LAW_H["A"] / COLUMNS["N"] ** LAW_H["alpha"] / loss, rel=1e-13)


def test_default_curvature_of_a_batch() -> None:
    theta = np.stack([FORM.internal(LAW_H), FORM.internal({**LAW_H, "E": 1.2})])
    weights = np.random.default_rng(0).random((2, len(COLUMNS["N"])))
    found = Form.curvature(FORM, theta, COLUMNS, weights)
    assert found.shape == (2, 5, 5)
    for row in range(2):
        assert found[row] == pytest.approx(Form.curvature(FORM, theta[row], COLUMNS, weights[row]), rel=1e-6, abs=1e-6)
