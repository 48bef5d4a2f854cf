"""Times of matmuls and attention from measured efficiency surfaces, with a roofline where nothing was measured.

Plain NumPy, vectorised over candidates; the surfaces are those of `ridgeline.core.surfaces`, fitted to public tables
by ``scripts/fit_surfaces.py``. A measured time is ``reference * exp(grid + terms)``; see docs/design/surfaces.md.

A device or data type without a surface takes the fit over all measured systems, on the roofline of its own catalog
figures: that is the typical efficiency of a kernel of that shape, with the wider interval of leaving one system out.
Where the catalog has a measured matmul ceiling, the peak is scaled by that ceiling over what ceilings usually are.

Collectives are in `ridgeline.arithmetic.fabric`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ridgeline.arithmetic.fabric import Collectives, Network, collective
from ridgeline.arithmetic.inputs import known
from ridgeline.arithmetic.surface_terms import Tiles, attention_work, gemm_terms, gemm_work, number
from ridgeline.core import catalog, surfaces
from ridgeline.core.device import Device, dtype_name
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, derive, leaf
from ridgeline.core.surfaces import TYPICAL, Estimate, Floats, Grid, Reference, Surface

__all__ = [
    "AttentionSurface",
    "Collectives",
    "Estimate",
    "GemmSurface",
    "Network",
    "attention",
    "attention_backward",
    "collective",
    "gemm",
    "head_dim_penalty",
    "misalignment_penalty",
    "mm_ceiling",
]

_SAME_RATE = {"fp16": "bf16"}  # the same matrix units at the same rate
_USUAL = "bf16"
_HALF = ("bf16", "fp16")
_DIM = 128  # the head dim that every measured system has


@dataclass(frozen=True)
class GemmSurface:
    """Matmul times of one device and data type; `gemm` makes it.

    ``measured`` says whether this device and data type have a surface of their own; ``widening`` is added to both
    ends of the interval (a logarithm).
    """

    device: Device
    dtype: str
    surface: Surface
    tiles: Tiles
    measured: bool
    widening: float

    def seconds(self, m: ArrayLike, n: ArrayLike, k: ArrayLike) -> Estimate:
        """Seconds of ``[m, k] x [k, n]`` with their 80% interval; arrays broadcast.

        Rows of an operand that do not start on the alignment of the loads pay `misalignment_penalty`. Raises
        `InputError` for a side below one.
        """
        m, n, k = sizes(m=m, n=n, k=k)
        flops, moved = gemm_work(m, n, k, self.dtype)
        logs = (np.log(m), np.log(n), np.log(k))
        ratio = self.surface.grid.at(*logs)
        for weight, term in zip(self.surface.terms.values(), gemm_terms(m, n, self.tiles), strict=True):
            ratio += weight * term
        seconds = self.surface.reference.seconds(flops, moved) * np.exp(ratio)
        astray = _misaligned(n, self.dtype) | _misaligned(k, self.dtype)
        seconds = np.where(astray, seconds * _misalignment(), seconds)
        covered = self.surface.grid.covers(*logs)
        low, high = self.surface.spread.at(flops, covered)
        ends = seconds * np.exp(low - self.widening), seconds * np.exp(high + self.widening)
        return Estimate(seconds, *ends, covered & ~astray & self.measured)


@dataclass(frozen=True)
class AttentionSurface:
    """Attention times of one device; `attention` makes it. ``by_dim`` are the surfaces by head dim.

    ``dims`` are the head dims that were measured on the device.
    """

    device: Device
    by_dim: Mapping[int, Surface]
    dims: tuple[int, ...]
    widening: float

    def seconds(
        self,
        batch: ArrayLike,
        heads: ArrayLike,
        kv_heads: ArrayLike,
        seq: ArrayLike,
        head_dim: ArrayLike,
        causal: bool = True,
        window: ArrayLike = 0,
    ) -> Estimate:
        """Seconds of one forward pass over ``batch`` sequences with their 80% interval; arrays broadcast.

        ``window`` is how many keys a query sees at most (0: all). ``causal=False`` counts every pair at the causal
        rate. Between head dims the logarithm of the time is interpolated; where keys and values differ in width, give
        the mean of both. Raises `InputError` for a size below one.
        """
        limit = np.where(np.asarray(window) == 0, np.inf, window)
        b, h, kv, s, d, w = sizes(batch=batch, heads=heads, kv_heads=kv_heads, seq=seq, head_dim=head_dim, window=limit)
        call = _Call(b, h, kv, s, d, np.minimum(w, s))
        known_dims = np.array(sorted(self.by_dim), dtype=np.float64)
        total = np.zeros((3, *call.seq.shape))
        inside = np.isin(call.head_dim, self.dims)
        for index, dim in enumerate(sorted(self.by_dim)):
            share = _share(known_dims, call.head_dim, index)
            picked = share > 0
            if picked.any():
                parts, covered = _forward(self.by_dim[dim], call.at(picked))
                total[:, picked] += share[picked] * parts
                inside[picked] &= covered
        wide = self.widening + np.where(np.isin(call.head_dim, self.dims), 0.0, stand_in_spread())
        seconds = np.exp(total[0]) * (1.0 if causal else call.unmasked)
        return Estimate(seconds, seconds * np.exp(total[1] - wide), seconds * np.exp(total[2] + wide), inside)


@dataclass(frozen=True)
class _Call:
    """An attention call as equally long arrays; ``seen`` is how many keys the last query sees."""

    batch: Floats
    heads: Floats
    kv_heads: Floats
    seq: Floats
    head_dim: Floats
    seen: Floats

    def at(self, picked: NDArray[np.bool_]) -> "_Call":
        return _Call(*(item[picked] for item in vars(self).values()))

    @property
    def work(self) -> tuple[Floats, Floats]:
        return attention_work(self.seq, self.heads, self.kv_heads, self.head_dim, self.batch, self.seen)

    @property
    def unmasked(self) -> Floats:
        """All pairs over those of the causal mask."""
        found: Floats = 2 * self.seq / (2 * self.seq - self.seen + 1)
        return found


def _forward(surface: Surface, call: _Call) -> tuple[Floats, NDArray[np.bool_]]:
    """ln(seconds) and the ends of its interval, stacked, and where the grid covers the call."""
    flops, moved = call.work
    logs = (np.log(call.seq), np.log(call.batch * call.heads), np.log(call.seen / call.seq))
    covered = surface.grid.covers(*logs)
    ratio = surface.grid.at(*logs) + surface.terms["grouping"] * np.log(call.heads / call.kv_heads)
    low, high = surface.spread.at(flops, covered)
    return np.stack([np.log(surface.reference.seconds(flops, moved)) + ratio, low, high]), covered


def _share(dims: Floats, head_dim: Floats, index: int) -> Floats:
    """The weight of the surface at ``dims[index]``: linear in the logarithm of the head dim, clamped at both ends."""
    every = np.zeros(len(dims))
    every[index] = 1.0
    found: Floats = np.interp(np.log(head_dim), np.log(dims), every)
    return found


def gemm(device: Device | str, dtype: str) -> GemmSurface:
    """Matmul times of that device (or its name in the catalog) and data type.

    Raises `UnknownDeviceError`, and `InputError` where no source states the peak or the memory bandwidth.
    """
    return _gemm(catalog.device(device) if isinstance(device, str) else device, dtype_name(dtype))


def _gemm(device: Device, dtype: str) -> GemmSurface:
    held = surfaces.measured(device.slug)
    found = None if held is None else held.gemm.get(dtype) or held.gemm.get(_SAME_RATE.get(dtype, ""))
    if held is None or found is None:
        typical = surfaces.load(TYPICAL).gemm
        usual = typical[_SAME_RATE.get(dtype, dtype) if _SAME_RATE.get(dtype, dtype) in typical else _USUAL]
        surface = replace(usual, reference=_roofline(usual.reference, device, dtype))
        return GemmSurface(device, dtype, surface, Tiles.of(device), False, 0.0)
    exact = device.slug in held.devices and dtype in held.gemm
    surface = replace(found, reference=_own(found.reference, device))
    tiles = Tiles.of(catalog.device(held.devices[0]))
    return GemmSurface(device, dtype, surface, tiles, exact, 0.0 if exact else stand_in_spread())


def attention(device: Device | str, dtype: str = _USUAL) -> AttentionSurface:
    """Forward attention times of that device. Kernels were measured in bf16; another data type takes their times.

    Raises as `gemm` does.
    """
    return _attention(catalog.device(device) if isinstance(device, str) else device, dtype_name(dtype))


def _attention(device: Device, dtype: str) -> AttentionSurface:
    held, typical = surfaces.measured(device.slug), surfaces.load(TYPICAL).attention
    if held is None or not held.attention:
        rate = next((item for item in (dtype, *_HALF) if item in _HALF and device.peak(item) is not None), dtype)
        rated = {dim: replace(item, reference=_roofline(item.reference, device, rate)) for dim, item in typical.items()}
        return AttentionSurface(device, rated, (), 0.0)
    own = {dim: replace(item, reference=_own(item.reference, device)) for dim, item in held.attention.items()}
    exact = device.slug in held.devices and dtype == _USUAL
    others = {dim: _shifted(item, own[_DIM], typical[_DIM]) for dim, item in typical.items() if dim not in own}
    return AttentionSurface(device, own | others, tuple(own) if exact else (), 0.0 if exact else stand_in_spread())


def _shifted(typical: Surface, own: Surface, alike: Surface) -> Surface:
    """The typical surface of another head dim, moved by what the device differs by at the head dim it has."""
    nodes = np.meshgrid(*own.grid.axes, indexing="ij")
    points = [item.ravel() for item in nodes]
    shift = float(np.median(own.grid.at(*points) - alike.grid.at(*points)))
    grid = Grid(typical.grid.axes, typical.grid.values + shift)
    return replace(typical, grid=grid, reference=own.reference)


def attention_backward() -> Quantity:
    """``attention.backward`` (1): seconds of the backward pass over the forward pass, from published rates."""
    flops = catalog.constant("kernels.attention.backward_flops")
    rate = catalog.constant("kernels.attention.backward_rate")
    found = derive("attention.backward", "flops/rate", "1", flops=flops, rate=rate)
    return found.titled("Time of the attention backward pass over its forward pass")


def mm_ceiling(device: Device | str, dtype: str) -> Quantity:
    """``matmul.ceiling`` (percent): the median share of peak of matmuls with every side of at least 4096.

    Measured where the device has a surface; else an assumption from the other devices.
    """
    found = gemm(device, dtype)
    assert found.surface.ceiling is not None, "every surface is fitted to some large matmuls"
    share = 100 * found.surface.ceiling[0]
    if found.measured:
        held = surfaces.measured(found.device.slug)
        assert held is not None
        note = f"{found.surface.rows} rows, p10 {found.surface.ceiling[1]:.0%}, p90 {found.surface.ceiling[2]:.0%}"
        return leaf("matmul.ceiling", share, "%", "measured", held.source, note)
    peak = found.device.peak(dtype)  # unknown for a relative of a measured device at most
    scale = 1.0 if peak is None else found.surface.reference.peak_flops_s / number(peak)
    note = "of a device with the same matrix units, or the median of all measured ones"
    return leaf("matmul.ceiling", share * scale, "%", "assumed", note=note)


def head_dim_penalty(device: Device | str, head_dim: int, aligned: int = _DIM, seq: int = 8192) -> Quantity:
    """``attention.head_dim_penalty`` (1): seconds per FLOP at ``head_dim`` over those at ``aligned``, less one.

    At a sequence that fills the device: 0.35 says that the same FLOPs take 35% longer.
    """
    found = attention(device)
    blocks = 64  # heads times sequences: enough to fill every device of the catalog
    pair = found.seconds(1, blocks, blocks, seq, np.array([head_dim, aligned]))
    per_flop = pair.seconds / np.array([head_dim, aligned])
    value = float(per_flop[0] / per_flop[1] - 1)
    if head_dim in found.dims and aligned in found.dims:
        held = surfaces.measured(found.device.slug)
        assert held is not None
        return leaf("attention.head_dim_penalty", value, "1", "measured", held.source)
    note = "interpolated between measured head dims, or the mean of other devices"
    return leaf("attention.head_dim_penalty", value, "1", "assumed", note=note)


def misalignment_penalty(size: ArrayLike, dtype: str = _USUAL) -> Floats:
    """The factor on a matmul's time for a row length ``size`` in elements: 1 where rows start on aligned bytes."""
    (found,) = sizes(size=size)
    return np.where(_misaligned(found, dtype_name(dtype)), _misalignment(), 1.0)


def _misaligned(size: Floats, dtype: str) -> NDArray[np.bool_]:
    element = number(catalog.constant(f"dtypes.{dtype}"))
    found: NDArray[np.bool_] = (size * element) % number(catalog.constant("kernels.matmul.alignment_bytes")) != 0
    return found


def _misalignment() -> float:
    return number(catalog.constant("kernels.matmul.misaligned"))


def stand_in_spread() -> float:
    """Half width, in logs, of what is added where another device, type or head dimension stands in."""
    return float(np.log(number(catalog.constant("kernels.stand_in.spread"))))


def _own(stored: Reference, device: Device) -> Reference:
    """The stored reference, with the memory bandwidth of a relative of the measured device where it is known."""
    if device.hbm_bandwidth is None:
        return stored
    return replace(stored, bandwidth_bytes_s=number(device.hbm_bandwidth))


def _roofline(typical: Reference, device: Device, dtype: str) -> Reference:
    """The catalog's roofline, its peak scaled by how far the device's measured ceiling is from a usual one."""
    peak = number(known(device.peak(dtype), f"the {dtype} peak of {device.name}"))
    bandwidth = number(known(device.hbm_bandwidth, f"the memory bandwidth of {device.name}"))
    ceiling = device.ceiling(dtype)
    scale = 1.0 if ceiling is None else number(ceiling) / peak / _usual_ceiling(dtype)
    return Reference(typical.launch_s, peak * scale, bandwidth)


@lru_cache(maxsize=16)
def _usual_ceiling(dtype: str) -> float:
    """The median of measured ceiling over peak among the devices that have a surface."""
    held = [catalog.device(slug) for system in surfaces.systems() for slug in surfaces.load(system).devices]
    pairs = [(device.ceiling(dtype), device.peak(dtype)) for device in held]
    found = [number(ceiling) / number(peak) for ceiling, peak in pairs if ceiling is not None and peak is not None]
    return float(np.median(found)) if found else 1.0


def sizes(**given: ArrayLike) -> tuple[Floats, ...]:
    """The sizes as float arrays of one shape. Raises `InputError` for one below 1, or not finite (but a window)."""
    arrays = np.broadcast_arrays(*(np.asarray(item, dtype=np.float64) for item in given.values()))
    for name, item in zip(given, arrays, strict=True):
        if not np.all(item >= 1):
            raise InputError.expected("a size of at least 1", float(np.min(item)), where=name)
        if name != "window" and not np.all(np.isfinite(item)):
            raise InputError.expected("a finite size of at least 1", float(np.max(item)), where=name)
    return tuple(np.atleast_1d(item) for item in arrays)
