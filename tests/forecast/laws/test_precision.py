"""Precision: what the sign of the offset decides, what few bits cost, and its own constants back."""

import numpy as np
import pytest
from tests.forecast.laws import ladders

from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.laws import chinchilla
from ridgeline.forecast.laws.precision import FORM, KINDS

PUBLISHED = {symbol: value for symbol, value in ladders.constants("kumar-2024").items() if symbol in FORM.symbols}
LADDER = ladders.mesh(
    N=[3e7, 3e8, 2e9], D=[1e9, 6e9, 3e10], bits_w=[3, 4, 8], bits_a=[4, 6, 16], bits_kv=[3, 4, 16], bits_post=[3, 4, 16]
)


def test_formula_and_derivatives() -> None:
    ladders.assert_formula_and_slopes(FORM, LADDER, PUBLISHED)


def test_the_sign_of_the_offset_is_the_one_with_an_optimum_at_7_bits() -> None:
    assert FORM.best_bits(FORM.internal(PUBLISHED)) == pytest.approx(7.0, abs=0.011)
    other = PUBLISHED | {f"n_{kind}": -PUBLISHED[f"n_{kind}"] for kind in KINDS}
    assert FORM.best_bits(FORM.internal(other)) == 1.0  # the least that is searched: no optimum inside


def test_where_the_law_has_no_parameters_left() -> None:
    theta = FORM.internal(PUBLISHED)
    edge = PUBLISHED["n_a"] * PUBLISHED["g_a"]
    assert edge == pytest.approx(3.11, abs=0.005)
    above, below = (FORM.log_share(theta, [np.array(16.0), np.array(edge + d), np.array(16.0)]) for d in (0.1, -0.1))
    assert -4 < above < -2
    assert below < -20


def test_many_bits_are_chinchilla_and_few_cost_parameters() -> None:
    theta = FORM.internal(PUBLISHED)
    columns = ladders.mesh(N=[1e8, 1e9], D=[1e10], bits_w=[200], bits_a=[200], bits_kv=[200], bits_post=[200])
    plain = chinchilla.FORM.log_loss(theta[:5], columns)
    np.testing.assert_allclose(FORM.log_loss(theta, columns), plain, rtol=1e-12)
    n16, d16 = FORM.optimum_at(theta, np.array(1e21), (16.0, 16.0, 16.0))
    n4, d4 = FORM.optimum_at(theta, np.array(1e21), (4.0, 4.0, 4.0))
    assert n16 * d16 == pytest.approx(n4 * d4)
    assert n4 > n16  # what few bits take is bought back with size


def test_quantizing_after_training_hurts_more_with_more_tokens() -> None:
    theta = FORM.internal(PUBLISHED)
    columns = ladders.mesh(N=[1e8], D=[1e10, 1e13], bits_w=[16], bits_a=[16], bits_kv=[16], bits_post=[3, 200])
    loss = np.exp(FORM.log_loss(theta, columns)).reshape(2, 2)
    assert loss[1, 0] - loss[1, 1] == pytest.approx((loss[0, 0] - loss[0, 1]) * 1000 ** PUBLISHED["gamma_D"])


def test_recovers_its_own_constants() -> None:
    found = fit(ladders.observed(FORM, LADDER, PUBLISHED), FORM)
    assert found.converged
    assert found.constants == pytest.approx(PUBLISHED, rel=1e-4)
