"""Columns: one unit, one precision, the unit in the header."""

from typing import Any

import pytest

from ridgeline.report.grid import grid
from ridgeline.report.view import View


def column(values: list[Any], unit: str, quantities: dict[str, Any] | None = None) -> tuple[str, list[str]]:
    table = {"columns": [{"name": "x", "title": "X", "unit": unit}], "rows": [[value] for value in values]}
    laid = grid(View({"quantities": quantities or {}}), table)
    return laid.heads[0].unit, [row[0].text for row in laid.rows]


@pytest.mark.parametrize(
    ("values", "unit", "head", "texts"),
    [
        ([92.5e9, 30.1e9, 7.24e9], "param", "B params", ["92.5", "30.1", "7.2"]),
        ([8, 64, 1000], "chip", "chips", ["8", "64", "1,000"]),
        ([0.0401, 0.0621], "s", "ms", ["40.1", "62.1"]),
        ([5400.0, 7200.0], "s", "h", ["1.50", "2.00"]),
        ([1.9312, 1.9478], "nat", "nat", ["1.9312", "1.9478"]),
        ([80e9, 141e9], "B", "GB", ["80", "141"]),
        ([1e12, 1e14, 1e17], "token", "tokens", ["1.00T", "100T", "100,000T"]),
        ([2.5, 3.25], "USD/(chip*h)", "$/(chip-h)", ["2.50", "3.25"]),
        ([1800000, 4100000], "USD", "$", ["1,800,000", "4,100,000"]),
        ([18e6, 41.5e6], "USD", "$M", ["18.0", "41.5"]),
        ([1.026e24, 3.1e23], "FLOP", "FLOP", ["1.03e24", "3.10e23"]),
        ([0.0], "s", "us", ["0"]),
        ([1.0001, 1.0002], "1", "", ["1.0001", "1.0002"]),
        ([None, 12.5], "%", "%", ["unknown", "12.5"]),
        ([True, False], "", "", ["yes", "no"]),
        (["a", 3, None], "", "", ["a", "3", "unknown"]),
        (["gives none", 1.9591, 1.9103], "nat", "nat", ["gives none", "1.9591", "1.9103"]),
    ],
)
def test_columns(values: list[Any], unit: str, head: str, texts: list[str]) -> None:
    assert column(values, unit) == (head, texts)


def test_a_quantity_is_brought_to_the_columns_unit() -> None:
    quantities = {"t": {"value": 2.0, "unit": "h", "kind": "measured", "text": "2.00 h"}}
    assert column([{"q": "t"}, 3600.0], "s", quantities) == ("h", ["2", "1"])


def test_an_interval_stands_beside_its_value() -> None:
    quantities = {"n": {"value": 92e9, "unit": "param", "kind": "derived", "interval": [88e9, 97e9]}}
    assert column([{"q": "n"}, 30.5e9], "param", quantities)[1] == ["92.0 (88.0 to 97.0)", "30.5"]


def test_quantities_of_one_unit_give_the_column_its_unit() -> None:
    quantities = {name: {"value": value, "unit": "s", "kind": "measured"} for name, value in (("a", 1.5), ("b", 2.25))}
    assert column([{"q": "a"}, {"q": "b"}], "", quantities) == ("s", ["1.50", "2.25"])


def test_quantities_of_several_units_keep_their_own() -> None:
    quantities = {
        "a": {"value": 1.5, "unit": "s", "kind": "measured", "text": "1.50 s"},
        "b": {"value": 8, "unit": "chip", "kind": "measured", "text": "8 chips"},
    }
    assert column([{"q": "a"}, {"q": "b"}], "", quantities) == ("", ["1.50 s", "8 chips"])


def test_a_name_that_is_gone_reads_unknown() -> None:
    assert column([{"q": "gone"}, 2.5], "s") == ("s", ["unknown", "2.50"])


def test_a_title_that_names_its_unit_is_not_followed_by_it() -> None:
    table = {"columns": [{"name": "x", "title": "Chips", "unit": "chip"}], "rows": [[4], [8]]}
    assert grid(View({}), table).heads[0].unit == ""
