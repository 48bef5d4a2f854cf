"""Fine-grained experts: the published constants, Chinchilla at one granularity."""

import numpy as np
import pytest
from tests.forecast.laws import ladders

from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.laws import chinchilla
from ridgeline.forecast.laws.fine_grained_moe import FORM

PUBLISHED = ladders.constants("krajewski-2024")
LADDER = ladders.mesh(N=np.geomspace(1e8, 4e9, 5), D=np.geomspace(1e10, 1e11, 4), granularity=[1, 2, 4, 8, 16])


def test_formula_and_derivatives() -> None:
    ladders.assert_formula_and_slopes(FORM, LADDER, PUBLISHED)


def test_recovers_its_own_constants() -> None:
    found = fit(ladders.observed(FORM, LADDER, PUBLISHED), FORM)
    assert found.converged
    assert found.constants == pytest.approx(PUBLISHED, rel=1e-5)


def test_finer_experts_lower_the_loss_down_to_a_limit() -> None:
    theta = FORM.internal(PUBLISHED)
    columns = ladders.mesh(N=[1e9], D=[2e10], granularity=[1, 4, 16, 1e6])
    loss = np.exp(FORM.log_loss(theta, columns))
    assert list(loss) == sorted(loss, reverse=True)
    limit = PUBLISHED["c"] + PUBLISHED["a"] / 1e9 ** PUBLISHED["alpha"] + PUBLISHED["b"] / 2e10 ** PUBLISHED["beta"]
    assert loss[-1] == pytest.approx(limit, rel=1e-4)


@pytest.mark.parametrize("granularity", [1.0, 8.0])
def test_one_granularity_is_chinchilla_with_its_optimum(granularity: float) -> None:
    theta = FORM.internal(PUBLISHED)
    columns = ladders.mesh(N=[1e8, 1e9], D=[1e10, 1e11], granularity=[granularity])
    reduced = FORM.reduced(theta, np.array(granularity))
    np.testing.assert_allclose(chinchilla.FORM.log_loss(reduced, columns), FORM.log_loss(theta, columns), rtol=1e-13)
    n, d = FORM.optimum_at(theta, np.array(1e21), np.array(granularity))
    around = n * np.array([0.7, 1.0, 1.4])
    line = {"N": around, "D": 1e21 / (6 * around), "granularity": np.full(3, granularity)}
    assert 6 * n * d == pytest.approx(1e21)
    assert np.argmin(FORM.log_loss(theta, line)) == 1
