"""Ladders for the tests of forms: every combination of columns, with losses of known constants."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from ridgeline.core import catalog
from ridgeline.core.quantity import Quantity, derive, given, leaf
from ridgeline.forecast.form import Array, Form
from ridgeline.forecast.points import Points

UNITS = {"N": "param", "D": "token", "U": "token"}


def constants(law: str) -> dict[str, float]:
    """The published constants of a law."""
    return {symbol: float(item.base) for symbol, item in catalog.law(law).constants.items()}


def mesh(**axes: object) -> dict[str, Array]:
    """Every combination of the axes, as columns."""
    found = np.meshgrid(*(np.asarray(axis, float) for axis in axes.values()), indexing="ij")
    return {name: column.ravel() for name, column in zip(axes, found, strict=True)}


def observed(form: Form, columns: Mapping[str, Array], truth: Mapping[str, float], noise: float = 0.0) -> Points:
    """Runs whose losses the form gives with these constants, with log-normal noise."""
    loss = np.exp(form.log_loss(form.internal(truth), columns))
    draw = np.random.default_rng(20).normal(size=len(loss))
    return Points({**columns, "loss": loss * np.exp(noise * draw)})


def through_formula(form: Form, columns: Mapping[str, Array], truth: Mapping[str, float]) -> Array:
    """The loss by the form's own expression."""
    inputs: dict[str, Quantity] = {name: leaf(name, columns[name], UNITS.get(name, "1")) for name in form.inputs}
    inputs |= {symbol: given(symbol, truth[symbol], "1") for symbol in form.symbols}
    value = derive("loss", form.formula, "nat", **inputs).value
    assert isinstance(value, np.ndarray)
    return value


def assert_formula_and_slopes(form: Form, columns: Mapping[str, Array], truth: Mapping[str, float]) -> None:
    """The printed formula is what is fitted, and both derivatives are those of differences."""
    theta = form.internal(truth)
    value, slopes = form.gradient(theta, columns)
    np.testing.assert_allclose(np.exp(value), through_formula(form, columns, truth), rtol=1e-12)
    weights = np.random.default_rng(3).normal(size=len(value))
    bends = form.curvature(theta, columns, weights)
    for p in range(len(theta)):
        step = np.zeros(len(theta))
        step[p] = 1e-5 * max(1.0, abs(theta[p]))
        (up, rise), (down, fall) = (form.gradient(theta + sign * step, columns) for sign in (1, -1))
        width = 2 * step[p]
        np.testing.assert_allclose(slopes[:, p], (up - down) / width, rtol=1e-5, atol=1e-7)
        expected = weights @ (rise - fall) / width
        np.testing.assert_allclose(bends[p], expected, rtol=1e-3, atol=1e-4 * (1 + np.abs(expected).max()))


def table(path: Path, **names: str) -> dict[str, Array]:
    """Columns of a CSV file under our names."""
    frame = pl.read_csv(path)
    return {ours: frame[theirs].cast(pl.Float64).to_numpy() for ours, theirs in names.items()}


def errors(predicted: Array, loss: Array) -> tuple[float, float, float]:
    """Median and largest relative error, and R2."""
    relative = np.abs(predicted / loss - 1)
    explained = 1 - np.sum((predicted - loss) ** 2) / np.sum((loss - loss.mean()) ** 2)
    return float(np.median(relative)), float(relative.max()), float(explained)
