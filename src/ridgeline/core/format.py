"""How a number is written, everywhere: reports, cards and errors share these few rules."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from ridgeline.core.quantity import Quantity

COUNT_STEPS = ((1e12, "T"), (1e9, "B"), (1e6, "M"))
SI_STEPS = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
# Control characters (but tab and line end), marks that turn the writing direction, and halves of surrogate pairs.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
_MILLION = "/(1e6*token)"
PLACEHOLDER = re.compile(r"\{([a-z0-9_.\-]+)(?:\|(\d+))?\}")


def significant(value: float, digits: int = 3) -> str:
    """A plain number with that many significant digits, thousands separated, no exponent below 1e15."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = int(f"{value:.{digits - 1}e}".partition("e")[2])  # after rounding: 9.996 is 10.0, not 10.00
    if size >= 15 or size < -4:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    places = max(0, digits - 1 - size)
    return f"{value:,.{places}f}"


def stepped(value: float, steps: tuple[tuple[float, str], ...], digits: int) -> tuple[str, str]:
    """A number and the letter of the largest step at or below it."""
    for size, letter in steps:
        if abs(value) >= size * (1 - 0.5 * 10**-digits):
            return significant(value / size, digits), letter
    return significant(value, digits), ""


def count(value: float, noun: str, digits: int = 3) -> str:
    """92.5B params, 1.85T tokens, 1,000 chips; whole numbers below a million are written out."""
    if abs(value) < 1e6 and float(value).is_integer():
        return f"{int(value):,} {noun}{'' if value == 1 else 's'}"
    number, letter = stepped(value, COUNT_STEPS, digits)
    return f"{number}{letter} {noun}s"


def time_step(value_s: float) -> tuple[float, str]:
    """The unit in which people would say a time: its length in seconds, and its name."""
    for least_s, step_s, unit in ((86400 * 2, 86400, "days"), (3600, 3600, "h"), (600, 60, "min"), (0.1, 1, "s")):
        if abs(value_s) >= least_s:
            return step_s, unit
    return (1e-3, "ms") if abs(value_s) >= 1e-3 else (1e-6, "us")


def seconds(value: float, digits: int = 3) -> str:
    """Time in the unit people would say."""
    step_s, unit = time_step(value)
    return f"{significant(value / step_s, digits)} {unit}"


def dollars(value: float, digits: int = 3) -> str:
    """$1,800,000 below ten million, then $21.9M; cents below a hundred dollars."""
    if abs(value) >= 1e7:
        number, letter = stepped(value, COUNT_STEPS, digits)
        return f"${number}{letter}"
    return f"${value:,.2f}" if abs(value) < 100 else f"${value:,.0f}"


def _scaled(value: float, unit: str, digits: int) -> str:
    number, letter = stepped(value, SI_STEPS, digits)
    return f"{number} {letter}{unit}"


_BY_UNIT: dict[str, Callable[[float, int], str]] = {
    "1": significant,
    "param": lambda v, d: count(v, "param", d),
    "token": lambda v, d: count(v, "token", d),
    "chip": lambda v, d: count(v, "chip", d),
    "request": lambda v, d: count(v, "request", d),
    "FLOP": lambda v, d: f"{significant(v, max(d, 4))} FLOP" if v >= 1e15 else _scaled(v, "FLOP", d),
    "s": seconds,
    "s/token": lambda v, d: f"{seconds(v, d)}/token",
    "USD": dollars,
    "%": lambda v, d: f"{significant(v, d) if abs(v) < 1000 else f'{v:,.0f}'}%",
    "point": lambda v, d: f"{significant(v, d)} point{'' if v == 1 else 's'}",
    "nat": lambda v, d: f"{v:.{max(d, 4)}f} nat",
    "day": lambda v, d: f"{significant(v, d)} days",
    "h": lambda v, d: f"{significant(v, d)} h",
    "FLOP/B": lambda v, d: f"{significant(v, d)} FLOP/B",  # an intensity is never scaled: 296, not 0.296 k
}


def value(number: float, unit: str, digits: int = 3) -> str:
    """One number with its unit."""
    writer = _BY_UNIT.get(unit)
    if writer is not None:
        return writer(number, digits)
    if unit.endswith(_MILLION):
        return f"{value(number, unit.removesuffix(_MILLION), digits)} per million tokens"
    if unit.startswith("USD/"):
        return f"{dollars(number, digits)}/{unit[4:].strip('()').replace('*', '-')}"
    if unit[:1] in "BFJW" and not unit.startswith("Wh"):
        return _scaled(number, unit, digits)
    return f"{significant(number, digits)} {unit.replace('*', '-')}"


def between(middle: float, interval: tuple[float, float], unit: str, digits: int = 3) -> str:
    """A median with its 80% interval, in the digits that the interval supports (two of its width).

    The unit stands once where all three share it.
    """
    width = abs(interval[1] - interval[0])
    if width and middle:
        supported = math.floor(math.log10(abs(middle))) - math.floor(math.log10(width)) + 2
        digits = min(digits, max(2, supported))
    texts = [value(number, unit, digits) for number in (middle, *interval)]
    units = {text.partition(" ")[2] for text in texts}
    low, high = (text.partition(" ")[0] if len(units) == 1 else text for text in texts[1:])
    return f"{texts[0]} (80%: {low} to {high})"


def show(quantity: Quantity, digits: int = 3) -> str:
    """A quantity for people; draws as median with their 80% interval, candidates as a range."""
    if quantity.axis == "draw":
        from numpy import median

        return between(float(median(quantity.value)), quantity.interval() or (0.0, 0.0), quantity.unit, digits)
    if quantity.axis == "candidate":
        low, high = float(quantity.value.min()), float(quantity.value.max())  # type: ignore[union-attr]
        return f"{value(low, quantity.unit, digits)} to {value(high, quantity.unit, digits)}"
    return _plain(quantity.value, quantity.unit, digits)


def _plain(number: Any, unit: str, digits: int) -> str:
    """One number; an exact count (a Python integer without a unit) is written out: 60 layers, not 60.0."""
    return f"{number:,}" if unit == "1" and isinstance(number, int) else value(number, unit, digits)


def shown(entry: Mapping[str, Any], digits: int = 3) -> str:
    """`show` for a quantity as it stands in a Case document."""
    if interval := entry.get("interval"):
        return between(entry["value"], (interval[0], interval[1]), entry["unit"], digits)
    return _plain(entry["value"], entry["unit"], digits)


def fill(template: str, write: Callable[[str, int], str]) -> str:
    """Replace each ``{name}`` or ``{name|digits}`` by what ``write(name, digits)`` gives."""
    return PLACEHOLDER.sub(lambda m: write(m.group(1), int(m.group(2) or 3)), template)


def parenthesised(text: str) -> str:
    """A text without braces, which would cite a quantity in a sentence."""
    return text.replace("{", "(").replace("}", ")")


def printable(text: str) -> str:
    """A text that moves no cursor: names from files may hold terminal codes. What cannot be seen becomes U+FFFD."""
    return _UNSEEN.sub("\ufffd", text)
