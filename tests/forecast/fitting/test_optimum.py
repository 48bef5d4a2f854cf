"""The compute-optimal N and D: closed forms, the search, and what has none."""

import numpy as np
import pytest
from tests.forecast.ladders import LAW_H, noisy

from ridgeline.core.errors import InputError
from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.optimum import optimum
from ridgeline.forecast.form import Array, Form
from ridgeline.forecast.laws import chinchilla, coupled
from ridgeline.forecast.laws.chinchilla import Chinchilla

FORM = chinchilla.FORM
THETA = FORM.internal(LAW_H)


class Searched(Chinchilla):
    """Chinchilla without its closed form."""

    def optimum(self, theta: Array, compute: Array) -> None:  # type: ignore[override]
        return None


def searched(form: Form = FORM) -> Form:
    return Searched(
        form.slug, form.title, form.kind, form.inputs, form.parameters, form.formula, form.text, form.valid, form.source
    )


@pytest.mark.parametrize(
    ("compute", "n", "ratio"),
    [(1e19, 2.280e8, 32.1), (1e21, 1.824e9, 50.1), (1e23, 1.460e10, 78.2), (1e25, 1.168e11, 122.1)],
)
def test_worked_optima(compute: float, n: float, ratio: float) -> None:
    size, tokens = optimum(FORM, compute, THETA)
    assert float(size) == pytest.approx(n, rel=5e-4)
    assert float(tokens / size) == pytest.approx(ratio, rel=1e-3)


def test_the_search_finds_the_closed_form() -> None:
    for compute in (1e19, 1e22, 1e25):
        expected, _ = optimum(FORM, compute, THETA)
        size, tokens = optimum(searched(), compute, THETA)
        assert size == pytest.approx(expected, rel=1e-5)
        assert 6 * size * tokens == pytest.approx(compute)


def test_many_constants_and_many_computes() -> None:
    thetas = np.stack([THETA, THETA + np.array([0.1, 0, 0, 0.01, 0])])
    size, _ = optimum(searched(), 1e23, thetas)
    expected, _ = optimum(FORM, 1e23, thetas)
    assert size == pytest.approx(expected, rel=1e-5)
    computes = np.array([1e19, 1e21, 1e23])
    found = fit(noisy(), FORM)
    sizes, tokens = optimum(found, computes)
    assert sizes.shape == tokens.shape == (3,)
    slopes = np.diff(np.log(sizes)) / np.diff(np.log(computes))
    beta, alpha = found.constants["beta"], found.constants["alpha"]
    assert slopes == pytest.approx(beta / (alpha + beta))


def test_a_coupled_law_has_the_optimum_of_its_bracket() -> None:
    theta = coupled.FORM.internal({**LAW_H, "gamma": 0.5})
    assert optimum(coupled.FORM, 1e23, theta)[0] == pytest.approx(optimum(FORM, 1e23, THETA)[0])


def test_no_minimum_is_nan_and_bad_input_is_refused() -> None:
    flat = THETA.copy()
    flat[0] = -13.0  # no capacity term: ever smaller models are better
    assert np.isnan(optimum(searched(), 1e21, flat)[0])
    with pytest.raises(InputError, match="positive compute"):
        optimum(FORM, 0.0, THETA)
