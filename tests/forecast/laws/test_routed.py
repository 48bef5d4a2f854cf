"""Routed models: the three routers of the study, and where routing stops helping."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.forecast.laws import ladders

from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.objective import LOGLS
from ridgeline.forecast.laws.routed import FORM, effective_experts
from ridgeline.forecast.points import Points

PUBLISHED = ladders.constants("clark-2022-rl-r")
LADDER = ladders.mesh(N=np.geomspace(2e7, 1e9, 5), experts=2.0 ** np.arange(10))
REFIT = {
    "RL-R": ("clark-2022-rl-r", (-0.0835, -0.1279, 0.0117, 1.1143), (1.99, 425)),
    "S-Base": ("clark-2022-s-base", (-0.0838, -0.1234, 0.0104, 1.1216), (2.39, 218)),
    "Hash": ("clark-2022-hash", (-0.0887, -0.1464, 0.0134, 1.173), (4.99, 369)),
}


def test_formula_and_derivatives() -> None:
    ladders.assert_formula_and_slopes(FORM, LADDER, PUBLISHED)


def test_recovers_its_own_constants() -> None:
    found = fit(ladders.observed(FORM, LADDER, PUBLISHED), FORM)
    assert found.converged
    assert found.constants == pytest.approx(PUBLISHED, rel=1e-6)


def test_experts_saturate() -> None:
    found = effective_experts(np.array([1.0, 8.0, 1e9]), np.array(1.88), np.array(470.0))
    assert found[0] == pytest.approx(1.88)
    assert 8 < found[1] < 9
    assert found[2] == pytest.approx(470.0, rel=1e-4)


def test_beyond_the_cutoff_more_experts_hurt() -> None:
    theta = FORM.internal(PUBLISHED)
    size = FORM.cutoff(theta)
    assert size == pytest.approx(10 ** (0.126 / 0.012), rel=1e-12)
    for factor, sign in ((0.5, -1), (2.0, 1)):
        columns = {"N": np.full(2, size * factor), "experts": np.array([8.0, 64.0])}
        assert np.sign(np.diff(FORM.log_loss(theta, columns)))[0] == sign


@pytest.mark.data
@pytest.mark.parametrize("router", REFIT)
def test_the_routers_of_the_study(data_dir: Path, router: str) -> None:
    law, fitted, experts = REFIT[router]
    runs = pl.read_csv(data_dir / "scaling/clark_routed/final.csv").filter(
        (pl.col("k") == 1) & (pl.col("routing_frequency") == 0.5) & pl.col("router_type").is_in([router, "Dense"])
    )
    names = {"N": "dense_parameter_count", "experts": "num_experts", "loss": "loss_validation"}
    found = fit(Points({ours: runs[name].cast(pl.Float64).to_numpy() for ours, name in names.items()}), FORM, LOGLS)
    assert found.converged
    ours, paper = found.constants, ladders.constants(law)
    assert [ours[symbol] for symbol in "abcd"] == pytest.approx(fitted, abs=5.1e-5)
    assert (ours["E_start"], ours["E_max"]) == pytest.approx(experts, rel=3e-3)
    assert np.sqrt(np.mean(found.residuals**2)) / np.log(10) == pytest.approx(0.003, abs=5e-4)
    # beside the paper's: the size exponent agrees, the saturation is weakly identified
    assert ours["a"] == pytest.approx(paper["a"], rel=0.03)
    assert ours["E_max"] < 0.95 * paper["E_max"]


@pytest.mark.data
def test_far_corner_of_the_benchmark(data_dir: Path) -> None:
    names = {"N": "dense_parameter_count", "experts": "num_experts", "loss": "loss_validation"}
    folder = data_dir / "scaling/scalebench"
    train, test = (ladders.table(folder / f"moe_scaling_law_{part}.csv", **names) for part in ("train", "test"))
    median, largest, explained = ladders.errors(fit(Points(train), FORM).predict(test), test["loss"])
    assert median < 0.02
    assert largest < 0.035
    assert 0.6 < explained < 0.81  # short of the benchmark's own law: without a floor it is too low at 1.3e9
