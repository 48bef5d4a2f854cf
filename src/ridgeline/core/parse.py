"""What people type: ``1000xH100``, ``30d``, ``15T``, ``80GB``, ``8k``, ``1e14..1e16``."""

import math
import re

from ridgeline.core import units
from ridgeline.core.errors import InputError

_NUMBER = re.compile(r"^\s*([+-]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*$")
COUNT_SUFFIX = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12, "p": 10**15, "q": 10**15}
_NOUNS = re.compile(r"\s*(tokens?|params?|parameters?|chips?)$", re.IGNORECASE)
_TIME_NAMES = {"d": "day", "days": "day", "hours": "h", "hr": "h", "m": "min", "mins": "min", "years": "year",
               "weeks": "week", "w": "week", "sec": "s", "seconds": "s"}  # fmt: skip
LONGEST = 10**9  # tokens of one context, a thousand times the longest that is served
ABSURD = 1e30  # far above any count or size of this field; keeps every later product finite


def number(text: str, *, where: str, expected: str = "a number") -> tuple[int | float, str]:
    """Split a text into its number and the rest. Integers stay exact."""
    match = _NUMBER.match(text)
    if match is None:
        raise InputError.expected(expected, text, where=where)
    digits = match.group(1).replace(",", "").replace("_", "")
    value = float(digits)
    if not math.isfinite(value) or abs(value) > ABSURD:
        raise InputError.expected(f"{expected} below {ABSURD:g}", text, where=where, hint="check the exponent")
    return (int(digits) if re.fullmatch(r"[+-]?\d+", digits) else value), match.group(2)


def count(text: str | float, *, where: str, what: str = "a count") -> int | float:
    """``15T`` -> 15e12, ``70B`` -> 70e9, ``1,000`` -> 1000. Must be positive."""
    expected = f"{what} such as 70B, 15T or 1e12"
    value, suffix = number(str(text), where=where, expected=expected)
    suffix = _NOUNS.sub("", suffix).lower()
    if suffix not in COUNT_SUFFIX:
        raise InputError.expected(expected, text, where=where, hint="suffixes: k, M, B (or G), T, P")
    return positive(value * COUNT_SUFFIX[suffix], where=where, what=what)


def context(text: str | int, *, where: str) -> int:
    """A context length: ``8k`` is 8192 and ``1M`` is 1,048,576, as context lengths are named; ``8000`` is 8000."""
    value, suffix = number(str(text), where=where, expected="a context length such as 8k or 8192")
    steps = {"": 1, "k": 1024, "ki": 1024, "m": 1024**2}
    suffix = _NOUNS.sub("", suffix).lower()
    if suffix not in steps or not float(value * steps[suffix]).is_integer():
        raise InputError.expected("a context length such as 8k or 8192", text, where=where)
    found = int(positive(value * steps[suffix], where=where, what="a context length"))
    if found > LONGEST:
        raise InputError.expected(f"a context length up to {LONGEST:,}", text, where=where, hint="check the exponent")
    return found


def size(text: str | float, *, where: str, unit: str = "B") -> float:
    """``80GB`` -> 80e9, ``3.35TB/s`` with unit ``B/s``. A bare number is already in ``unit``."""
    value, suffix = number(str(text), where=where, expected=f"a size such as 80 G{unit}")
    return float(positive(value * _factor(suffix or unit, unit, text, where), where=where, what=f"a size in {unit}"))


def duration(text: str | float, *, where: str, bare: str = "s", zero: bool = False) -> float:
    """``30d``, ``720 h``, ``45min``, ``1.0`` (in ``bare``) -> seconds; above zero unless ``zero`` is allowed."""
    expected = f"a duration such as 30d, 12h or 1.5 {bare}"
    value, suffix = number(str(text), where=where, expected=expected)
    name = _TIME_NAMES.get(suffix.lower(), suffix) or bare
    scale = 7 if name == "week" else 1
    factor = _factor("day" if name == "week" else name, "s", text, where)
    if zero and value == 0:
        return 0.0
    return float(positive(value * factor * scale, where=where, what="a duration"))


def chips(text: str, *, where: str = "--chips") -> tuple[int, str]:
    """``1000xH100`` or ``1000 H100`` -> (1000, "H100"). A plain device name means one chip."""
    match = re.match(r"^\s*([\d][\d,_.]*[kK]?)\s*(?:[x*×]\s*|\s+)(\S.*?)\s*$", text)
    if match is None:
        hint = "write the number of chips, an x, and a device of `ridgeline devices`"
        raise InputError.expected("chips such as 1000xH100", text, where=where, hint=hint)
    quantity = count(match.group(1), where=where, what="a number of chips")
    if not float(quantity).is_integer():
        raise InputError.expected("a whole number of chips", text, where=where)
    return int(quantity), match.group(2)


def span(text: str, *, where: str, what: str = "a range") -> tuple[float, ...]:
    """``1e12..1e16`` (the two ends) or ``1T,100T,1e16`` (a list) -> ascending values."""
    pieces = text.split("..") if ".." in text else text.split(",")
    if ".." in text and len(pieces) != 2:
        raise InputError.expected(f"{what} as LOW..HIGH or a list with commas", text, where=where)
    values = tuple(float(count(piece, where=where, what=what)) for piece in pieces)
    return tuple(sorted(values))


def share(text: str | float, *, where: str, what: str = "a share") -> float:
    """``"1%"`` or ``0.01``. Raises `InputError` for what is negative or not finite, and for percents above 100."""
    written = str(text).strip()
    value, rest = number(written, where=where, expected=what)
    if rest.strip() not in ("", "%") or value < 0 or (rest.strip() and value > 100):
        raise InputError.expected(what, text, where=where, hint="such as 1% or 0.01")
    return float(value) / (100 if rest.strip() else 1)


def positive(value: int | float, *, where: str, what: str) -> int | float:
    """The value, or an `InputError` when it is not positive and finite."""
    if not (math.isfinite(value) and 0 < value <= ABSURD):
        raise InputError.expected(f"{what} above zero", value, where=where)
    return value


def _factor(text: str, unit: str, original: object, where: str) -> float:
    try:
        factor, dims = units.parse(text)
    except InputError as error:
        raise InputError.expected(f"a value in {unit}", original, where=where) from error
    if dims != units.parse(unit)[1]:
        raise InputError.expected(f"a value in {unit}", original, where=where)
    return factor
