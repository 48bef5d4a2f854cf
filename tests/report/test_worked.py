"""Rows of the worked pages."""

import pytest

from ridgeline.core.formula import FormulaError
from ridgeline.core.quantity import derive, given
from ridgeline.report.worked import as_published, result, table

N = given("params", 70e9, "param", "the test")
D = given("tokens", 1.4e12, "token", "the test")
C = derive("compute", "6*N*D", "FLOP", N=N, D=D)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5.88e23 FLOP", "5.88e23 FLOP"),
        ("6e23 FLOP", "6e23 FLOP"),
        ("58.80e22 FLOP", "58.80e22 FLOP"),
        ("1.00e23 FLOP", "5.88e23 FLOP"),  # the value decides, not the text
    ],
)
def test_as_published_keeps_the_form_and_replaces_the_number(text: str, expected: str) -> None:
    assert as_published(C, text) == expected


def test_as_published_converts_units() -> None:
    energy, price = given("energy", 604_800, "kWh"), given("price", 2.5, "USD/(chip*h)")
    assert as_published(energy, "1.0 MWh") == "604.8 MWh"
    assert as_published(given("cost", 72576.4, "USD"), "$1") == "$72,576"
    assert as_published(price, "$0.00/(chip*h)") == "$2.50/(chip*h)"
    assert as_published(given("share", 0.954, "1"), "1.0%") == "95.4%"


def test_as_published_refuses_another_dimension() -> None:
    with pytest.raises(FormulaError, match="not convertible"):
        as_published(C, "1.0 GB")


def test_table_shows_formula_numbers_and_result() -> None:
    lines = table({"compute": (C, "5.88e23 FLOP"), "again": C}).splitlines()
    assert lines[0] == "| what | formula | numbers put in | result |"
    assert lines[2] == "| compute | `6 × N × D` | `6 × 70B params × 1.4T tokens` | **5.88e23 FLOP** |"
    assert lines[3].endswith("**5.880e23 FLOP** |")


def test_table_keeps_zeros_that_matter() -> None:
    hours, price = given("hours", 720_000, "chip*h"), given("price", 2.5, "USD/(chip*h)")
    line = table({"rent": derive("rent", "hours*price", "USD", hours=hours, price=price)}).splitlines()[-1]
    assert "`720,000 chip-h × $2.50/chip-h`" in line
    step = derive("count", "10*width", "1", width=given("width", 0.3, "1"))
    assert "`10 × 0.3`" in table({"c": step})


def test_table_of_a_leaf_says_its_kind() -> None:
    assert table({"N": N}).splitlines()[-1] == "| N | specified | 70.0B params | **70.0B params** |"
    assert result(N) == "70.0B params"
