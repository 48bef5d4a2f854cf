"""FLOPs, bytes and the terms beside a grid, against the formulas that own them."""

import numpy as np
import pytest

from ridgeline.arithmetic import pairs
from ridgeline.arithmetic.surface_terms import Tiles, attention_work, bus_bytes, gemm_terms, gemm_work
from ridgeline.core import catalog
from ridgeline.core.formula import parse

ONE = np.ones(1)


def test_gemm_work_counts_each_operand_once() -> None:
    flops, moved = gemm_work(8 * ONE, 4 * ONE, 2 * ONE, "bf16")
    assert flops[0] == 2 * 8 * 4 * 2
    assert moved[0] == 2 * (8 * 2 + 2 * 4 + 8 * 4)
    _, eight_bit = gemm_work(8 * ONE, 4 * ONE, 2 * ONE, "fp8")
    assert eight_bit[0] == (8 * 2 + 2 * 4) + 2 * 8 * 4


@pytest.mark.parametrize("seq", [1, 5, 4096])
@pytest.mark.parametrize("window", [1, 3, 4096])
def test_attention_pairs_are_those_of_the_pairs_module(seq: int, window: int) -> None:
    limit = min(seq, window)
    flops, _ = attention_work(seq * ONE, 3 * ONE, ONE, 64 * ONE, 2 * ONE, limit * ONE)
    exact = parse(pairs.PAIRS["exact", "window"]).evaluate({"T": seq, "W": limit})
    assert flops[0] == 4 * 64 * 2 * 3 * exact


def test_aligned_shapes_that_fill_whole_waves_have_no_terms() -> None:
    pad, wide, square = gemm_terms(128 * 11 * ONE, 256 * 12 * ONE, Tiles(128, 132))
    assert (pad[0], wide[0], square[0]) == pytest.approx((0, 0, 0))


def test_one_row_more_is_one_tile_more() -> None:
    pad, wide, _ = gemm_terms(1025 * ONE, 1024 * ONE, Tiles(128, 36))
    assert np.exp(pad[0]) == pytest.approx(1152 / 1025)
    assert np.exp(wide[0]) == pytest.approx(1)  # 9 x 4 tiles on 36 units
    assert gemm_terms(1025 * ONE, 1024 * ONE, Tiles(128, None))[1][0] == 0


def test_tiles_come_from_the_catalog() -> None:
    assert Tiles.of(catalog.device("H100-SXM-80GB")) == Tiles(128.0, 132.0)


def test_bus_bytes_broadcast() -> None:
    sent = bus_bytes("all_reduce", np.array([8.0, 16.0]), np.array([4.0, 1.0]))
    assert sent == pytest.approx([12.0, 0.0])
