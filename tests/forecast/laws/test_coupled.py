"""The coupled form: Chinchilla at gamma = 1, and truths of other gammas found again."""

import numpy as np
import pytest
from tests.forecast.laws import ladders

from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.objective import LOGLS
from ridgeline.forecast.laws import chinchilla
from ridgeline.forecast.laws.coupled import FORM

PUBLISHED = ladders.constants("busbridge")
LADDER = ladders.mesh(N=np.geomspace(3e7, 3e9, 7), D=np.geomspace(1e9, 3e11, 8))


def test_formula_and_derivatives() -> None:
    ladders.assert_formula_and_slopes(FORM, LADDER, PUBLISHED)


def test_gamma_of_one_is_chinchilla() -> None:
    constants = ladders.constants("law-h")
    inside = FORM.log_loss(FORM.internal({**constants, "gamma": 1.0}), LADDER)
    assert inside == pytest.approx(chinchilla.FORM.log_loss(chinchilla.FORM.internal(constants), LADDER))


@pytest.mark.parametrize("gamma", [0.35, 0.452, 0.8, 1.0, 1.5])
def test_the_outer_exponent_is_found(gamma: float) -> None:
    inner = {"alpha": 0.18 / gamma, "beta": 0.2 / gamma}
    size, data = (float(np.exp(np.mean(np.log(LADDER[name])))) for name in ("N", "D"))
    truth = {"E": 1.2, "A": size ** inner["alpha"], "B": 0.8 * data ** inner["beta"], **inner, "gamma": gamma}
    found = fit(ladders.observed(FORM, LADDER, truth), FORM, LOGLS)
    assert found.converged
    assert found.constants["gamma"] == pytest.approx(gamma, rel=1e-4)
    assert found.constants["E"] == pytest.approx(1.2, rel=1e-4)


def test_on_data_of_its_own_it_beats_chinchilla() -> None:
    points = ladders.observed(FORM, LADDER, PUBLISHED, noise=0.001)
    wide, plain = fit(points, FORM), fit(points, chinchilla.FORM)
    assert wide.value < 0.9 * plain.value
    assert wide.constants["gamma"] == pytest.approx(0.452, abs=0.1)
