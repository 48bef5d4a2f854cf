"""Figures of devices, prices and laws live in ``core/data``, never in code."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.house.source import ROOT, SRC, modules, shown, tree

LARGE = 1e9
# Powers of ten and of two that name a unit step or a bound, not a figure of the world: file -> why.
STEPS = {
    "src/ridgeline/core/format.py": "letters and SI prefixes",
    "src/ridgeline/core/parse.py": "suffixes that people type, and the bound on absurd input",
    "src/ridgeline/core/units.py": "SI prefixes",
    "src/ridgeline/report/grid.py": "letters and SI prefixes of a column",
}


def is_step(value: float) -> bool:
    """Whether a number is a power of ten."""
    return f"{value:e}".rstrip("0").partition("e")[0].rstrip("0").rstrip(".") in ("1.000000", "1")


def numbers(path: Path) -> Iterator[tuple[int, float]]:
    """Every number written in a file, with its line."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            yield node.lineno, abs(node.value)


def figures(table: Any) -> Iterator[float]:
    """Every figure of a data file."""
    if isinstance(table, dict):
        for value in table.values():
            yield from figures(value)
    elif isinstance(table, list):
        for value in table:
            yield from figures(value)
    elif type(table) in (int, float):
        yield abs(table)


def mantissa(value: float) -> str:
    """The digits of a number without its scale: 989.4e12, 989.4 and 9.894e14 are one figure."""
    return f"{value:.12e}".partition("e")[0].rstrip("0").replace(".", "")


def test_no_large_constants() -> None:
    found = [
        f"{shown(p)}:{line} {value:g}"
        for p in modules()
        for line, value in numbers(p)
        if value >= LARGE and not (shown(p) in STEPS and is_step(value))
    ]
    assert found == []


def test_no_figure_of_the_data_files_in_code() -> None:
    fitted = "expected.toml"  # a script writes it: hundreds of fitted digits meet others by chance
    named = SRC / "core" / "data" / "models"  # a vocabulary there is also the default of its config reader
    files = [file for file in (SRC / "core" / "data").rglob("*.toml") if file.name != fitted and file.parent != named]
    known = {mantissa(value) for file in files for value in figures(tomllib.loads(file.read_text(encoding="utf-8")))}
    distinct = {digits for digits in known if len(digits) >= 4}  # fewer digits meet by chance
    assert distinct, "no data files were found"
    found = [
        f"{shown(p)}:{line} {value:g}"
        for p in modules()
        for line, value in numbers(p)
        if mantissa(value) in distinct and not (isinstance(value, int) and value < 1e5)
    ]
    assert found == []


def test_the_allowlist_is_not_stale() -> None:
    assert [name for name in STEPS if not (ROOT / name).is_file()] == []
