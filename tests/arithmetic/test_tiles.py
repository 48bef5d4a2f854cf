"""Padding and waves. The figures are those of the worked numbers, sections A and H."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arithmetic.worked import number, printed, q

from ridgeline.arithmetic.tiles import MatmulShape, output_tiles, padded_matmul, tile_efficiency, waves
from ridgeline.core.errors import InputError

SIDES = st.integers(min_value=1, max_value=10**6)


@pytest.mark.parametrize(
    ("size", "percent"),
    [(11000, "99.9"), (11008, "100"), (4097, "97.0"), (129, "50.4")],
    ids=["11000", "11008", "4097", "129"],
)
def test_tile_efficiency(size: int, percent: str) -> None:
    assert number(tile_efficiency(q(size, "1", "size"), q(128, "1", "tile"))) == printed(percent)


def test_padded_matmul() -> None:
    found = padded_matmul(MatmulShape(q(1024, "1", "m"), q(4000, "1", "k"), q(4000, "1", "n")), q(128, "1", "tile"))
    assert number(found.useful) == 32_768_000_000
    assert number(found.executed) == 34_359_738_368
    assert number(found.efficiency) == printed("95.4")


def test_wave_quantization_of_the_incident() -> None:
    found = waves(q(3.42 * 132, "1", "tiles"), q(132, "1", "slots"))
    assert number(found.count) == pytest.approx(3.42)
    assert number(found.tail) == printed("42")
    assert number(found.efficiency) == pytest.approx(100 * 3.42 / 4)


def test_last_wave_is_full_when_it_divides() -> None:
    found = waves(q(264, "1", "tiles"), q(132, "1", "slots"))
    assert (number(found.count), number(found.tail), number(found.efficiency)) == (2, 100, 100)


def test_output_tiles() -> None:
    tiles = output_tiles(q(4096, "1", "m"), q(4097, "1", "n"), q(128, "1", "tm"), q(256, "1", "tn"))
    assert number(tiles) == 32 * 17


@given(size=SIDES, tile=st.integers(1, 512))
def test_a_multiple_is_whole_and_nothing_is_below_one_in_tile(size: int, tile: int) -> None:
    share = number(tile_efficiency(q(size, "1", "size"), q(tile, "1", "tile")), "1")
    assert 1 / tile - 1e-12 <= share <= 1
    assert (share == 1) == (size % tile == 0)


@given(m=SIDES, k=SIDES, n=SIDES, tile=st.sampled_from([8, 16, 64, 128, 256]))
def test_padding_is_the_product_of_its_sides(m: int, k: int, n: int, tile: int) -> None:
    side = q(tile, "1", "tile")
    found = padded_matmul(MatmulShape(q(m, "1", "m"), q(k, "1", "k"), q(n, "1", "n")), side)
    each = [number(tile_efficiency(q(size, "1", "size"), side), "1") for size in (m, k, n)]
    assert number(found.efficiency, "1") == pytest.approx(math.prod(each), rel=1e-12)


def test_arrays_of_candidates_agree_with_single_ones() -> None:
    sizes = np.array([100.0, 128.0, 129.0, 11000.0])
    together = number(tile_efficiency(q(sizes, "1", "size"), q(128, "1", "tile")))
    alone = [number(tile_efficiency(q(float(size), "1", "size"), q(128, "1", "tile"))) for size in sizes]
    np.testing.assert_array_equal(together, alone)


def test_no_tile_is_refused() -> None:
    with pytest.raises(InputError, match="above zero"):
        tile_efficiency(q(128, "1", "size"), q(0, "1", "tile"))
