"""What the hardware's tile makes of a matmul: padding, and the tail wave.

A matrix unit works on whole tiles: a dimension is padded up to a multiple of the tile, and the padded
multiplications are executed too. A launch works in waves of one output tile per unit (or a few): the last,
partly filled wave takes as long as a full one. Sides are plain counts (unit ``1``).

This is a bound from the shape alone: a kernel may choose a smaller tile for a small matrix, and split-k or
persistent kernels fill the tail, at a cost of their own.
"""

from dataclasses import dataclass

from ridgeline.arithmetic.inputs import require_positive, under
from ridgeline.core.quantity import Quantity, derive


@dataclass(frozen=True)
class MatmulShape:
    """``[m, k] x [k, n]``: three plain counts, each a number or an array of candidates."""

    m: Quantity
    k: Quantity
    n: Quantity

    @property
    def sides(self) -> dict[str, Quantity]:
        """The sides by their symbol in formulas."""
        return {"m": self.m, "k": self.k, "n": self.n}


@dataclass(frozen=True)
class PaddedMatmul:
    """``useful`` and ``executed`` FLOP, and their ratio ``efficiency`` in percent."""

    useful: Quantity
    executed: Quantity
    efficiency: Quantity


@dataclass(frozen=True)
class Waves:
    """``count`` of waves, how full the last one is (``tail``, percent), and the ``efficiency`` in percent."""

    count: Quantity
    tail: Quantity
    efficiency: Quantity


def tile_efficiency(size: Quantity, tile: Quantity, prefix: str = "") -> Quantity:
    """``tile.efficiency`` in percent: the share of a padded dimension that is useful.

    ``size`` and ``tile`` in the same unit. 100% where ``size`` is a multiple of ``tile``.
    """
    require_positive(size, tile)
    text = "size/(ceil(size/tile)*tile)"
    return derive(under(prefix, "tile.efficiency"), text, "%", size=size, tile=tile).titled("Tile efficiency")


def padded_matmul(shape: MatmulShape, tile: Quantity, prefix: str = "") -> PaddedMatmul:
    """``matmul.useful``, ``matmul.executed`` (FLOP) and ``matmul.efficiency`` with every side padded to ``tile``."""
    require_positive(tile, *shape.sides.values())
    useful = derive(under(prefix, "matmul.useful"), "2*m*k*n", "FLOP", **shape.sides)
    padded = "2*ceil(m/tile)*tile*ceil(k/tile)*tile*ceil(n/tile)*tile"
    executed = derive(under(prefix, "matmul.executed"), padded, "FLOP", tile=tile, **shape.sides)
    share = derive(under(prefix, "matmul.efficiency"), "useful/executed", "%", useful=useful, executed=executed)
    return PaddedMatmul(
        useful.titled("Useful FLOPs"),
        executed.titled("Executed FLOPs"),
        share.titled("Useful share of a padded matmul"),
    )


def output_tiles(m: Quantity, n: Quantity, tile_m: Quantity, tile_n: Quantity, prefix: str = "") -> Quantity:
    """``waves.tiles``: how many output tiles an ``m x n`` result is cut into."""
    require_positive(m, n, tile_m, tile_n)
    text = "ceil(m/tile_m)*ceil(n/tile_n)"
    return derive(under(prefix, "waves.tiles"), text, "1", m=m, n=n, tile_m=tile_m, tile_n=tile_n)


def waves(tiles: Quantity, slots: Quantity, prefix: str = "") -> Waves:
    """Wave quantization: ``tiles`` of work over ``slots`` that run at once (units x tiles each holds).

    ``waves.count`` is 3.42 for 451 or 452 tiles on 132 units; ``waves.tail`` says how full the last wave is (42%;
    100% when it divides); ``waves.efficiency`` is the share of slots used, count/ceil(count).
    """
    require_positive(tiles, slots)
    count = derive(under(prefix, "waves.count"), "tiles/slots", "1", tiles=tiles, slots=slots)
    tail = derive(under(prefix, "waves.tail"), "waves - (ceil(waves) - 1)", "%", waves=count)
    efficiency = derive(under(prefix, "waves.efficiency"), "waves/ceil(waves)", "%", waves=count)
    return Waves(count.titled("Waves"), tail.titled("Fill of the last wave"), efficiency.titled("Wave efficiency"))
