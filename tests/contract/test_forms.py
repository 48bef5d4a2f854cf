"""The contract of a functional form: it runs over every `Form` found in ``forecast/laws``."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from ridgeline.core import catalog, plugins
from ridgeline.core.law import CONSTANTS
from ridgeline.core.quantity import derive, leaf
from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.optimum import optimum
from ridgeline.forecast.form import Array, Form
from ridgeline.forecast.points import Points

FORMS = plugins.load("ridgeline.forecast.laws", Form, kind="form")  # type: ignore[type-abstract]
RUNS = 240
# What a form may read: a column of runs that tells its terms apart.
DRAWN: dict[str, Callable[[np.random.Generator], Array]] = {
    "N": lambda r: np.exp(r.uniform(np.log(2e7), np.log(2e10), RUNS)),
    "D": lambda r: np.exp(r.uniform(np.log(5e8), np.log(2e12), RUNS)),
    "U": lambda r: np.exp(r.uniform(np.log(1e8), np.log(4e10), RUNS)),
    "C": lambda r: np.exp(r.uniform(np.log(1e18), np.log(1e22), RUNS)),
    "N_nv": lambda r: np.exp(r.uniform(np.log(2e7), np.log(2e9), RUNS)),
    "N_v": lambda r: np.exp(r.uniform(np.log(1e6), np.log(1e8), RUNS)),
    "loss": lambda r: r.uniform(1.5, 4.5, RUNS),
    "teacher_loss": lambda r: r.uniform(1.8, 2.6, RUNS),
    "supervised_loss": lambda r: r.uniform(2.0, 3.2, RUNS),
    "experts": lambda r: np.exp(r.uniform(0.0, np.log(512), RUNS)),
    "granularity": lambda r: np.exp(r.uniform(0.0, np.log(32), RUNS)),
    "sparsity": lambda r: r.uniform(0.0, 0.95, RUNS),
    "bits_w": lambda r: r.uniform(4.5, 16.0, RUNS),
    "bits_a": lambda r: r.uniform(4.5, 16.0, RUNS),
    "bits_kv": lambda r: r.uniform(4.5, 16.0, RUNS),
    "bits_post": lambda r: r.uniform(4.5, 16.0, RUNS),
}
# Constants for forms that have none in the catalog: what they look like, not anybody's fit.
LIKE: dict[str, dict[str, float]] = {
    "farseer": dict(zip(("h1", "s1", "alpha", "h2", "s2", "beta", "h3", "s3", "gamma"),
                        (-0.86, -0.154, 0.05, 7.0, -1.2, -0.17, -0.56, -0.1, 0.05), strict=True)),
    "overtraining": {"a": 500.0, "b": 500.0, "E": 1.7, "eta": 0.17},
    "downstream-sigmoid": {"floor": 0.26, "gain": 0.74, "steepness": 3.0, "midpoint": 2.8},
    "downstream-exponential": {"epsilon": 0.85, "k": 2.0, "gamma": 0.75},
}  # fmt: skip
UNITS = {"N": "param", "D": "token", "U": "token", "C": "FLOP", "loss": "nat", "N_nv": "param", "N_v": "param"}
BY_SLUG = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.slug)
IN_N_AND_D = pytest.mark.parametrize(
    "form",
    [f for f in FORMS if {"N", "D"} <= set(f.inputs) and f.predicts == "loss"],
    ids=lambda f: f.slug,
)


@cache
def columns(form: Form) -> dict[str, Array]:
    rng = np.random.default_rng(7)
    drawn = {name: draw(rng) for name, draw in DRAWN.items()}
    return {name: drawn[name] for name in form.inputs}


@cache
def published(form: Form) -> NDArray[np.float64]:
    """Constants of the form from the catalog, or like those that it would have, (P,)."""
    if form.slug in LIKE:
        return form.internal(LIKE[form.slug])
    for slug in catalog.laws():
        law = catalog.law(slug)
        if law.kind == form.kind and set(form.symbols) <= set(law.constants):
            theta = form.internal({symbol: float(law.constants[symbol].base) for symbol in form.symbols})
            if np.all(np.isfinite(form.log_loss(theta, columns(form)))):
                return theta
    pytest.fail(f"no constants of {form.slug}: put a law of kind {form.kind} into core/data/laws, or a row into LIKE")


def around(form: Form, count: int = 3) -> Array:
    """A few points inside the box near the published constants, (count, P)."""
    low, high = form.box
    theta = published(form) + 0.01 * np.random.default_rng(1).standard_normal((count, len(form.parameters)))
    inside: Array = np.clip(theta, low + 1e-3, high - 1e-3)
    return inside


@BY_SLUG
def test_it_says_what_it_is(form: Form) -> None:
    assert form.kind in CONSTANTS
    assert form.valid
    assert form.source.title
    assert form.source.where
    assert form.text
    for parameter in form.parameters:
        assert parameter.meaning
        assert parameter.low < parameter.high
    assert form in {form}


@BY_SLUG
def test_the_printed_formula_is_the_one_that_is_fitted(form: Form) -> None:
    if not form.formula:
        pytest.skip("its text alone is printed")
    theta, drawn = published(form), columns(form)
    units = UNITS if form.predicts == "loss" else {}
    inputs = {name: leaf(f"input.{name.lower()}", values, units.get(name, "1")) for name, values in drawn.items()}
    named = {p.symbol: leaf(f"c.{p.symbol.lower()}", float(v), p.unit) for p, v in zip(
        form.parameters, (float(p.natural(t)) for p, t in zip(form.parameters, theta, strict=True)), strict=True
    )}  # fmt: skip
    unit = {"loss": "nat", "batch": "token"}.get(form.predicts, "1")
    value = derive("loss", form.formula, unit, **inputs, **named).value
    assert np.allclose(value, np.exp(form.log_loss(theta, drawn)), rtol=1e-10)


@BY_SLUG
def test_derivatives_are_those_of_the_complex_step(form: Form) -> None:
    theta, drawn = around(form), columns(form)
    weights = np.random.default_rng(2).standard_normal((len(theta), RUNS))
    value, slopes = form.gradient(theta, drawn)
    plain, stepped = Form.gradient(form, theta, drawn)
    assert np.allclose(value, plain, rtol=1e-12, atol=1e-14)
    assert np.allclose(slopes, stepped, rtol=1e-9, atol=1e-11)
    bent, reference = form.curvature(theta, drawn, weights), Form.curvature(form, theta, drawn, weights)
    assert np.allclose(bent, reference, rtol=1e-4, atol=1e-5 * np.max(np.abs(reference)))
    assert np.allclose(bent, np.swapaxes(bent, -1, -2))


@BY_SLUG
def test_sums_of_the_expansion_are_those_of_its_derivatives(form: Form) -> None:
    theta, drawn = around(form), columns(form)
    slope, bend, major = np.random.default_rng(4).random((3, len(theta), RUNS))
    sums = form.expand(theta, drawn).sums(slope, bend, major)
    slopes = form.gradient(theta, drawn)[1]
    assert np.allclose(sums.gradient, np.einsum("bn,bnp->bp", slope, slopes))
    assert np.allclose(sums.majoriser, np.einsum("bn,bnp,bnq->bpq", major, slopes, slopes))
    expected = np.einsum("bn,bnp,bnq->bpq", bend, slopes, slopes) + form.curvature(theta, drawn, slope)
    assert np.allclose(sums.hessian, expected, rtol=1e-6, atol=1e-6 * np.max(np.abs(expected)))


@BY_SLUG
def test_points_without_noise_are_fitted_to_their_truth(form: Form) -> None:
    truth, drawn = published(form), columns(form)
    made = {**drawn, form.predicts: np.exp(form.log_loss(truth, drawn))}
    found = fit(Points(made), form)
    assert found.converged
    assert np.max(np.abs(found.residuals)) < 1e-6
    if np.all(np.isfinite(np.diag(found.covariance))):
        assert np.allclose(found.theta, truth, rtol=1e-3, atol=1e-3)


@IN_N_AND_D
def test_its_optimum_is_the_minimum_at_that_compute(form: Form) -> None:
    theta = published(form)
    others = {name: float(np.median(values)) for name, values in columns(form).items() if name not in ("N", "D")}
    for compute in (1e20, 1e23):
        n, d = optimum(form, compute, theta, others)
        if not np.isfinite(n):
            continue
        assert 6 * n * d == pytest.approx(compute)
        sizes = n * np.exp(np.linspace(-3, 3, 601))
        beside = {"N": sizes, "D": compute / (6 * sizes)} | {k: np.full(601, v) for k, v in others.items()}
        losses = form.log_loss(theta, beside)
        assert losses[300] <= np.min(losses) + 1e-8


@BY_SLUG
def test_starts_are_points_of_the_form(form: Form) -> None:
    drawn = columns(form)
    log_y = form.log_loss(published(form), drawn) + 0.01 * np.random.default_rng(5).standard_normal(RUNS)
    with np.errstate(all="ignore"):
        starts = form.starts(drawn, log_y, np.ones(RUNS))
    low, high = form.box
    assert starts.ndim == 2
    assert starts.shape[1] == len(form.parameters)
    assert len(starts) >= 1
    inside = np.clip(starts, low, high)
    assert np.all(np.isfinite(inside))
    assert np.all(np.isfinite(form.log_loss(inside, drawn)))


def test_slugs_are_unique() -> None:
    slugs = [form.slug for form in FORMS]
    assert {"chinchilla", "coupled", "kaplan"} <= set(slugs)
    assert len(set(slugs)) == len(slugs)
