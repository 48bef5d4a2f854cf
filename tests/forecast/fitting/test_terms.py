"""Sums of exponentials: the design, and derivatives that are those of the complex step."""

from dataclasses import dataclass

import numpy as np

from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.terms import SumOfTerms, stack
from ridgeline.forecast.form import Array, Columns, Form, Parameter

X = {"N": np.array([1e7, 1e8, 1e9])}


@dataclass(frozen=True)
class Shared(SumOfTerms):
    """exp(a - c ln N) + exp(b - c ln N) + exp(a): constants that stand in several terms."""

    def design(self, columns: Columns) -> Array:
        """See `SumOfTerms`."""
        size = np.log(columns["N"])
        return stack(3, {0: 1, 2: -size}, {1: 1, 2: -size}, {0: 1})

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """See `Form`."""
        return np.zeros((1, 3))


FORM = Shared(
    slug="shared",
    title="Shared",
    kind="parametric",
    inputs=("N",),
    parameters=tuple(Parameter(symbol, False, -9.0, 9.0, "a constant") for symbol in "abc"),
    formula="",
    text="",
    valid="",
    source=Source("a test"),
)


def test_stack_puts_each_value_in_its_place() -> None:
    found = stack(3, {0: 1, 2: np.array([5.0, 6.0])}, {1: 2})
    assert found.tolist() == [[[1, 0, 5], [1, 0, 6]], [[0, 2, 0], [0, 2, 0]]]


def test_value_and_derivatives_of_constants_that_stand_in_several_terms() -> None:
    theta = np.array([[0.5, 2.0, 0.1], [1.0, -1.0, 0.3]])
    size = np.log(X["N"])
    expected = np.log(
        (np.exp(theta[:, :1]) + np.exp(theta[:, 1:2])) * np.exp(-theta[:, 2:] * size) + np.exp(theta[:, :1])
    )
    value, slopes = FORM.gradient(theta, X)
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_allclose(slopes, Form.gradient(FORM, theta, X)[1], rtol=1e-12)
    weights = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]])
    exact, stepped = FORM.curvature(theta, X, weights), Form.curvature(FORM, theta, X, weights)
    np.testing.assert_allclose(exact, stepped, rtol=1e-5, atol=1e-5)
