"""What a measured surface is read with: the FLOPs and bytes of a kernel, and the terms beside its grid.

Plain NumPy on arrays of candidates; the fit (``scripts/fit_surfaces.py``) and the lookups
(`ridgeline.arithmetic.kernels`) share these functions, so that they cannot part.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.arithmetic import collectives
from ridgeline.core import catalog
from ridgeline.core.device import Device
from ridgeline.core.quantity import Quantity, given
from ridgeline.core.surfaces import Floats

_WIDE = 2  # the larger output tile is twice as wide as it is high
ACT = 2  # bytes of an activation: 16 bits, whatever the weights have


def number(figure: Quantity) -> float:
    """One figure as a plain float in base units."""
    return float(np.asarray(figure.base))


@dataclass(frozen=True)
class Tiles:
    """The side of an output tile, and the multiprocessors that work on tiles at once (None: unknown, no wave term)."""

    side: float
    units: float | None

    @classmethod
    def of(cls, device: Device) -> "Tiles":
        """The catalog's tile and number of multiprocessors."""
        side = 1.0 if device.tile is None else number(device.tile)
        return cls(side, None if device.sm_count is None else number(device.sm_count))


def gemm_work(m: Floats, n: Floats, k: Floats, dtype: str) -> tuple[Floats, Floats]:
    """FLOPs, and bytes when operands and result cross the memory bus once; the result has two bytes an element."""
    element = number(catalog.constant(f"dtypes.{dtype}"))
    wide = max(element, number(catalog.constant("dtypes.bf16")))
    return 2 * m * n * k, element * (m * k + k * n) + wide * m * n


def gemm_terms(m: Floats, n: Floats, tiles: Tiles) -> tuple[Floats, Floats, Floats]:
    """Logarithms of the padding of m and n to whole tiles, and of the tail wave for two tile shapes."""
    rows, wide = np.ceil(m / tiles.side), np.ceil(n / (_WIDE * tiles.side))
    square = np.ceil(n / tiles.side)
    pad = np.log(rows * square * tiles.side**2 / (m * n))
    if tiles.units is None:
        zero = np.zeros(np.shape(pad))
        return pad, zero, zero
    return pad, _tail(rows * wide / tiles.units), _tail(rows * square / tiles.units)


def _tail(waves: Floats) -> Floats:
    found: Floats = np.log(np.ceil(waves) / waves)
    return found


def attention_work(
    seq: Floats, heads: Floats, kv_heads: Floats, head_dim: Floats, batch: Floats, seen: Floats
) -> tuple[Floats, Floats]:
    """Forward FLOPs and bytes of causal attention in which a query sees at most ``seen`` keys: two matmuls a pair."""
    pairs = seen * seq - seen * (seen - 1) / 2
    element = number(catalog.constant("dtypes.bf16"))
    return 4 * head_dim * pairs * batch * heads, 2 * element * batch * seq * head_dim * (heads + kv_heads)


def bus_bytes(kind: str, size_bytes: Floats, group: Floats) -> Floats:
    """Bytes that each of ``group`` chips sends, as `ridgeline.arithmetic.collectives.sent` counts them."""
    found = collectives.sent(
        kind,  # type: ignore[arg-type]
        given("size", np.atleast_1d(size_bytes), "B"),
        given("chips", np.atleast_1d(group), "chip"),
    )
    return np.asarray(found.base, dtype=np.float64).reshape(np.shape(size_bytes))
