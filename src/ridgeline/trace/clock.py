"""Times as written in a trace -> integer nanoseconds, without a detour over float64 where that would lose digits."""

import re
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import numpy as np

from ridgeline.trace.events import Ints

EXACT_BELOW_US = 2.0**43  # below this a float64 of microseconds is less than half a nanosecond off
UNREADABLE = np.iinfo(np.int64).min
_NS_FROM = 10**17  # an epoch time of this size can only be nanoseconds: as microseconds it lies beyond the year 5000
_FITS_US = 2**53  # times 1000 still an int64
_THREE = re.compile(rb"(?:-?\d+\.\d{3} )+")


def nanoseconds(values: list[Any]) -> Ints:
    """Microseconds (int, float, text, raw JSON) as integer ns; `UNREADABLE` for what is no time.

    Integers too large for microseconds since 1970 are taken as nanoseconds.
    """
    if any(isinstance(value, msgspec.Raw) for value in values[:1] + values[-1:]):
        return _from_text(values)
    try:
        column = np.array(values)
    except (ValueError, OverflowError):
        return np.array([_one(value) for value in values], np.int64)
    if column.dtype.kind == "i" and (not len(column) or np.abs(column).max() < _FITS_US):
        return np.asarray(column, np.int64) * 1000
    if column.dtype.kind == "f" and len(column) and np.abs(column).max() < EXACT_BELOW_US:
        return np.asarray(np.rint(column * 1000), np.int64)
    return np.array([_one(value) for value in values], np.int64)


def _from_text(values: list[Any]) -> Ints:
    texts = [bytes(value) if isinstance(value, msgspec.Raw) else str(value).encode() for value in values]
    joined = b" ".join(texts) + b" "
    if _THREE.fullmatch(joined):  # every time has three decimals: leave out the dot
        return np.fromstring(joined.replace(b".", b"").decode(), np.int64, sep=" ")
    return np.array([_one(value) for value in values], np.int64)


def _one(value: Any) -> int:
    if isinstance(value, msgspec.Raw):
        value = bytes(value).decode("ascii", "replace").strip('"')
    try:
        exact = Decimal(value if isinstance(value, int | str) else repr(value))
        whole = int(exact) if abs(exact) >= _NS_FROM else int((exact * 1000).to_integral_value())
    except (InvalidOperation, ValueError, OverflowError, TypeError):
        return UNREADABLE
    return whole if abs(whole) < 2**62 else UNREADABLE
