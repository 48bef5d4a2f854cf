"""Times as written -> integer ns, exactly."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from ridgeline.trace.clock import EXACT_BELOW_US, UNREADABLE, nanoseconds


@given(st.lists(st.integers(0, int(EXACT_BELOW_US * 1000) - 1000), min_size=1))
def test_floats_of_relative_time_are_exact(ns: list[int]) -> None:
    written = [float(Decimal(t) / 1000) for t in ns]  # what a JSON parser makes of three decimals
    assert nanoseconds(written).tolist() == ns


@given(st.lists(st.integers(1_000_000_000_000_000_000, 2_000_000_000_000_000_000), min_size=1), st.booleans())
def test_text_of_epoch_time_is_exact(ns: list[int], short: bool) -> None:
    texts = [f"{t // 1000}.{t % 1000:03d}" for t in ns]
    if short:
        texts = [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]
    assert nanoseconds([Raw(text.encode()) for text in texts]).tolist() == ns
    assert nanoseconds(texts).tolist() == ns
    assert nanoseconds([Raw(f'"{text}"'.encode()) for text in texts]).tolist() == ns


@pytest.mark.parametrize(
    ("values", "ns"),
    [
        ([1_700_000_000_000_000], [1_700_000_000_000_000_000]),  # epoch us
        ([1_700_000_000_123_456_789], [1_700_000_000_123_456_789]),  # epoch ns
        (["1700000000123456789"], [1_700_000_000_123_456_789]),
        ([1, 2.5, "3.0005"], [1000, 2500, 3000]),
        ([-1.5], [-1500]),
        ([1e300], [UNREADABLE]),
        ([10**40], [UNREADABLE]),
        ([None, "soon", True], [UNREADABLE, UNREADABLE, 1000]),
        ([float("nan")], [UNREADABLE]),
        ([Raw(b"null"), Raw(b"[1]"), Raw(b"7")], [UNREADABLE, UNREADABLE, 7000]),
        ([2.5, Raw(b"3.125"), None], [2500, 3125, UNREADABLE]),
        ([], []),
    ],
)
def test_forms(values: list[object], ns: list[int]) -> None:
    found = nanoseconds(values)
    assert found.dtype == np.int64
    assert found.tolist() == ns
