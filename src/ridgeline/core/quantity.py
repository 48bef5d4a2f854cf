"""A number that carries its derivation.

A `Quantity` is a leaf (specified, published, measured or assumed, with a source) or a `derive`d value,
whose formula text is the one that was evaluated. Values may be NumPy arrays: of *candidates* (a search
uses the same formula as the memo) or of *draws* (uncertainty). Together they form a small DAG.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from ridgeline.core import formula as formulas
from ridgeline.core import units
from ridgeline.core.errors import InputError
from ridgeline.core.formula import FormulaError, Number

Kind = Literal["specified", "published", "measured", "assumed", "derived"]
Axis = Literal["", "candidate", "draw"]


@dataclass(frozen=True)
class Source:
    """Where a figure comes from: the title, where in it, and the day it was read (ISO date)."""

    title: str
    where: str = ""
    read_on: str = ""
    url: str = ""


@dataclass(frozen=True, eq=False)
class Quantity:
    """A named value with a unit and a derivation.

    ``name`` is stable, dotted, lower case (other programs rely on it); ``label`` is what people read.
    ``value`` is in ``unit``. ``inputs`` maps the formula's symbols to quantities. ``axis`` says what an
    array runs over.
    """

    name: str
    value: Number
    unit: str
    kind: Kind
    formula: str = ""
    inputs: Mapping[str, "Quantity"] = field(default_factory=dict)
    source: Source | None = None
    note: str = ""
    label: str = ""
    axis: Axis = ""

    @property
    def base(self) -> Number:
        """The value in base units (s, B, J, USD, FLOP, token, chip)."""
        factor, _ = units.parse(self.unit)
        return self.value if factor == 1 else self.value * factor

    def to(self, unit: str) -> Number:
        """The value in another unit of the same dimensions."""
        factor, dims = units.parse(unit)
        if dims != units.parse(self.unit)[1]:
            raise FormulaError(f"{self.name} is in {self.unit}, which is not convertible to {unit}")
        return self.value if unit == self.unit else self.base / factor

    def titled(self, label: str, note: str = "") -> "Quantity":
        """The same quantity with a label, and a note, for people."""
        return replace(self, label=label, note=note or self.note)

    def named(self, name: str) -> "Quantity":
        """The same quantity under another name."""
        return replace(self, name=name)

    def at(self, index: int, rename: Callable[[str], str] = lambda name: name) -> "Quantity":
        """One candidate of an array, with its whole derivation; ``rename`` is applied to what had an axis."""
        return _at(self, index, rename, {})

    def walk(self) -> Iterator["Quantity"]:
        """This quantity and everything it rests on, inputs first, each object once."""
        seen: set[int] = set()
        yield from _walk(self, seen)

    def interval(self, level: float = 0.8) -> tuple[float, float] | None:
        """The central interval of a quantity of draws; None for a plain number."""
        if self.axis != "draw":
            return None
        low, high = np.quantile(self.value, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


def renamed(quantities: Iterable[Quantity], rename: Callable[[str], str]) -> list[Quantity]:
    """The same quantities with every name in their derivations passed through ``rename``; sharing is kept.

    How one Case holds several models: ``params.total`` becomes ``recipe.1.params.total``, while what
    ``rename`` leaves alone (a device's peak) stays one number.
    """
    done: dict[int, Quantity] = {}
    return [_renamed(quantity, rename, done) for quantity in quantities]


def _renamed(quantity: Quantity, rename: Callable[[str], str], done: dict[int, Quantity]) -> Quantity:
    if id(quantity) not in done:
        inputs = {symbol: _renamed(item, rename, done) for symbol, item in quantity.inputs.items()}
        same = rename(quantity.name) == quantity.name and all(inputs[s] is i for s, i in quantity.inputs.items())
        done[id(quantity)] = quantity if same else replace(quantity, name=rename(quantity.name), inputs=inputs)
    return done[id(quantity)]


def _walk(quantity: Quantity, seen: set[int]) -> Iterator[Quantity]:
    if id(quantity) in seen:
        return
    seen.add(id(quantity))
    for item in quantity.inputs.values():
        yield from _walk(item, seen)
    yield quantity


def _at(quantity: Quantity, index: int, rename: Callable[[str], str], done: dict[int, Quantity]) -> Quantity:
    if id(quantity) in done:
        return done[id(quantity)]
    if quantity.axis != "candidate":
        result = quantity
    else:
        assert isinstance(quantity.value, np.ndarray)
        value = quantity.value[index].item()
        inputs = {symbol: _at(item, index, rename, done) for symbol, item in quantity.inputs.items()}
        result = replace(quantity, name=rename(quantity.name), value=value, inputs=inputs, axis="")
    done[id(quantity)] = result
    return result


def leaf(
    name: str, value: Any, unit: str, kind: Kind = "specified", source: Source | None = None, note: str = ""
) -> Quantity:
    """A figure that is given, not derived.

    Raises `InputError` for a value that is not finite. A published or measured figure must have a source.
    """
    units.parse(unit)
    if kind in ("published", "measured") and source is None:
        raise FormulaError(f"{name} is {kind} and has no source")
    if isinstance(value, np.ndarray):
        checked = value.astype(np.float64) if value.dtype.kind in "iu" else value  # int64 6*N*D wraps at 9.2e18
        return Quantity(name, checked, unit, kind, source=source, note=note, axis="candidate")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError.expected("a finite number", value, where=name)
    return Quantity(name, value, unit, kind, source=source, note=note)


def given(name: str, value: Any, unit: str, where: str = "the caller", note: str = "") -> Quantity:
    """A figure that the user specified; ``where`` is the flag or the file's path."""
    return leaf(name, value, unit, "specified", Source("given by the user", where), note)


def draws(name: str, values: np.ndarray[Any, Any], unit: str, kind: Kind, source: Source, note: str = "") -> Quantity:
    """An uncertain figure as an array of draws."""
    return replace(leaf(name, np.asarray(values, dtype=np.float64), unit, kind, source, note), axis="draw")


def derive(name: str, formula: str, unit: str, /, **inputs: Quantity) -> Quantity:
    """Evaluate exactly the printed formula and check that its unit is the declared one.

    Values are brought to base units first, so ``price*chips*days`` may mix hours and days. Raises
    `FormulaError` for an unknown or unused input or a unit that does not fit (a bug of ours), and
    `InputError` where the numbers make the result infinite or undefined (a zero bandwidth).
    """
    parsed = formulas.parse(formula)
    if set(parsed.names) != set(inputs):
        missing, unused = set(parsed.names) - set(inputs), set(inputs) - set(parsed.names)
        raise FormulaError(f"{name}: formula {formula!r} lacks {sorted(missing)}, does not use {sorted(unused)}")
    _check(name, formula, unit, tuple((symbol, item.unit) for symbol, item in inputs.items()))
    try:
        with np.errstate(all="ignore"):
            value = parsed.evaluate({symbol: item.base for symbol, item in inputs.items()})
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        raise _undefined(name, formula, inputs) from error
    factor, _ = units.parse(unit)
    value = value if factor == 1 else value / factor
    if isinstance(value, np.ndarray):
        return Quantity(name, value, unit, "derived", formula, inputs, axis=_axis(name, inputs))
    if isinstance(value, complex) or not math.isfinite(value):
        raise _undefined(name, formula, inputs)
    return Quantity(name, value, unit, "derived", formula, inputs)


@lru_cache(maxsize=16384)
def _check(name: str, formula: str, unit: str, input_units: tuple[tuple[str, str], ...]) -> None:
    dims = formulas.parse(formula).dims({symbol: units.parse(text)[1] for symbol, text in input_units})
    declared = units.parse(unit)[1]
    if not units.same(dims, declared):
        raise FormulaError(f"{name}: {formula!r} gives {units.spell(dims)}, but {unit} was declared")


def _axis(name: str, inputs: Mapping[str, Quantity]) -> Axis:
    axes = {item.axis for item in inputs.values() if item.axis}
    if len(axes) > 1:
        raise FormulaError(f"{name}: candidates and draws cannot be combined in one formula")
    return axes.pop()


def _undefined(name: str, formula: str, inputs: Mapping[str, Quantity]) -> InputError:
    numbers = ", ".join(f"{symbol} = {item.value!r} {item.unit}" for symbol, item in inputs.items())
    return InputError(
        f"Expected a finite {name}, got none from {formula} with {numbers[:400]},",
        where=name,
        hint="a rate, size or peak that is zero or absurdly large makes the formula undefined",
    )
