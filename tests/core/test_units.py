"""Units: factors, dimensions, and which counts may name a result."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core import units
from ridgeline.core.errors import InputError


@pytest.mark.parametrize(
    ("unit", "factor", "dims"),
    [
        ("1", 1, {}),
        ("", 1, {}),
        ("%", 0.01, {}),
        ("s", 1, {"[time]": 1}),
        ("h", 3600, {"[time]": 1}),
        ("day", 86400, {"[time]": 1}),
        ("ms", 1e-3, {"[time]": 1}),
        ("GB", 10**9, {"[data]": 1}),
        ("GiB", 2**30, {"[data]": 1}),
        ("bit", 0.125, {"[data]": 1}),
        ("TFLOP/s", 10**12, {"[compute]": 1, "[time]": -1}),
        ("FLOP/s/chip", 1, {"[compute]": 1, "[time]": -1, "[chips]": -1}),
        ("kWh", 3_600_000, {"[energy]": 1}),
        ("USD/kWh", 1 / 3.6e6, {"[money]": 1, "[energy]": -1}),
        ("FLOP/B", 1, {"[compute]": 1, "[data]": -1}),
        ("param", 1, {"[compute]": 1, "[tokens]": -1}),
        ("B/param", 1, {"[data]": 1, "[compute]": -1, "[tokens]": 1}),
        ("pJ/bit", 8e-12, {"[energy]": 1, "[data]": -1}),
    ],
)
def test_parse(unit: str, factor: float, dims: dict[str, float]) -> None:
    found = units.parse(unit)
    assert found[0] == pytest.approx(factor, rel=1e-12)
    assert found[1] == dims


def test_watts_are_joules_per_second() -> None:
    assert units.parse("W")[1] == units.parse("J/s")[1]
    assert units.parse("kW*h")[0] == pytest.approx(units.parse("kWh")[0])


def test_parameters_times_tokens_are_flops() -> None:
    assert units.parse("param*token")[1] == units.parse("FLOP")[1]


def test_whole_factors_stay_integers() -> None:
    assert isinstance(units.parse("TB")[0], int)
    assert units.parse("TB")[0] == 10**12


@pytest.mark.parametrize("unit", ["furlong", "GB/", "FLOP//s", "s s(", "banana*s"])
def test_refused(unit: str) -> None:
    with pytest.raises(InputError, match="unit"):
        units.parse(unit)


@pytest.mark.parametrize(
    ("result", "declared", "fits"),
    [
        ("s", "s", True),
        ("s", "h", True),
        ("1", "param", True),  # a product of dimensions may be named what it counts
        ("1", "token", True),
        ("1", "FLOP", True),
        ("B", "B/token", True),  # bytes of one token may be called that
        ("token", "1", False),  # but a count does not vanish unsaid
        ("token", "request", False),
        ("param", "FLOP", False),
        ("B", "s", False),
        ("1", "s", False),
        ("FLOP", "FLOP/s", False),
        ("s/chip", "s", False),
    ],
)
def test_same(result: str, declared: str, fits: bool) -> None:
    assert units.same(units.parse(result)[1], units.parse(declared)[1]) is fits


@given(
    st.sampled_from(["k", "M", "G", "T", "P", "E", "m", "u", "n", "p"]), st.sampled_from(["B", "FLOP", "s", "J", "W"])
)
def test_prefixes_scale_and_keep_dimensions(prefix: str, base: str) -> None:
    scale = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12}
    factor, dims = units.parse(prefix + base)
    assert factor == pytest.approx(scale[prefix] * units.parse(base)[0], rel=1e-12)
    assert dims == units.parse(base)[1]


def test_spell() -> None:
    assert units.spell({}) == "a number"
    assert units.spell({"[time]": -1.0, "[data]": 1.0}) == "[data] [time]^-1"
