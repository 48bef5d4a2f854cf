"""The joint law of dense and mixture-of-experts models: its table by experts, its optimum, its own constants back."""

from pathlib import Path

import numpy as np
import pytest
from tests.forecast.laws import ladders

from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.held import hold
from ridgeline.forecast.laws import chinchilla, routed
from ridgeline.forecast.laws.joint_moe import FORM
from ridgeline.forecast.points import Points

PUBLISHED = ladders.constants("ludziejewski-2025")
LADDER = ladders.mesh(N=np.geomspace(2e7, 2e9, 5), D=np.geomspace(1e9, 1e11, 4), experts=[1, 2, 4, 8, 16, 32])


def test_formula_and_derivatives() -> None:
    ladders.assert_formula_and_slopes(FORM, LADDER, PUBLISHED)


def test_the_dense_row_of_the_published_table() -> None:
    a, b, c, alpha, beta = FORM.reduced(FORM.internal(PUBLISHED), np.array(1.0))
    assert (np.exp(a), -alpha) == pytest.approx((30.4, -0.1817), rel=2e-3)
    assert (np.exp(b), -beta) == pytest.approx((53.8, -0.1964), rel=5e-3)
    assert np.exp(c) == pytest.approx(PUBLISHED["c"])


@pytest.mark.parametrize("experts", [1.0, 8.0])
def test_one_number_of_experts_is_chinchilla_with_its_optimum(experts: float) -> None:
    theta = FORM.internal(PUBLISHED)
    columns = ladders.mesh(N=[1e8, 1e9], D=[1e10, 1e11], experts=[experts])
    reduced = FORM.reduced(theta, np.array(experts))
    np.testing.assert_allclose(chinchilla.FORM.log_loss(reduced, columns), FORM.log_loss(theta, columns), rtol=1e-12)
    n, d = FORM.optimum_at(theta, np.array(1e21), np.array(experts))
    around = n * np.array([0.7, 1.0, 1.4])
    line = {"N": around, "D": 1e21 / (6 * around), "experts": np.full(3, experts)}
    assert 6 * n * d == pytest.approx(1e21)
    assert np.argmin(FORM.log_loss(theta, line)) == 1


def test_recovers_its_own_constants() -> None:
    found = fit(ladders.observed(FORM, LADDER, PUBLISHED), FORM)
    assert found.converged
    assert found.constants == pytest.approx(PUBLISHED, rel=1e-4)


def test_noise_leaves_the_saturation_open_and_the_loss_close() -> None:
    points = ladders.observed(FORM, LADDER, PUBLISHED, noise=0.003)
    found = fit(points, FORM)
    far = ladders.mesh(N=[7e9], D=[3e11], experts=[1, 8])
    truth = np.exp(FORM.log_loss(FORM.internal(PUBLISHED), far))
    assert found.predict(far) == pytest.approx(truth, rel=0.01)


@pytest.mark.data
def test_one_number_of_tokens_with_a_floor_beats_the_law_without(data_dir: Path) -> None:
    names = {"N": "dense_parameter_count", "experts": "num_experts", "loss": "loss_validation"}
    folder = data_dir / "scaling/scalebench"
    train, test = (ladders.table(folder / f"moe_scaling_law_{part}.csv", **names) for part in ("train", "test"))
    for part in (train, test):
        part["D"] = np.full(len(part["N"]), 130e9)
    one_budget = hold(FORM, {"b": 1e-6, "beta": -0.2, "omega": 0.0, "zeta": 0.0})  # the floor holds the data term
    found, other = fit(Points(train), one_budget), fit(Points(train), routed.FORM)
    median, largest, explained = ladders.errors(found.predict(test), test["loss"])
    assert found.converged
    assert found.value < other.value
    assert explained > ladders.errors(other.predict(test), test["loss"])[2] + 0.03
    assert median < 0.02
    assert largest < 0.03
