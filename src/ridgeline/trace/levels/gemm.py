"""Tile and wave quantization of the matmuls of a trace, by `ridgeline.arithmetic.tiles`.

The tile is the one in the kernel's name where it has one, else the planning tile of the device. Libraries swap the
operands of row-major matrices, so of a tile that is not square the orientation that wastes less is taken.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgeline.arithmetic.tiles import output_tiles, tile_efficiency, waves
from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.trace.levels.families import LONGEST
from ridgeline.trace.levels.op_flops import Gemm

_PLAIN = re.compile(r"(?:tilesize|tile|MT|_)(\d{2,3})x(\d{2,3})(?=[x_]|$)")
_SHAPE = re.compile(r"GemmShape<\s*(\d{2,3}),\s*(\d{2,3}),")
_TUPLE = re.compile(r"tuple<\s*(?:cute::)?C<(\d{2,3})>\s*,\s*(?:cute::)?C<(\d{2,3})>")
_SOURCE = Source("the trace", "shapes and kernel names")
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Quantization:
    """One matmul: its tile, how many output tiles and waves, and the useful share of tiles and of waves (0 to 1).

    ``named`` says whether the kernel's name holds the tile. ``wave_efficiency`` is None without a unit count.
    """

    tile: tuple[int, int]
    named: bool
    tiles: int
    waves: float | None
    tile_efficiency: float
    wave_efficiency: float | None

    @property
    def efficiency(self) -> float:
        """The share of the executed slots that is useful."""
        return self.tile_efficiency * (1.0 if self.wave_efficiency is None else self.wave_efficiency)


def tile_of(kernel: str) -> tuple[int, int] | None:
    """The output tile in a kernel's name: ``tilesize128x256x64``, ``_128x256_``, ``MT64x64x64``, ``GemmShape<..>``."""
    for pattern in (_SHAPE, _TUPLE, _PLAIN):
        found = pattern.search(kernel[:LONGEST])
        if found and all(8 <= int(side) <= 512 for side in found.groups()):
            return int(found.group(1)), int(found.group(2))
    return None


def quantization(
    gemms: Sequence[Gemm], kernels: Sequence[str], sm_count: int | None, planning_tile: int | None
) -> list[Quantization | None]:
    """One entry per matmul; None where neither the name nor the device gives a tile."""
    named = [tile_of(kernel) for kernel in kernels]
    default = (planning_tile, planning_tile) if planning_tile else None
    tiles = [tile or default for tile in named]
    at = [i for i, tile in enumerate(tiles) if tile is not None]
    found: list[Quantization | None] = [None] * len(gemms)
    if not at:
        return found
    sides = np.array([tiles[i] for i in at], dtype=np.float64)
    shapes = [gemms[i] for i in at]
    straight, swapped = (_evaluate(shapes, pair, sm_count) for pair in (sides, sides[:, ::-1]))
    better = straight["total"] >= swapped["total"]
    for place, i in enumerate(at):
        best, tile = (straight, tuple(sides[place])) if better[place] else (swapped, tuple(sides[place][::-1]))
        count = best.get("waves")
        found[i] = Quantization(
            (int(tile[0]), int(tile[1])), named[i] is not None, int(best["tiles"][place]),
            None if count is None else float(count[place]), float(best["tile"][place]),
            None if count is None else float(best["wave"][place]),
        )  # fmt: skip
    return found


def _evaluate(shapes: Sequence[Gemm], sides: Floats, sm_count: int | None) -> dict[str, Floats]:
    """Efficiencies as shares for one orientation of the tiles."""
    m, n = _array("gemm.m", [g.m for g in shapes]), _array("gemm.n", [g.n for g in shapes])
    high, wide = _array("gemm.tile_m", sides[:, 0]), _array("gemm.tile_n", sides[:, 1])
    useful = _base(tile_efficiency(m, high, "gemm.m")) * _base(tile_efficiency(n, wide, "gemm.n"))
    batch = np.array([max(g.batch, 1) for g in shapes], dtype=np.float64)
    tiles = _base(output_tiles(m, n, high, wide, "gemm")) * batch
    if not sm_count:
        return {"tile": useful, "tiles": tiles, "total": useful}
    slots = leaf("gemm.slots", sm_count, "1", "measured", _SOURCE)
    found = waves(_array("gemm.tiles", tiles), slots, "gemm")
    wave = _base(found.efficiency)
    return {"tile": useful, "tiles": tiles, "waves": _base(found.count), "wave": wave, "total": useful * wave}


def _array(name: str, values: Any) -> Quantity:
    return leaf(name, np.maximum(np.asarray(values, dtype=np.float64), 1.0), "1", "measured", _SOURCE)


def _base(quantity: Quantity) -> Floats:
    return np.asarray(quantity.base, dtype=np.float64)
