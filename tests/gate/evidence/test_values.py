"""Scores as logs write them."""

import math
from typing import Any

import pytest

from ridgeline.core.errors import InputError
from ridgeline.gate.evidence.values import score


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (True, 1.0), (False, 0.0), (0.25, 0.25), (-0.033, -0.033), ("C", 1.0), ("I", 0.0), ("P", 0.5), ("N", 0.0),
        ([1], 1.0), ("[0.5]", 0.5), ("(1,)", 1.0), ("True", 1.0), (" 0.75 ", 0.75), ("-1e-3", -0.001),
    ],
)  # fmt: skip
def test_python_repr_values_letters_and_lists_of_one(value: Any, number: float) -> None:
    assert score(value, where="x") == number


def test_no_score_is_nan() -> None:
    assert math.isnan(score(None, where="x"))


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, "nan", "inf", [1, 2], {"a": 1}, "{'a': 1}", "maybe", "[nan]", "__import__('os')"]
)
def test_nan_text_and_several_values_are_refused_with_the_place(value: Any) -> None:
    with pytest.raises(InputError, match="at here"):
        score(value, where="here")
