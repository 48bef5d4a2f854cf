"""A fit: both published optima of the 240 points, its basins, its errors, and what it refuses."""

import csv
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.forecast.ladders import LAW_H, law_h, noisy

from ridgeline.arithmetic import laws
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import given
from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.objective import HUBER, LAD, LOGLS, LS, OBJECTIVES, Objective, objective
from ridgeline.forecast.form import Form
from ridgeline.forecast.laws import chinchilla, coupled
from ridgeline.forecast.points import Points

FORM = chinchilla.FORM


@cache
def points_240(folder: Path) -> Points:
    with (folder / "scaling/chinchilla_epoch/points.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["excluded_in_paper"] == "False"]
    return Points({name: np.array([float(row[name]) for row in rows]) for name in ("N", "D", "C", "loss")})


@pytest.mark.data
def test_huber_optimum_of_the_240_points(data_dir: Path) -> None:
    found = fit(points_240(data_dir), FORM)
    expected = {"A": 477.826, "B": 2143.417, "E": 1.81722, "alpha": 0.34731, "beta": 0.36717}
    assert found.constants == pytest.approx(expected, rel=1e-5)
    assert found.value == pytest.approx(0.0010182740, rel=1e-7)
    assert found.converged
    assert found.at_bound == ()
    assert found.standard_errors["E"] == pytest.approx(0.0252, rel=0.15)  # what 4,000 resamples spread


@pytest.mark.data
def test_lad_optimum_of_the_240_points(data_dir: Path) -> None:
    found = fit(points_240(data_dir), FORM, LAD)
    expected = {"A": 482.0053, "B": 2085.432, "E": 1.816864, "alpha": 0.347813, "beta": 0.365854}
    assert found.constants == pytest.approx(expected, rel=2e-6)
    assert found.value == pytest.approx(1.12949466, abs=1e-8)
    assert np.sort(np.abs(found.residuals))[4] < 1e-7  # as many runs as constants are met exactly


@pytest.mark.data
def test_the_published_constants_are_no_huber_optimum(data_dir: Path) -> None:
    points = points_240(data_dir)
    found = fit(points, FORM)
    printed = FORM.internal({"A": 482.01, "B": 2085.43, "E": 1.8172, "alpha": 0.3478, "beta": 0.3658})
    there = HUBER.total(found.log_y, FORM.log_loss(printed, found.columns), found.weights)
    assert there > found.value * (1 + 1e-4)


@pytest.mark.parametrize("which", list(OBJECTIVES.values()), ids=lambda o: o.name)
@pytest.mark.parametrize("form", [chinchilla.FORM, coupled.FORM], ids=lambda f: f.slug)
def test_truth_comes_back_without_noise(which: Objective, form: Form) -> None:
    found = fit(noisy(noise=0.0), form, which)
    assert found.converged
    assert np.abs(found.residuals).max() < 1e-7
    assert found.constants["E"] == pytest.approx(LAW_H["E"], rel=1e-4)
    assert found.constants["alpha"] == pytest.approx(LAW_H["alpha"], rel=1e-4)


def test_weights_act_as_repeated_runs() -> None:
    points = noisy(seed=2)
    twice = points.take(np.concatenate([np.arange(len(points)), np.arange(10)]))
    weights = np.ones(len(points))
    weights[:10] = 2
    one, other = fit(points, FORM, weights=weights), fit(twice, FORM)
    assert one.value == pytest.approx(other.value, rel=1e-8)
    assert one.theta == pytest.approx(other.theta, rel=1e-5)
    none = fit(points, FORM, weights=np.where(np.arange(len(points)) < 4, 0.0, 1.0))
    assert none.value == pytest.approx(fit(points.take(np.arange(4, len(points))), FORM).value, rel=1e-8)


def test_every_basin_is_kept_and_the_best_one_leads() -> None:
    points = noisy(noise=0.05, seed=5)
    wide = fit(points, coupled.FORM, LOGLS)
    assert wide.value == wide.basins[0].value
    assert [basin.value for basin in wide.basins] == sorted(basin.value for basin in wide.basins)
    alone = fit(points, coupled.FORM, LOGLS, starts=np.append(fit(points, FORM, LOGLS).theta, 1.0)[None])
    assert wide.value <= alone.value * (1 + 1e-9)
    assert wide.value <= fit(points, FORM, LOGLS).value  # a nested law is never better


def test_a_floor_below_zero_is_named() -> None:
    n, d = noisy()["N"], noisy()["D"]
    found = fit(Points({"N": n, "D": d, "loss": 50.0 / n**0.1 + 80.0 / d**0.15 - 0.3}), FORM)
    assert found.at_bound == ("E",)
    assert "E on its bound" in found.basins[0].why
    assert found.standard_errors["E"] == 0.0


def test_standard_errors_are_what_repeated_ladders_spread() -> None:
    found = [fit(noisy(noise=0.004, seed=seed), FORM, LOGLS) for seed in range(60)]
    for symbol in ("E", "alpha", "beta"):
        spread = np.std([f.constants[symbol] for f in found])
        said = np.median([f.standard_errors[symbol] for f in found])
        assert said == pytest.approx(spread, rel=0.35)
    assert found[0].scatter == pytest.approx(0.004, rel=0.3)
    matrix = found[0].correlations
    assert np.diag(matrix) == pytest.approx(np.ones(5))
    assert matrix[0, 3] > 0.99  # A with alpha


@pytest.mark.parametrize("which", [HUBER, LAD, LS], ids=lambda o: o.name)
def test_robust_errors_are_near_the_plain_ones_under_normal_noise(which: Objective) -> None:
    ratios = []
    for seed in range(8):
        points = noisy(noise=0.004, seed=seed)
        ratios.append(fit(points, FORM, which).standard_errors["E"] / fit(points, FORM, LOGLS).standard_errors["E"])
    assert 0.6 < np.median(ratios) < 2.0


def test_one_token_count_leaves_its_term_open() -> None:
    n = np.geomspace(1e7, 1e10, 30)
    d = np.full(30, 2e10)
    loss = law_h(n, d) * np.exp(0.002 * np.random.default_rng(0).standard_normal(30))
    found = fit(Points({"N": n, "D": d, "loss": loss}), FORM)
    assert found.converged
    errors = found.standard_errors
    assert [symbol for symbol in ("B", "E", "beta") if np.isfinite(errors[symbol]) and errors[symbol] > 0] == []
    assert np.isfinite(errors["alpha"])


def test_as_a_law_of_the_arithmetic_room() -> None:
    found = fit(noisy(), FORM)
    law = found.law("ours")
    best = laws.optimum(law, given("compute", 1e23, "FLOP"), "best")
    n, d = FORM.optimum(found.theta, np.asarray(1e23))
    assert best.params.value == pytest.approx(float(n))
    assert best.loss is not None
    assert best.loss.value == pytest.approx(float(found.predict({"N": n[None], "D": d[None]})[0]))
    assert law.fitted["params"][1].value == pytest.approx(noisy()["N"].max())
    assert law.params == "total"


def test_what_it_refuses() -> None:
    good = noisy()
    with pytest.raises(InputError, match="at least 5 distinct runs for Chinchilla, got 4"):
        fit(good.take(np.array([0, 1, 2, 3, 3, 3, 3])), FORM)
    with pytest.raises(InputError, match="distinct runs"):
        fit(good.take(np.zeros(9, np.int64)), FORM)
    for column, value in (("loss", np.nan), ("loss", -1.0), ("loss", np.inf), ("N", np.nan)):
        columns = {name: values.copy() for name, values in good.columns.items()}
        columns[column][3] = value
        with pytest.raises(InputError, match="run 4"):
            fit(Points(columns), FORM)
    with pytest.raises(InputError, match="weights"):
        fit(good, FORM, weights=np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="a column D"):
        fit(Points({"N": good["N"], "loss": good["loss"]}), FORM)


def test_read_only_columns_are_fitted() -> None:
    points = noisy()
    for values in points.columns.values():
        values.setflags(write=False)
    assert fit(points, FORM, objective("huber", delta=0.01)).converged
