"""Data-constrained law: the published objective, the basin below it, the open profile, and the far corner."""

from pathlib import Path

import numpy as np
import pytest
from tests.forecast.laws import ladders

from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.held import hold
from ridgeline.forecast.fitting.objective import HUBER
from ridgeline.forecast.laws import chinchilla
from ridgeline.forecast.laws.data_constrained import FORM, effective_tokens
from ridgeline.forecast.points import Points

PUBLISHED = ladders.constants("muennighoff-2023")
EXACT = PUBLISHED | {"A": np.exp(6.255414), "B": np.exp(7.3049974), "E": np.exp(0.6254804)}
FIXED = {symbol: EXACT[symbol] for symbol in ("A", "B", "E", "alpha", "beta")}


def ladder() -> dict[str, np.ndarray]:
    columns = ladders.mesh(N=np.geomspace(1e7, 4e9, 6), D=np.geomspace(1e9, 1e11, 5), epochs=[0.5, 1, 4, 16, 64])
    return {"N": columns["N"], "D": columns["D"], "U": columns["D"] / columns["epochs"]}


def test_formula_and_derivatives() -> None:
    ladders.assert_formula_and_slopes(FORM, ladder(), PUBLISHED)


@pytest.mark.parametrize(
    ("params", "tokens", "loss"), [(6.34e9, 242e9, 2.2256440889984477), (8.67e9, 178e9, 2.2269634075087867)]
)
def test_values_published_for_25e9_unique_tokens(params: float, tokens: float, loss: float) -> None:
    columns = {"N": np.array([params]), "D": np.array([tokens]), "U": np.array([25e9])}
    assert np.exp(FORM.log_loss(FORM.internal(EXACT), columns))[0] == pytest.approx(loss, rel=1e-14)


def test_one_epoch_of_enough_data_is_chinchilla() -> None:
    columns = {"N": np.array([1e8]), "D": np.array([1e10]), "U": np.array([1e10])}
    theta = FORM.internal(EXACT)
    assert FORM.log_loss(theta, columns) == pytest.approx(chinchilla.FORM.log_loss(theta[:5], columns), rel=1e-14)


def test_repeats_saturate() -> None:
    unique = np.full(4, 1e9)
    worth = effective_tokens(np.array([1e9, 4e9, 64e9, 1e13]), unique, np.array(15.4)) / unique
    assert worth[0] == 1
    assert 3.6 < worth[1] < 4
    assert worth[3] == pytest.approx(1 + 15.4, rel=1e-9)


def test_recovers_its_own_constants() -> None:
    found = fit(ladders.observed(FORM, ladder(), PUBLISHED), FORM)
    assert found.converged
    assert found.constants == pytest.approx(PUBLISHED, rel=1e-6)


@pytest.mark.data
def test_the_published_point_is_a_local_minimum_and_the_lower_basin_is_found(data_dir: Path) -> None:
    columns = ladders.table(data_dir / "scaling/datablations/points182.csv", N="N", D="D", U="U", loss="loss")
    points = Points(columns)
    at = FORM.log_loss(FORM.internal(EXACT), columns)
    value = HUBER.total(np.log(columns["loss"]), at, np.ones(182))
    assert value == pytest.approx(0.0158259, abs=5e-8)

    found = fit(points, hold(FORM, FIXED))
    assert found.converged
    assert found.constants == pytest.approx({"R_D": 95.37, "R_N": 1.706}, rel=5e-4)
    assert found.value == pytest.approx(0.015804662, abs=5e-10)
    others = [(found.form.natural(basin.theta), basin) for basin in found.basins]
    near = [basin for natural, basin in others if natural["R_D"] == pytest.approx(15.387756, rel=2e-3)]
    assert len(near) == 1  # the published one is among the basins, above the best
    assert near[0].converged
    assert near[0].value == pytest.approx(0.0158259, abs=5e-8)
    assert near[0].value > found.value


@pytest.mark.data
def test_repeats_have_no_upper_bound(data_dir: Path) -> None:
    columns = ladders.table(data_dir / "scaling/datablations/points182.csv", N="N", D="D", U="U", loss="loss")
    points = Points(columns)
    printed = {6.0: 0.01607, 10.0: 0.01591, 15.4: 0.01583, 30.0: 0.01582, 95.0: 0.01580, 1000.0: 0.01588}
    profile = {r_d: fit(points, hold(FORM, {**FIXED, "R_D": r_d})).value for r_d in printed}
    assert profile == pytest.approx(printed, abs=5.1e-6)
    best = min(profile.values())
    assert profile[6.0] / best > 1.015
    assert profile[1000.0] / best < 1.005  # sixty times more repeats cost half a percent: open above


@pytest.mark.data
def test_far_corner_of_the_benchmark(data_dir: Path) -> None:
    names = {"N": "params", "D": "tokens", "U": "unique_tokens", "loss": "loss"}
    folder = data_dir / "scaling/scalebench"
    train, test = (
        ladders.table(folder / f"data_constrained_scaling_law_{part}.csv", **names) for part in ("train", "test")
    )
    median, largest, explained = ladders.errors(fit(Points(train), FORM).predict(test), test["loss"])
    assert explained > 0.79  # what the benchmark's own law reaches on all data
    assert median < 0.05
    assert largest < 0.07
