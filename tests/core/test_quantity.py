"""Quantities: the printed formula is the evaluated one, units are checked, derivations open."""

import math

import numpy as np
import pytest
from hypothesis import given as forall
from hypothesis import strategies as st

from ridgeline.core.errors import InputError
from ridgeline.core.formula import FormulaError
from ridgeline.core.quantity import Quantity, Source, derive, draws, given, leaf

SOURCE = Source("a paper", "table 1", "2026-11-29")
N, D = given("N", 70 * 10**9, "param"), given("D", 15 * 10**12, "token")


def test_leaf_kinds() -> None:
    assert given("chips", 1000, "chip").source == Source("given by the user", "the caller")
    assert leaf("peak", 989e12, "FLOP/s", "published", SOURCE).kind == "published"
    for kind in ("published", "measured"):
        with pytest.raises(FormulaError, match="no source"):
            leaf("peak", 989e12, "FLOP/s", kind)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "7", None, True, 1j])
def test_refused_leaves(value: object) -> None:
    with pytest.raises(InputError, match="finite number"):
        given("x", value, "1")


def test_conversion() -> None:
    time = given("time", 30, "day")
    assert time.base == 30 * 86400
    assert time.to("h") == 720
    assert time.to("day") == 30
    assert given("share", 40, "%").base == pytest.approx(0.4)
    with pytest.raises(FormulaError, match="not convertible"):
        time.to("B")


def test_derive() -> None:
    compute = derive("compute", "6*N*D", "FLOP", N=N, D=D)
    assert compute.value == 6 * 70 * 10**9 * 15 * 10**12
    assert isinstance(compute.value, int)
    assert (compute.kind, compute.formula, dict(compute.inputs)) == ("derived", "6*N*D", {"N": N, "D": D})


def test_mixed_units_meet_in_base_units() -> None:
    price, chips, time = given("price", 2.5, "USD/(chip*h)"), given("chips", 1000, "chip"), given("time", 30, "day")
    cost = derive("cost", "price*chips*time", "USD", price=price, chips=chips, time=time)
    assert cost.value == pytest.approx(1.8e6)
    energy = derive("energy", "power*time", "MWh", power=given("power", 700, "W"), time=time)
    assert energy.value == pytest.approx(0.504)


@pytest.mark.parametrize(
    ("formula", "unit", "message"),
    [
        ("6*N*D*x", "FLOP", "lacks"),
        ("6*N", "FLOP/token", "does not use"),
        ("6*N*D", "s", "was declared"),
        ("6*N*D", "FLOP/s", "was declared"),
        ("N + D", "FLOP", "cannot be combined"),
    ],
)
def test_wrong_formulas_are_our_bugs(formula: str, unit: str, message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        derive("wrong", formula, unit, N=N, D=D)


@pytest.mark.parametrize(
    ("formula", "value"), [("a/b", 0), ("a*exp(b)", 1e9), ("a**b", 1e6), ("log(b)*a", -1), ("sqrt(b)*a", -1)]
)
def test_undefined_results_are_bad_input(formula: str, value: float) -> None:
    with pytest.raises(InputError, match="Expected a finite rate"):
        derive("rate", formula, "1", a=given("a", 10.0, "1"), b=given("b", value, "1"))


def test_candidates() -> None:
    sizes = given("N", np.array([1, 2, 3]), "param")
    assert sizes.axis == "candidate"
    compute = derive("compute", "6*N*D", "FLOP", N=sizes, D=D)
    assert compute.axis == "candidate"
    one = compute.at(1, lambda name: f"{name}.chosen")
    assert (one.name, one.value, one.axis) == ("compute.chosen", 6 * 2 * 15e12, "")
    assert one.inputs["N"].name == "N.chosen"
    assert one.inputs["D"] is D


def test_integers_of_candidates_do_not_wrap() -> None:
    many = given("N", np.array([10**12, 10**13]), "param")
    assert np.all(np.asarray(derive("c", "6*N*D", "FLOP", N=many, D=D).value) == 6 * np.array([1e12, 1e13]) * 15e12)


def test_draws() -> None:
    rng = np.random.default_rng(0)
    mfu = draws("mfu", rng.normal(0.4, 0.02, 4000), "1", "assumed", SOURCE)
    rate = derive("rate", "mfu*peak", "FLOP/s", mfu=mfu, peak=given("peak", 1e15, "FLOP/s"))
    low, high = rate.interval() or (0.0, 0.0)
    assert low == pytest.approx(1e15 * (0.4 - 1.2816 * 0.02), rel=0.01)
    assert high == pytest.approx(1e15 * (0.4 + 1.2816 * 0.02), rel=0.01)
    assert N.interval() is None
    with pytest.raises(FormulaError, match="candidates and draws"):
        derive("both", "a*b", "1", a=mfu, b=given("b", np.ones(4000), "1"))


def test_walk_lists_inputs_first_and_once() -> None:
    compute = derive("compute", "6*N*D", "FLOP", N=N, D=D)
    both = derive("both", "c + 6*N*D", "FLOP", c=compute, N=N, D=D)
    assert [item.name for item in both.walk()] == ["N", "D", "compute", "both"]


def test_titles_and_names_are_copies() -> None:
    named = N.titled("Parameters", "all of them").named("params.total")
    assert (named.name, named.label, named.note) == ("params.total", "Parameters", "all of them")
    assert (N.name, N.label) == ("N", "")


@forall(
    st.integers(1, 10**13),
    st.integers(1, 10**14),
    st.sampled_from(["param", "kparam", "Mparam"]),
    st.sampled_from(["token", "Gtoken", "Ttoken"]),
)
def test_units_never_change_a_result(n: int, d: int, n_unit: str, d_unit: str) -> None:
    inputs = {"N": given("N", n, n_unit), "D": given("D", d, d_unit)}
    scale = {"param": 1, "kparam": 10**3, "Mparam": 10**6, "token": 1, "Gtoken": 10**9, "Ttoken": 10**12}
    assert derive("c", "6*N*D", "FLOP", **inputs).value == 6 * n * scale[n_unit] * d * scale[d_unit]
    assert derive("c", "6*N*D", "EFLOP", **inputs).to("FLOP") == pytest.approx(
        6.0 * n * scale[n_unit] * d * scale[d_unit]
    )


@forall(st.lists(st.floats(1.0, 1e12), min_size=1, max_size=30), st.floats(1.0, 1e6))
def test_a_sweep_is_its_candidates(values: list[float], rate: float) -> None:
    def time(size: object) -> Quantity:
        inputs = {"size": given("size", size, "B"), "rate": given("rate", rate, "GB/s")}
        return derive("time", "size/rate", "ms", **inputs)

    swept = time(np.array(values))
    for index, value in enumerate(values):
        assert swept.at(index).value == pytest.approx(time(value).value, rel=1e-12)
