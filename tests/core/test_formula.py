"""The language of formulas: what it evaluates, what it refuses, how units pass through it."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core import formula as formulas
from ridgeline.core import units
from ridgeline.core.formula import FormulaError

NUMBERS = st.floats(1e-6, 1e6)


def _dims(text: str, **given_units: str) -> Mapping[str, float]:
    return formulas.parse(text).dims({symbol: units.parse(unit)[1] for symbol, unit in given_units.items()})


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("6*N*D", {"N": 2, "D": 3}, 36),
        ("a - b/c", {"a": 1, "b": 6, "c": 3}, -1),
        ("a**2 % 5", {"a": 4}, 1),
        ("-a", {"a": 3}, -3),
        ("min(a, b) + max(a, b)", {"a": 1, "b": 2}, 3),
        ("where(a > b, a, b)", {"a": 1, "b": 2}, 2),
        ("ceil(a/b)", {"a": 7, "b": 2}, 4),
        ("floor(a/b)", {"a": 7, "b": 2}, 3),
        ("round(a)", {"a": 2.6}, 3),
        ("sqrt(a)*log2(b)", {"a": 9, "b": 8}, 9),
        ("exp(log(a))", {"a": 5}, 5),
        ("log10(a)", {"a": 1000}, 3),
        ("abs(a)", {"a": -2}, 2),
        ("count(a)", {"a": 4}, 4),
    ],
)
def test_evaluate_numbers_and_arrays(text: str, values: dict[str, float], expected: float) -> None:
    parsed = formulas.parse(text)
    assert parsed.evaluate(values) == pytest.approx(expected)
    arrays = parsed.evaluate({symbol: np.array([value, value], dtype=float) for symbol, value in values.items()})
    assert np.asarray(arrays).tolist() == pytest.approx([expected, expected])


def test_integers_stay_exact() -> None:
    assert formulas.parse("6*N*D").evaluate({"N": 10**12 + 1, "D": 10**13 + 1}) == 6 * (10**12 + 1) * (10**13 + 1)
    assert formulas.parse("ceil(a/4)*4").evaluate({"a": 7}) == 8


def test_names_in_reading_order() -> None:
    assert formulas.parse("b*min(a, c) + b").names == ("b", "a", "c")


@pytest.mark.parametrize(
    "text",
    [
        "a +",
        "__import__('os')",
        "a.b",
        "a[0]",
        "lambda: 1",
        "a if b else c",
        "a and b",
        "1 < a < 3",
        "sin(a)",
        "'text'",
        "True",
        "[a, b]",
        "a := 3",
        "min(*a)",
        "a // b",
        "1j",
        "(lambda x: x)(a)",
        "round(a, ndigits=2)",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(FormulaError):
        formulas.parse(text)


@pytest.mark.parametrize(
    ("text", "given_units", "expected"),
    [
        ("6*N*D", {"N": "param", "D": "token"}, "FLOP"),
        ("N*tokens/(chips*peak)", {"N": "param", "tokens": "token", "chips": "chip", "peak": "FLOP/s/chip"}, "s"),
        ("a + b", {"a": "s", "b": "h"}, "s"),
        ("max(a, 0)", {"a": "B"}, "B"),
        ("a + 0", {"a": "B"}, "B"),
        ("where(t > 0, a, b)", {"t": "1", "a": "s", "b": "s"}, "s"),
        ("a**2/b", {"a": "s", "b": "s"}, "s"),
        ("sqrt(a*b)", {"a": "s", "b": "s"}, "s"),
        ("a**0.5", {"a": "s**2"}, "s"),
        ("count(T)*b", {"T": "token", "b": "B"}, "B"),
        ("A*N**alpha", {"A": "1", "N": "param", "alpha": "1"}, "1"),
        ("log10(N)", {"N": "param"}, "1"),
        ("a/b", {"a": "B", "b": "B"}, "1"),
        ("exp(a/b)", {"a": "s", "b": "s"}, "1"),
        ("a < b", {"a": "s", "b": "s"}, "1"),
    ],
)
def test_units_pass_through(text: str, given_units: dict[str, str], expected: str) -> None:
    assert _dims(text, **given_units) == units.parse(expected)[1]


@pytest.mark.parametrize(
    ("text", "given_units"),
    [
        ("a + b", {"a": "s", "b": "B"}),
        ("a + 1", {"a": "s"}),
        ("max(a, b)", {"a": "chip", "b": "token"}),
        ("a % b", {"a": "s", "b": "B"}),
        ("where(t > 0, a, b)", {"t": "1", "a": "s", "b": "B"}),
        ("a > b", {"a": "s", "b": "B"}),
        ("2**a", {"a": "s"}),
        ("a**alpha", {"a": "s", "alpha": "1"}),
        ("log(a)", {"a": "s"}),
        ("exp(a)", {"a": "token"}),
        ("exp(a)", {"a": "s"}),
    ],
)
def test_units_that_do_not_fit(text: str, given_units: dict[str, str]) -> None:
    with pytest.raises(FormulaError):
        _dims(text, **given_units)


@given(st.lists(NUMBERS, min_size=3, max_size=3))
def test_text_is_evaluated_as_python_would(values: list[float]) -> None:
    a, b, c = values
    found = formulas.parse("a*b - c/a + sqrt(b)").evaluate({"a": a, "b": b, "c": c})
    assert found == a * b - c / a + math.sqrt(b)


@given(st.lists(NUMBERS, min_size=1, max_size=20), NUMBERS)
def test_an_array_is_its_elements(values: list[float], b: float) -> None:
    parsed = formulas.parse("where(a > b, min(a, 2*b), ceil(a/b)) + log(a)")
    whole = parsed.evaluate({"a": np.array(values), "b": b})
    single = [parsed.evaluate({"a": value, "b": b}) for value in values]
    assert np.asarray(whole).tolist() == pytest.approx(single, rel=1e-12)


def test_no_builtins() -> None:
    with pytest.raises(NameError):
        formulas.parse("a*open").evaluate({"a": 1})
