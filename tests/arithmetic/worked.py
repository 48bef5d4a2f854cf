"""What the tests of worked numbers share: the hardware as those figures use it, and short leaves."""

from typing import Any

import pytest

from ridgeline.arithmetic.latency import Chip
from ridgeline.arithmetic.roofline import Rates
from ridgeline.core.quantity import Quantity, given


def q(value: Any, unit: str, name: str = "given") -> Quantity:
    """A leaf; give a name where several meet in one Case."""
    return given(name, value, unit, "the test")


def number(quantity: Quantity, unit: str | None = None) -> Any:
    """The value, in its own unit or another."""
    return quantity.to(unit or quantity.unit)


def printed(text: str) -> Any:
    """A figure as print rounds it: half a unit of its last digit either way, ``"5.822"``, ``"1.459e25"``."""
    mantissa, _, exponent = text.partition("e")
    scale = 10.0 ** int(exponent or 0)
    places = len(mantissa.partition(".")[2])
    return pytest.approx(float(mantissa) * scale, rel=1e-9, abs=0.5000001 * 10.0**-places * scale)


# peak FLOP/s, memory B, B/s, W
_HARDWARE = {
    "H100": (990e12, 80e9, 3.35e12, 700),
    "A100-80": (312e12, 80e9, 2.03e12, 400),
    "v5e": (197e12, 16e9, 0.819e12, 170),
    "v5p": (459e12, 95e9, 2.77e12, 600),
}


def chip(name: str) -> Chip:
    """Peak, bandwidth and memory of a chip of the worked numbers."""
    peak, memory, bandwidth, _ = _HARDWARE[name]
    return Chip(q(peak, "FLOP/s/chip", "peak"), q(bandwidth, "B/s/chip", "bandwidth"), q(memory, "B/chip", "memory"))


def rates(name: str) -> Rates:
    """The same for a roofline."""
    one = chip(name)
    return Rates(one.peak, one.bandwidth)


def power(name: str) -> Quantity:
    """Rated power of a chip of the worked numbers."""
    return q(_HARDWARE[name][3], "W/chip", "power")
