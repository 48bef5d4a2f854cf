"""Kernels and wires of a deployment's chips, from the surfaces that were measured.

A matmul whose weights are narrower than any units of the device runs in bf16 and reads fewer bytes. Below the smallest
matmul that a system was measured at (256 tokens on some), the ratio follows that of all systems.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.arithmetic import fabric
from ridgeline.arithmetic.decode import small_all_reduce, thin_gemm
from ridgeline.arithmetic.kernels import GemmSurface
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.surface_terms import gemm_work, number
from ridgeline.core import catalog, figures
from ridgeline.core.device import Device
from ridgeline.core.surfaces import Estimate, Floats
from ridgeline.serve.steps.tables import Span

_WIDE = "bf16"
_LOAD = 16  # elements: aligned in any type of eight bits or more


@dataclass(frozen=True)
class Machine:
    """One device and the fabric between devices."""

    device: Device
    weights: str
    narrow: GemmSurface
    wide: GemmSurface
    bandwidth_bytes_s: float
    domain: int
    network: fabric.Network

    def matmul(self, m: Floats, n: Floats, k: Floats, *, wide: bool) -> Span:
        """Seconds of ``[m, k] x [k, n]``; a side is padded to whole loads, as engines do, and n to a tile at least."""
        surface = self.wide if wide else self.narrow
        n = np.maximum(np.ceil(n / _LOAD) * _LOAD, number(catalog.constant("steps.matmul.tile")))
        k = np.ceil(k / _LOAD) * _LOAD
        found = Span.of(surface.seconds(m, n, k))
        saved = number(dtype_bytes(surface.dtype)) - number(dtype_bytes(_WIDE if wide else self.weights))
        if saved <= 0:
            return found
        flops, moved = gemm_work(m, n, k, surface.dtype)
        light = moved - number(catalog.constant("steps.matmul.light")) * saved * n * k
        reference = surface.surface.reference
        return found * (reference.seconds(flops, light) / reference.seconds(flops, moved))

    def all_reduce(self, size_bytes: Floats, group: int) -> Span:
        """Seconds over ``group`` neighbours: the engine's own kernel inside the domain, a collective beyond it."""
        if group == 1:
            return Span.exact(np.zeros(size_bytes.shape))
        small = small_all_reduce(self.device) if group <= self.domain else None
        wired = self._wired("all_reduce", size_bytes, group)
        if small is None:
            return Span.of(wired)
        own = small.seconds(size_bytes, float(group))
        faster = own.seconds < wired.seconds
        pairs = zip(Span.of(own).ends, Span.of(wired).ends, strict=True)
        return Span(*(np.where(faster, a, b) for a, b in pairs))

    def collective(self, kind: str, size_bytes: Floats, group: int) -> Span:
        """Seconds of any collective; a group of one takes none."""
        if group == 1:
            return Span.exact(np.zeros(size_bytes.shape))
        return Span.of(self._wired(kind, size_bytes, group))

    def _wired(self, kind: str, size_bytes: Floats, group: int) -> Estimate:
        near = group if group <= self.domain else int(np.gcd(group, self.domain))
        return fabric.collective(self.device).seconds(kind, size_bytes, group, near, self.network)

    def stream(self, moved_bytes: Floats) -> Floats:
        """Seconds to move bytes in element-wise kernels."""
        found: Floats = moved_bytes / self.bandwidth_bytes_s / number(catalog.constant("steps.vector.efficiency"))
        return found


def machine(device: Device, weights: str) -> Machine:
    """The machine of that device. Raises `InputError` where the catalog lacks its peak or memory bandwidth."""
    rate = weights if weights in device.peaks else _WIDE
    narrow, wide = thin_gemm(device, rate), thin_gemm(device, _WIDE if _WIDE in device.peaks else "fp16")
    names = figures.read(catalog.DATA / "clusters.toml")["network"]
    return Machine(
        device,
        weights,
        narrow,
        wide,
        narrow.surface.reference.bandwidth_bytes_s,
        _domain(device),
        fabric.Network.of(names.get(device.slug, names["other"])),
    )


def _domain(device: Device) -> int:
    """Chips that reach each other over the scale-up fabric."""
    found = catalog.constant(f"clusters.domain.{device.slug}", missing_ok=True) or device.devices_per_node
    return round(number(found if found is not None else catalog.constant("clusters.domain.other")))
