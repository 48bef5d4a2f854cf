"""Kaplan's joint law: its limits of one variable, its allocation, and its constants found again."""

import numpy as np
import pytest
from tests.forecast.laws import ladders

from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.laws.kaplan import FORM

PUBLISHED = ladders.constants("kaplan-joint")
LADDER = ladders.mesh(N=np.geomspace(1e6, 1e9, 6), D=np.geomspace(2e7, 2e10, 6))


def test_formula_and_derivatives() -> None:
    ladders.assert_formula_and_slopes(FORM, LADDER, PUBLISHED)


def test_limits_of_one_variable() -> None:
    theta = FORM.internal(PUBLISHED)
    plenty = {"N": np.array([1e9, 1e10]), "D": np.array([1e40, 1e40])}
    assert np.exp(FORM.log_loss(theta, plenty)) == pytest.approx((6.4e13 / plenty["N"]) ** 0.076)
    large = {"N": np.array([1e60]), "D": np.array([1e10])}
    assert np.exp(FORM.log_loss(theta, large)) == pytest.approx((1.8e13 / 1e10) ** 0.103, rel=1e-6)


def test_its_optimum_grows_with_the_exponent_of_its_bracket() -> None:
    theta = FORM.internal(PUBLISHED)
    size, _ = FORM.optimum(theta, np.array([1e20, 1e24]))
    slope = np.log(size[1] / size[0]) / np.log(1e4)
    assert slope == pytest.approx(1 / (1 + 0.076 / 0.103))


def test_constants_are_found_again() -> None:
    found = fit(ladders.observed(FORM, LADDER, PUBLISHED), FORM)
    assert found.constants == pytest.approx(PUBLISHED, rel=1e-4)
