"""Tables made ready to print: one unit and one precision per column, the unit in the header."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ridgeline.core import format as formats
from ridgeline.core import units
from ridgeline.core.case import Json
from ridgeline.core.errors import InputError
from ridgeline.report.view import Number, View

FIRST_ROWS = 10
_WIDE = 1e4  # a column whose values (but the outer tenths) are further apart keeps digits per cell, not per column
_FEW = 20  # up to so many rows, different values never read the same
_COUNTS = ("param", "token", "chip", "request")
_NAMES = {"1": "", "day": "days", "point": "points"}


@dataclass(frozen=True)
class Cell:
    """One cell: what is read, what it sorts by, and the quantity behind it."""

    text: str
    sort: float | str
    number: Number | None = None

    @property
    def assumed(self) -> bool:
        """Whether an assumed leaf stands here."""
        return self.number is not None and self.number.assumed


@dataclass(frozen=True)
class Head:
    """A column's header: title, unit as people read it, meaning, and whether its cells are numbers."""

    title: str
    unit: str
    meaning: str
    numeric: bool


@dataclass(frozen=True)
class Grid:
    """A table of texts with the same precision down each column."""

    title: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]
    highlight: int | None
    mark: str
    note: str


def grid(view: View, table: Json) -> Grid:
    """Lay out a table of a document."""
    columns = table.get("columns") or []
    rows = [[view.cell(value) for value in row] for row in table.get("rows") or []]
    laid = [_column(column, [row[index] for row in rows]) for index, column in enumerate(columns)]
    cells = tuple(zip(*(texts for _, texts in laid), strict=True)) if laid else ()
    return Grid(
        title=str(table.get("title") or ""),
        heads=tuple(head for head, _ in laid),
        rows=cells,
        highlight=table.get("highlight"),
        mark=str(table.get("mark") or ""),
        note=str(table.get("note") or ""),
    )


def plain_value(value: Any, unit: str) -> float | None:
    """A cell's value in the column's unit (its own where the column has none); None for what is no number."""
    if isinstance(value, Number):
        return converted(value.value, str(value.entry.get("unit") or "1"), unit)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


@lru_cache(maxsize=256)
def _factor(unit: str, target: str) -> float | None:
    try:
        (factor, dims), (wanted, target_dims) = units.parse(unit), units.parse(target)
    except InputError:
        return None
    return factor / wanted if dims == target_dims else None


def converted(value: float, unit: str, target: str) -> float | None:
    """A value in another unit, or None where the two do not fit."""
    if not target or unit == target:
        return value
    factor = _factor(unit, target)
    return None if factor is None else value * factor


def _column(column: Json, values: list[Any]) -> tuple[Head, list[Cell]]:
    unit = str(column.get("unit") or "")
    title, meaning = str(column.get("title") or column.get("name") or ""), str(column.get("meaning") or "")
    own = {str(value.entry.get("unit")) for value in values if isinstance(value, Number)}
    if not unit and len(own) == 1:
        unit = own.pop()
    figures = [plain_value(value, unit) for value in values]
    known = [figure for figure in figures if figure is not None]
    words = sum(isinstance(value, str) and value != "" for value in values)
    numeric = bool(known) and (bool(unit) or len(known) > words)
    if not numeric or (own and not unit):
        return Head(title, "", meaning, numeric), [_cell(v, _text(v), f) for v, f in zip(values, figures, strict=True)]
    name, write = _writer(known, unit)
    pairs = list(zip(values, figures, strict=True))
    texts = [_text(v) if f is None else write(f) + _spread(v, unit, write) for v, f in pairs]
    head = Head(title, "" if name in title.lower().split() else name, meaning, numeric)
    return head, [_cell(v, t, f) for (v, f), t in zip(pairs, texts, strict=True)]


def _spread(value: Any, unit: str, write: Callable[[float], str]) -> str:
    """The interval of a cell in its column's unit, empty for a plain number."""
    ends = value.entry.get("interval") if isinstance(value, Number) else None
    low, high = (converted(end, value.entry["unit"], unit) for end in ends) if ends else (None, None)
    return "" if low is None or high is None else f" ({write(low)} to {write(high)})"


def _cell(value: Any, text: str, figure: float | None) -> Cell:
    number = value if isinstance(value, Number) else None
    return Cell(text, text if figure is None else figure, number)


def _text(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, Number):
        return value.text
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return formats.significant(value) if isinstance(value, float) else f"{value:,}"
    return str(value)


def _writer(values: list[float], unit: str) -> tuple[str, Callable[[float], str]]:
    """The unit for the header, and how each value of the column is written below it."""
    sizes = sorted(abs(value) for value in values if value) or [0.0]
    middle, largest = sizes[len(sizes) // 2], sizes[-1]
    outer = len(sizes) // 10
    if sizes[-1 - outer] > _WIDE * sizes[outer] and sizes[0]:
        return _wide(unit)
    step, name = _step(middle, largest, unit)
    places = _places([value / step for value in values], middle / step, at_least=4 if unit == "nat" else 0)
    if places is None:
        return name, lambda value: formats.significant(value / step)
    return name, lambda value: f"{value / step:,.{places}f}"


def _wide(unit: str) -> tuple[str, Callable[[float], str]]:
    """A column over many decades: every cell has its own step."""
    if unit in _COUNTS:
        return f"{unit}s", lambda value: formats.count(value, unit).partition(" ")[0]
    if unit == "s" or _scaled(unit):
        return "", lambda value: formats.value(value, unit)
    return _step(0.0, 0.0, unit)[1], formats.significant


def _scaled(unit: str) -> bool:
    return unit[:1] in tuple("BFJW") and unit != "FLOP" and not unit.startswith("Wh")


def _step(middle: float, largest: float, unit: str) -> tuple[float, str]:
    if unit == "s":
        return formats.time_step(middle)
    if unit == "USD":
        step, letter = _stepped(middle, formats.COUNT_STEPS) if middle >= 1e7 else (1.0, "")
        return step, f"${letter}"
    if unit in _COUNTS:
        step, letter = _stepped(middle, formats.COUNT_STEPS) if largest >= 1e6 else (1.0, "")
        return step, f"{letter} {unit}s".strip()
    if _scaled(unit):
        step, letter = _stepped(middle, formats.SI_STEPS)
        return step, f"{letter}{unit}"
    return 1.0, _NAMES.get(unit, _per_dollar(unit))


def _stepped(value: float, steps: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    return next((pair for pair in steps if value >= pair[0]), (1.0, ""))


def _per_dollar(unit: str) -> str:
    return unit.replace("USD/", "$/").replace("*", "-") if unit.startswith("USD/") else unit


def _places(values: list[float], middle: float, at_least: int = 0) -> int | None:
    """Decimals that give the middle value three digits and keep different values apart; none for whole numbers."""
    if all(float(value).is_integer() for value in values) and max(abs(value) for value in values) < 1e15:
        return 0
    size = math.floor(math.log10(middle)) if middle else 0
    if size >= 15 or size < -4:
        return None
    fewest = max(0, 2 - size, at_least)
    if len(values) > _FEW:
        return fewest
    different = len(set(values))
    enough = (places for places in range(fewest, fewest + 3) if len({f"{v:.{places}f}" for v in values}) == different)
    return next(enough, fewest)
