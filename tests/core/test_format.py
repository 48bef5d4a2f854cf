"""How numbers are written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core import format as formats
from ridgeline.core.quantity import Source, draws, leaf


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (92.5e9, "param", "92.5B params"),
        (1.85e12, "token", "1.85T tokens"),
        (1000, "chip", "1,000 chips"),
        (1, "chip", "1 chip"),
        (999_999, "param", "999,999 params"),
        (1.026e24, "FLOP", "1.026e24 FLOP"),
        (80e9, "B", "80.0 GB"),
        (3.35e12, "B/s", "3.35 TB/s"),
        (989.4e12, "FLOP/s", "989 TFLOP/s"),
        (1_800_000, "USD", "$1,800,000"),
        (2.5, "USD/(chip*h)", "$2.50/chip-h"),
        (0.683, "s", "0.683 s"),
        (0.0123, "s", "12.3 ms"),
        (45e-6, "s", "45.0 us"),
        (86400 * 30, "s", "30.0 days"),
        (3600 * 5, "s", "5.00 h"),
        (40, "%", "40.0%"),
        (1963.4, "%", "1,963%"),
        (1.9321, "nat", "1.9321 nat"),
        (0, "1", "0"),
        (13.6, "1", "13.6"),
    ],
)
def test_value(number: float, unit: str, text: str) -> None:
    assert formats.value(number, unit) == text


@pytest.mark.parametrize(
    ("number", "digits", "text"), [(1234.5, 3, "1,234"), (0.012345, 3, "0.0123"), (9.996, 3, "10.0")]
)
def test_significant(number: float, digits: int, text: str) -> None:
    assert formats.significant(number, digits) == text


@given(st.floats(min_value=1e-3, max_value=1e14))
def test_significant_loses_at_most_half_a_digit(number: float) -> None:
    written = float(formats.significant(number, 4).replace(",", ""))
    assert written == pytest.approx(number, rel=5e-4)


def test_rounding_moves_up_a_letter() -> None:
    assert formats.value(999.96e9, "param") == "1.00T params"


def test_draws_show_their_interval() -> None:
    values = np.linspace(10, 20, 101)
    shown = formats.show(draws("mfu", values, "1", "measured", Source("a study")))
    assert shown == "15.0 (80%: 11.0 to 19.0)"


def test_candidates_show_their_range() -> None:
    assert formats.show(leaf("n", np.array([1e9, 4e9]), "param")) == "1.00B params to 4.00B params"


def test_fill_writes_places_with_their_digits() -> None:
    seen: list[tuple[str, int]] = []

    def write(name: str, digits: int) -> str:
        seen.append((name, digits))
        return "X"

    assert formats.fill("{params.total|4} and {compute}; {Not A Name}", write) == "X and X; {Not A Name}"
    assert seen == [("params.total", 4), ("compute", 3)]


@pytest.mark.parametrize(
    ("middle", "interval", "unit", "text"),
    [
        (91.3e9, (86.4e9, 97.2e9), "param", "91B params (80%: 86B to 97B)"),
        (1.874e12, (1.764e12, 1.981e12), "token", "1.87T tokens (80%: 1.76T to 1.98T)"),
        (590.0, (480.0, 700.0), "s", "590 s (80%: 480 s to 12 min)"),
        (2.0, (2.0, 2.0), "1", "2.00 (80%: 2.00 to 2.00)"),
        (0.0, (-1.0, 1.0), "1", "0 (80%: -1.00 to 1.00)"),
    ],
)
def test_an_interval_decides_the_digits(middle: float, interval: tuple[float, float], unit: str, text: str) -> None:
    assert formats.between(middle, interval, unit) == text


def test_a_document_entry_reads_like_its_quantity() -> None:
    assert formats.shown({"value": 1.026e24, "unit": "FLOP"}, 4) == "1.026e24 FLOP"
    assert formats.shown({"value": 2.0, "unit": "s", "interval": [1.0, 3.0]}) == "2.0 s (80%: 1.0 to 3.0)"


@pytest.mark.parametrize(
    ("value_s", "step"), [(200000, (86400, "days")), (7200, (3600, "h")), (2.0, (1, "s")), (0.0, (1e-6, "us"))]
)
def test_time_step(value_s: float, step: tuple[float, str]) -> None:
    assert formats.time_step(value_s) == step


def test_printable_text_moves_no_cursor() -> None:
    assert formats.printable("a\x1b[31mb\x9b\u202ec\ud800\x00") == "a\ufffd[31mb\ufffd\ufffdc\ufffd\ufffd"
    assert formats.printable("rows\n\twith ä, 漢 and 1×2 …") == "rows\n\twith ä, 漢 and 1×2 …"
