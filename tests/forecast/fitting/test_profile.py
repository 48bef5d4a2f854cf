"""Profile likelihood: closed where the data bound a constant, open where they do not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtrit
from tests.forecast.fitting.test_fit import points_240
from tests.forecast.ladders import LAW_H, law_h, noisy

from ridgeline.core.errors import InputError
from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.objective import HUBER, LAD, LOGLS, LS, Objective
from ridgeline.forecast.fitting.profile import profile, profile_loss
from ridgeline.forecast.laws import chinchilla, coupled
from ridgeline.forecast.points import Points

FORM = chinchilla.FORM
FAR = {"N": np.array([1e11]), "D": np.array([1e13])}


@pytest.mark.data
def test_the_240_points_bound_every_constant(data_dir: Path) -> None:
    found = fit(points_240(data_dir), FORM)
    for symbol in FORM.symbols:
        one = profile(found, symbol)
        assert one.closed
        assert not one.beaten
        assert one.low < found.constants[symbol] < one.high
    assert (profile(found, "E").low, profile(found, "E").high) == pytest.approx((1.772, 1.871), abs=0.025)
    loss = profile_loss(found, FAR)
    assert loss.closed
    assert loss.low < float(found.predict(FAR)[0]) < loss.high


def one_token_count() -> Points:
    n = np.geomspace(1e7, 1e10, 30)
    d = np.full(30, 2e10)
    return Points({"N": n, "D": d, "loss": law_h(n, d) * np.exp(0.002 * np.random.default_rng(0).standard_normal(30))})


def test_one_token_count_leaves_the_data_term_open() -> None:
    found = fit(one_token_count(), FORM)
    assert not profile(found, "beta").closed
    assert not profile(found, "B").closed
    alpha = profile(found, "alpha")
    assert alpha.closed
    assert alpha.low < LAW_H["alpha"] < alpha.high


@pytest.mark.parametrize("which", [LOGLS, LS, HUBER, LAD], ids=lambda o: o.name)
def test_profiles_are_least_at_the_optimum_and_rise(which: Objective) -> None:
    found = fit(noisy(), FORM, which)
    one = profile(found, "alpha")
    nearest = int(np.argmin(np.abs(one.grid - found.constants["alpha"])))
    assert int(np.argmin(one.values)) == nearest
    inside = (one.grid > one.low) & (one.grid < one.high)
    assert np.all(one.values[inside] <= one.threshold)
    assert np.all(np.diff(one.values[:nearest]) < 0)


def test_least_squares_profile_of_a_well_known_constant_is_the_t_interval() -> None:
    found = fit(noisy(noise=1e-4), FORM, LOGLS)  # so little noise that the law is straight over the interval
    one = profile(found, "E")
    half = float(stdtrit(found.freedom, 0.975)) * found.standard_errors["E"]
    assert one.high - one.low == pytest.approx(2 * half, rel=0.05)
    slope = FORM.gradient(found.theta, FAR)[1][0]
    spread = float(np.sqrt(slope @ found.covariance @ slope))
    loss = profile_loss(found, FAR)
    assert np.log(loss.high / loss.low) == pytest.approx(2 * half / found.standard_errors["E"] * spread, rel=0.05)


def test_profile_of_the_target_covers() -> None:
    truth = float(law_h(FAR["N"], FAR["D"])[0])
    covered = 0
    for seed in range(20):
        one = profile_loss(fit(noisy(noise=0.004, seed=seed), FORM, LOGLS), FAR)
        covered += one.low <= truth <= one.high
    assert covered >= 16


def test_an_outer_exponent_of_one_is_inside_its_interval() -> None:
    one = profile(fit(noisy(noise=0.002, seed=1), coupled.FORM, LOGLS), "gamma")
    assert one.low < 1 < one.high


def test_a_better_optimum_than_the_fit_is_said() -> None:
    best = fit(noisy(), FORM, LOGLS)
    assert not profile(best, "E").beaten
    assert profile(replace(best, theta=best.theta + np.array([0.02, 0, 0, 0, 0])), "E").beaten


def test_an_unknown_symbol() -> None:
    with pytest.raises(InputError, match="gama"):
        profile(fit(noisy(), FORM), "gama")
