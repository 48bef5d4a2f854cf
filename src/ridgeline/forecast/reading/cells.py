"""Cells to float64: thousands separators, decimal commas, suffixes, integers beyond 2^63, nothing at all."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.core.parse import COUNT_SUFFIX

Array = NDArray[np.float64]
_MISSING = frozenset(("", "-", "--", "na", "n/a", "nan", "none", "null", "?", "#n/a", "#num!", "#div/0!", "missing"))
_TRUE, _FALSE = frozenset(("true", "yes", "1", "t", "y", "1.0")), frozenset(("false", "no", "0", "f", "n", "", "0.0"))
_SPACES = str.maketrans("", "", " \u00a0\u202f\u2009'’_")
_WITH_COMMA = re.compile(r"^[+-]?[\d.]*,[\d.,]*([eE][+-]?\d+)?$")
_THOUSANDS = re.compile(r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$")
_DOTTED = re.compile(r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$")
_NUMBER = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([kKmMbBgGtT]?)$")


def decimal_mark(columns: Iterable[Sequence[Any]], separator: str) -> tuple[str, str]:
    """Whether a file writes 1.5 or 1,5: the mark, and what was assumed where the file does not settle it.

    Raises `InputError` where some cells can only be one and some only the other.
    """
    marked = (cell.translate(_SPACES) for column in columns for cell in column if isinstance(cell, str) and "," in cell)
    cells = [cell for cell in marked if _WITH_COMMA.match(cell)]
    point = next((cell for cell in cells if _THOUSANDS.match(cell) and (cell.count(",") > 1 or "." in cell)), "")
    comma = next((cell for cell in cells if not _THOUSANDS.match(cell) and _is_decimal(cell)), "")
    if point and comma:
        raise InputError.expected("one way to write numbers", f"{point} and {comma}", where="the columns",
                                  hint='say which with decimal="." or decimal=","')  # fmt: skip
    if point or comma or not cells:
        return ("," if comma else "."), ""
    if separator == ";":
        return ",", f"{cells[0]} is read with a decimal comma, as files with semicolons write it"
    return ".", f"{cells[0]} is read with a thousands separator"


def _is_decimal(cell: str) -> bool:
    return cell.count(",") == 1 and re.match(r"^[+-]?[\d.]*,\d+([eE][+-]?\d+)?$", cell) is not None


def floats(cells: Sequence[Any], mark: str = ".") -> tuple[Array, list[int]]:
    """The cells as float64 (NaN where there is none), and the indices of those that are no number."""
    try:
        return np.array(cells, dtype=np.float64).reshape(len(cells)), []
    except (ValueError, TypeError, OverflowError):
        pass
    found, unread = np.empty(len(cells)), []
    for i, cell in enumerate(cells):
        value = _float(cell, mark)
        found[i] = np.nan if value is None else value
        if value is None:
            unread.append(i)
    return found, unread


def _float(cell: Any, mark: str) -> float | None:
    if cell is None:
        return float("nan")
    if not isinstance(cell, str):
        try:
            return float(cell)
        except OverflowError:
            return float("inf")
        except (TypeError, ValueError):
            return None
    text = cell.strip().strip('"').translate(_SPACES)
    if text.lower() in _MISSING:
        return float("nan")
    if mark == ",":
        text = text.replace(".", "") if _DOTTED.match(text) else text
        text = text.replace(",", ".")
    elif _THOUSANDS.match(text):
        text = text.replace(",", "")
    match = _NUMBER.match(text)
    if match:
        return float(match[1]) * COUNT_SUFFIX[match[2].lower()]
    return float(text) if text.lower().lstrip("+-") in ("inf", "infinity") else None


def truths(cells: Sequence[Any]) -> NDArray[np.bool_] | None:
    """The cells as booleans, or None where one of them is not."""
    words = [str(cell).strip().lower() if cell is not None else "" for cell in cells]
    if not all(word in _TRUE or word in _FALSE for word in words):
        return None
    return np.array([word in _TRUE for word in words], bool)


def texts(cells: Sequence[Any]) -> NDArray[np.str_]:
    """The cells as text; whole floats without their point, so that 1e18 and 1000000000000000000 are one label."""
    words = [f"{cell:.15g}" if isinstance(cell, float) else str(cell).strip() for cell in map(_plain, cells)]
    return np.array(words, dtype=np.str_)


def _plain(cell: Any) -> Any:
    return "" if cell is None else cell
