"""Layouts of the same sequences: what each computes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.gate.padding.layouts import (
    BUCKETED,
    LONGEST,
    PACKED,
    PADDED,
    VARLEN,
    batches,
    best_fit_decreasing,
    layouts,
)

LENGTHS = st.lists(st.integers(0, 64), min_size=1, max_size=60).filter(any)


def test_batches_in_order() -> None:
    found = batches(np.array([4, 2, 1, 1, 8]), 2)
    assert found.tokens.tolist() == [6, 2, 8]
    assert found.longest.tolist() == [4, 1, 8]
    assert found.sequences.tolist() == [2, 2, 1]
    assert found.utilisation.tolist() == [0.75, 1.0, 1.0]


def test_packing_fits_what_fits() -> None:
    assert sorted(best_fit_decreasing(np.array([6, 4, 5, 5, 0, 3]), 10).tolist()) == [3, 10, 10]


def test_slots_of_each_layout() -> None:
    found = {one.name: one for one in layouts(np.array([8, 1, 8, 1]), 16, 2)}
    assert {name: one.slots for name, one in found.items() if name not in (PACKED, VARLEN)} == {
        PADDED: 64, LONGEST: 32, BUCKETED: 18, "packed, other sequences masked": 32,
    }  # fmt: skip
    assert found[VARLEN].slots == 18
    assert sorted(found[PACKED].spans.tolist()) == [1, 1, 8, 8, 14]  # one full row, and one of two tokens with its gap


@given(LENGTHS, st.integers(1, 70))
def test_no_layout_loses_a_token_or_adds_past_padding(values: list[int], size: int) -> None:
    lengths = np.array(values)
    found = {one.name: one for one in layouts(lengths, 64, size)}
    assert found[VARLEN].slots == lengths.sum()
    for one in found.values():
        assert lengths.sum() <= one.slots <= found[PADDED].slots
    assert found[LONGEST].slots >= found.get(BUCKETED, found[VARLEN]).slots


@given(LENGTHS)
def test_packing_is_within_its_bound(values: list[int]) -> None:
    rows = best_fit_decreasing(np.array(values), 64)
    assert rows.sum() == sum(values)
    assert rows.max() <= 64
    least = -(-sum(values) // 64)
    longer_than_half = sum(value > 32 for value in values)
    assert len(rows) <= max(11 / 9 * max(least, longer_than_half) + 1, 2 * least)


@pytest.mark.parametrize("size", [None, 4])
def test_one_batch_is_not_bucketed(size: int | None) -> None:
    assert BUCKETED not in {one.name for one in layouts(np.array([1, 2, 3, 4]), 8, size)}
