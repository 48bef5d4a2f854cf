"""Columns that grow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.trace import columns
from ridgeline.trace.columns import Intern, Pieces


def test_intern_numbers_by_first_sight() -> None:
    names = Intern()
    assert [names[x] for x in "abac"] == [0, 1, 0, 2]
    assert list(names) == ["a", "b", "c"]


@given(st.lists(st.lists(st.integers(-(2**62), 2**62), max_size=9)))
def test_pieces_join_in_order_whatever_their_width(parts: list[list[int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_BLOCK_ROWS", 4)
        pieces = Pieces()
        for part in parts:
            values = np.array(part, np.int64)
            narrow = values.astype(np.int32) if (np.abs(values) < 2**31).all() else values
            pieces.append(ts=narrow, dur=values)
        assert pieces.rows == sum(map(len, parts))
        if parts:
            for name in ("ts", "dur"):
                assert name in pieces
                joined = pieces[name]
                assert joined.dtype == np.int64
                assert joined.tolist() == [x for part in parts for x in part]
                assert name not in pieces


def test_a_column_can_be_put_back() -> None:
    pieces = Pieces()
    pieces.append(ts=np.array([3]), dur=np.array([1]))
    pieces.put("ts", pieces["ts"] - 3)
    assert sorted(pieces) == ["dur", "ts"]
    assert len(pieces) == 2
    assert pieces["ts"].tolist() == [0]
