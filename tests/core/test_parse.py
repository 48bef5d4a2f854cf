"""What people type, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core import parse
from ridgeline.core.errors import InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("15T", 15 * 10**12),
        ("70B", 70 * 10**9),
        ("70 billion".replace(" billion", "B params"), 70 * 10**9),
        ("1,000", 1000),
        ("1_000_000", 10**6),
        ("1e12", 1e12),
        ("2.5e3", 2500.0),
        ("0.5B", 5e8),
        (".5k", 500.0),
        ("8k", 8000),
        ("3 tokens", 3),
        (12, 12),
    ],
)
def test_count(text: str | float, value: float) -> None:
    assert parse.count(text, where="--tokens") == value


@pytest.mark.parametrize("text", ["", "k", "15X", "-3", "0", "1e400", "nan", "inf", "1e61", "1.2.3", "T15", "15TT"])
def test_count_refuses(text: str) -> None:
    with pytest.raises(InputError, match="--tokens") as caught:
        parse.count(text, where="--tokens", what="tokens")
    assert caught.value.exit_code == 2


@given(st.integers(min_value=1, max_value=10**15))
def test_whole_numbers_stay_exact(number: int) -> None:
    assert parse.count(f"{number:,}", where="N") == number
    assert isinstance(parse.count(str(number), where="N"), int)


@pytest.mark.parametrize(
    ("text", "value"), [("8k", 8192), ("128K", 131072), ("1M", 1048576), ("8000", 8000), (4096, 4096), ("0.5k", 512)]
)
def test_context(text: str | int, value: int) -> None:
    assert parse.context(text, where="--context") == value


@pytest.mark.parametrize("text", ["8T", "1.3", "0", "-8k", "eight", "nan", "1e10", "1e30"])
def test_context_refuses(text: str) -> None:
    with pytest.raises(InputError, match="context"):
        parse.context(text, where="--context")


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("80GB", "B", 80e9),
        ("80 GiB", "B", 80 * 2**30),
        ("3.35TB/s", "B/s", 3.35e12),
        ("400 Gbit/s", "B/s", 50e9),
        (7, "B", 7.0),
        ("700W", "W", 700.0),
    ],
)
def test_size(text: str | float, unit: str, value: float) -> None:
    assert parse.size(text, where="--hbm", unit=unit) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text", ["80 s", "80 apples", "0GB", "-1GB"])
def test_size_refuses(text: str) -> None:
    with pytest.raises(InputError, match="--hbm"):
        parse.size(text, where="--hbm")


@pytest.mark.parametrize(
    ("text", "bare", "seconds"),
    [
        ("30d", "s", 30 * 86400),
        ("30", "day", 30 * 86400),
        ("12h", "s", 43200),
        ("45min", "s", 2700),
        ("2w", "s", 14 * 86400),
        ("250ms", "s", 0.25),
        ("1.5", "s", 1.5),
        ("1 year", "s", 365.25 * 86400),
    ],
)
def test_duration(text: str, bare: str, seconds: float) -> None:
    assert parse.duration(text, where="--days", bare=bare) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("text", ["30 GB", "-1d", "0d", "tomorrow"])
def test_duration_refuses(text: str) -> None:
    with pytest.raises(InputError, match="--days"):
        parse.duration(text, where="--days")


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("1000xH100", (1000, "H100")),
        ("1000 x H100", (1000, "H100")),
        ("1,024 H100-SXM", (1024, "H100-SXM")),
        ("1kxH100", (1000, "H100")),
        ("2*A100", (2, "A100")),
        ("8×B200", (8, "B200")),
    ],
)
def test_chips(text: str, pair: tuple[int, str]) -> None:
    assert parse.chips(text) == pair


@pytest.mark.parametrize("text", ["H100", "x H100", "0xH100", "1.5xH100", "-2xH100", ""])
def test_chips_refuses(text: str) -> None:
    with pytest.raises(InputError, match="chips"):
        parse.chips(text)


def test_span_reads_ends_and_lists() -> None:
    assert parse.span("1e12..1e16", where="--served") == (1e12, 1e16)
    assert parse.span("1e16,1T,100T", where="--served") == (1e12, 1e14, 1e16)
    with pytest.raises(InputError, match="--served"):
        parse.span("1e12..", where="--served")
