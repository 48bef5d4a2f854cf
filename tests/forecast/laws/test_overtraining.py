"""Over-training law: Chinchilla's with tied exponents, and one optimal ratio at every compute."""

import numpy as np
import pytest
from tests.forecast.laws import ladders

from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.laws import chinchilla
from ridgeline.forecast.laws.overtraining import FORM

TRUTH = {"a": 140.0, "b": 190.0, "E": 1.8, "eta": 0.12}
LADDER = ladders.mesh(N=np.geomspace(1e7, 1e9, 5), D=np.geomspace(1e9, 1e11, 5))


def test_formula_and_derivatives() -> None:
    ladders.assert_formula_and_slopes(FORM, LADDER, TRUTH)


def test_is_chinchilla_with_tied_exponents() -> None:
    eta = TRUTH["eta"]
    same = {"A": TRUTH["a"] / 6**eta, "B": TRUTH["b"] / 6**eta, "E": TRUTH["E"], "alpha": 2 * eta, "beta": 2 * eta}
    theirs = chinchilla.FORM.log_loss(chinchilla.FORM.internal(same), LADDER)
    np.testing.assert_allclose(FORM.log_loss(FORM.internal(TRUTH), LADDER), theirs, rtol=1e-13)
    ours = FORM.optimum(FORM.internal(TRUTH), np.array([1e20, 1e24]))
    np.testing.assert_allclose(ours, chinchilla.FORM.optimum(chinchilla.FORM.internal(same), np.array([1e20, 1e24])))


def test_optimum_is_a_minimum_on_the_line() -> None:
    theta = FORM.internal(TRUTH)
    n, d = FORM.optimum(theta, np.array(1e22))
    assert 6 * n * d == pytest.approx(1e22)
    around = n * np.array([0.8, 1.0, 1.25])
    loss = FORM.log_loss(theta, {"N": around, "D": 1e22 / (6 * around)})
    assert np.argmin(loss) == 1
    assert loss[0] == pytest.approx(loss[2], abs=1e-3)


def test_recovers_its_own_constants() -> None:
    found = fit(ladders.observed(FORM, LADDER, TRUTH), FORM)
    assert found.converged
    assert found.constants == pytest.approx(TRUTH, rel=1e-6)
