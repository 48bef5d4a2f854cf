"""Constants held or tied: the same formula with fewer to fit."""

import numpy as np
import pytest
from tests.forecast.laws import ladders

from ridgeline.core.errors import InputError
from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.held import hold
from ridgeline.forecast.laws.chinchilla import FORM

TRUTH = {"A": 400.0, "B": 1500.0, "E": 1.7, "alpha": 0.35, "beta": 0.35}
LADDER = ladders.mesh(N=np.geomspace(1e7, 1e9, 5), D=np.geomspace(1e9, 1e11, 5))


def test_derivatives_of_a_held_and_tied_form() -> None:
    form = hold(FORM, {"E": 1.7}, {"beta": "alpha"})
    assert form.symbols == ("A", "B", "alpha")
    theta = form.internal(TRUTH)
    assert form.full(theta) == pytest.approx(FORM.internal(TRUTH))
    value, slopes = form.gradient(theta, LADDER)
    bends = form.curvature(theta, LADDER, np.ones(25))
    for p in range(3):
        step = np.eye(3)[p] * 1e-5
        (up, rise), (down, fall) = (form.gradient(theta + sign * step, LADDER) for sign in (1, -1))
        np.testing.assert_allclose(slopes[:, p], (up - down) / 2e-5, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(bends[p], (rise - fall).sum(axis=0) / 2e-5, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(value, form.log_loss(theta, LADDER), rtol=1e-14)


def test_a_tie_is_fitted() -> None:
    points = ladders.observed(FORM, LADDER, TRUTH)
    found = fit(points, hold(FORM, ties={"beta": "alpha"}))
    assert found.converged
    assert found.constants == pytest.approx({k: TRUTH[k] for k in ("A", "B", "E", "alpha")}, rel=1e-6)


def test_the_optimum_is_the_inner_one() -> None:
    form = hold(FORM, {"E": 1.7})
    assert form.optimum(form.internal(TRUTH), np.array(1e22)) == pytest.approx(
        FORM.optimum(FORM.internal(TRUTH), np.array(1e22))
    )


@pytest.mark.parametrize(
    ("fixed", "ties", "named"),
    [
        ({"gamma": 1.0}, {}, "gamma"),
        ({"alpha": 0.3}, {"beta": "alpha"}, "alpha"),
        (TRUTH, {}, "none"),
    ],
)
def test_refusals(fixed: dict[str, float], ties: dict[str, str], named: str) -> None:
    with pytest.raises(InputError, match=named):
        hold(FORM, fixed, ties)
