"""What every formula module needs around `derive`: names under a prefix, and refusal of impossible inputs."""

from typing import Any

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, Source, leaf


def under(prefix: str, name: str) -> str:
    """``under("h100", "roofline.ridge")`` is ``h100.roofline.ridge``; an empty prefix changes nothing."""
    return f"{prefix}.{name}" if prefix else name


def place(quantity: Quantity) -> str:
    """Where a figure came from, for an error message: the flag or file it was read from, else its name."""
    return (quantity.source.where if quantity.source else "") or quantity.name


def known(quantity: Quantity | None, what: str) -> Quantity:
    """The figure, or an `InputError` that names the one that no source states."""
    if quantity is None:
        hint = "give a TOML file of the device with that figure, or another device"
        raise InputError(f"Expected {what}, got no figure from any source,", where="the catalog", hint=hint)
    return quantity


def require_positive(*quantities: Quantity) -> None:
    """Raise `InputError` for the first value that is not above zero. Arrays are checked as a whole."""
    for quantity in quantities:
        _require(quantity, np.all(np.asarray(quantity.value) > 0), "a value above zero")


def require_not_negative(*quantities: Quantity) -> None:
    """Raise `InputError` for the first value below zero."""
    for quantity in quantities:
        _require(quantity, np.all(np.asarray(quantity.value) >= 0), "a value of zero or more")


def require_fraction(*quantities: Quantity) -> None:
    """Raise `InputError` for the first value outside (0, 1], such as an MFU above 100%."""
    for quantity in quantities:
        base = np.asarray(quantity.base)
        _require(quantity, np.all((base > 0) & (base <= 1)), "a share above 0 and at most 1 (100%)")


def require_at_least(quantity: Quantity, low: float) -> None:
    """Raise `InputError` for a value below ``low`` (in base units)."""
    _require(quantity, np.all(np.asarray(quantity.base) >= low), f"a value of at least {low:g}")


def one_chip() -> Quantity:
    """The count for formulas over ``chips`` when the question is about a single one."""
    return leaf("one.chip", 1, "chip", "specified", Source("the question", "a single chip"))


def _require(quantity: Quantity, holds: Any, expected: str) -> None:
    if not holds:
        worst = float(np.min(np.asarray(quantity.value)))
        worst = float(np.max(np.asarray(quantity.value))) if worst > 0 and "at most" in expected else worst
        raise InputError.expected(expected, f"{worst:g} {quantity.unit} for {quantity.name}", where=place(quantity))
