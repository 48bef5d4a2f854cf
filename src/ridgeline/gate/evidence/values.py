"""Scores as numbers, whatever a log wrote: booleans, letters, lists of one, texts of Python values."""

import ast
import math
from typing import Any

from ridgeline.core.errors import InputError

_WORDS = {
    "true": 1.0, "false": 0.0, "c": 1.0, "i": 0.0, "n": 0.0, "correct": 1.0, "incorrect": 0.0, "yes": 1.0, "no": 0.0,
    "pass": 1.0, "fail": 0.0, "passed": 1.0, "failed": 0.0, "p": 0.5,
}  # fmt: skip


def score(value: Any, *, where: str) -> float:
    """One score. None is NaN: the row has none.

    ``C`` and ``I`` are correct and incorrect, ``P`` half, ``N`` no answer. A text may hold a number or a Python value
    (``"[0.5]"``). Raises `InputError` for anything else, and for a number that is not finite.
    """
    if value is None:
        return math.nan
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        if not math.isfinite(value):
            raise InputError.expected("a finite score", value, where=where, hint="a run with NaN scores is no evidence")
        return float(value)
    if isinstance(value, list | tuple) and len(value) == 1:
        return score(value[0], where=where)
    if isinstance(value, str):
        return _text(value.strip(), where)
    raise InputError.expected("one score", value, where=where, hint="name the field that holds the number")


def _text(text: str, where: str) -> float:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        inner = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        inner = text
    if isinstance(inner, str):
        hint = "NaN and infinity are refused" if text.lower() in ("nan", "inf", "-inf", "infinity") else ""
        raise InputError.expected("a score", text, where=where, hint=hint)
    return score(inner, where=where)
