"""Times of serving kernels from measured surfaces: attention against a cache, latent attention, experts, all-reduce.

A time is ``reference * exp(grid + terms)`` as in `ridgeline.arithmetic.kernels`, and the reference the roofline
``launch + FLOPs/peak + bytes/bandwidth`` with the work of `ridgeline.arithmetic.serving_work`. A device without a table
takes the surface over all measured systems on its own roofline, with the interval of leaving one system out. A type of
cache that was not measured takes the nearest one's ratio on its own bytes. Errors: docs/design/serving-surfaces.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ridgeline.arithmetic.fabric import on_ramp
from ridgeline.arithmetic.inputs import known
from ridgeline.arithmetic.kernels import AttentionSurface, GemmSurface, gemm, sizes, stand_in_spread
from ridgeline.arithmetic.kernels import attention as training_attention
from ridgeline.arithmetic.serving_work import decode_work, expert_work, experts_hit, latent_prefill_work, latent_work
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.surface_terms import gemm_terms, number
from ridgeline.core import catalog, surfaces
from ridgeline.core.device import Device
from ridgeline.core.errors import InputError
from ridgeline.core.surfaces import TYPICAL, Estimate, Floats, Grid, Ramp, Reference, Surface

_USUAL = "bf16"
_FALLBACK = ("bf16", "fp16")  # the types that attention is computed in, and weights without matrix units of their own


@dataclass(frozen=True)
class Held:
    """A surface on one device: ``measured`` says whether it is the device's own, ``element_bytes`` what is read."""

    surface: Surface
    element_bytes: float
    measured: bool
    widening: float

    def estimate(
        self, work: tuple[Floats, Floats], sides: tuple[Floats, ...], terms: tuple[Floats, ...]
    ) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """Seconds, low, high, and where the grid covers the call."""
        flops, moved = work
        logs = tuple(np.log(side) for side in sides)
        ratio = self.surface.grid.at(*logs)
        for weight, term in zip(self.surface.terms.values(), terms, strict=True):
            ratio = ratio + weight * term
        covered = self.surface.grid.covers(*logs)
        seconds = np.maximum(self.surface.reference.seconds(flops, moved) * np.exp(ratio), self._least(flops, moved))
        low, high = self.surface.spread.at(flops, covered)
        return (
            seconds,
            seconds * np.exp(low - self.widening),
            seconds * np.exp(high + self.widening),
            covered & self.measured,
        )

    def roof(self, flops: Floats, moved: Floats) -> Floats:
        """FLOPs over the peak or bytes over the memory bandwidth, whichever takes longer (s)."""
        reference = self.surface.reference
        return np.maximum(flops / reference.peak_flops_s, moved / reference.bandwidth_bytes_s)

    def _least(self, flops: Floats, moved: Floats) -> Floats:
        """Of a call too large for any cache on the chip: the best tenth of the large calls was no faster.

        Corners of the grid that nobody could measure (their caches do not fit) would otherwise run away.
        """
        ceiling = self.surface.ceiling
        bound = self.roof(flops, moved) / (1.0 if ceiling is None else ceiling[2])
        return np.where(moved > number(catalog.constant("steps.large_read")), bound, 0.0)


@dataclass(frozen=True)
class DecodeAttention:
    """Attention of one new token a sequence against its cache; `decode_attention` makes it."""

    by_dim: Mapping[int, Held]

    def seconds(
        self,
        batch: ArrayLike,
        heads: ArrayLike,
        kv_heads: ArrayLike,
        context: ArrayLike,
        head_dim: float,
        window: ArrayLike = 0,
    ) -> Estimate:
        """Seconds of one layer on one chip, with an 80% interval; arrays broadcast.

        ``heads`` and ``kv_heads`` are those of the chip, ``context`` the keys of each sequence, ``window`` how many of
        them are read at most (0: all). Between head dims the logarithm of the time is interpolated. Raises
        `InputError` for a size below one.
        """
        limit = np.where(np.asarray(window) == 0, np.inf, window)
        b, h, kv, s, w = sizes(batch=batch, heads=heads, kv_heads=kv_heads, context=context, window=limit)
        seen = np.minimum(s, w)
        sides, terms = (seen, b * kv, h / kv), (np.log(s / seen),)
        (d,) = sizes(head_dim=head_dim)
        dims = np.array(sorted(self.by_dim), dtype=np.float64)
        total, inside = np.zeros((3, *s.shape)), np.full(s.shape, bool(d[0] in dims))
        for place, dim in enumerate(sorted(self.by_dim)):
            every = np.eye(len(dims))[place]
            share = float(np.interp(np.log(d[0]), np.log(dims), every))
            if share > 0:
                held = self.by_dim[dim]
                work = decode_work(b, h, kv, seen, d, held.element_bytes)
                *parts, covered = held.estimate(work, sides, terms)
                total += share * np.log(np.stack(parts))
                inside &= covered
        return Estimate(np.exp(total[0]), np.exp(total[1]), np.exp(total[2]), inside)


@dataclass(frozen=True)
class LatentAttention:
    """Attention over cached latents (MLA), projections absorbed in decode; `latent_attention` makes it."""

    decode: Held
    prefill: Held

    def seconds(
        self, batch: ArrayLike, heads: ArrayLike, context: ArrayLike, rank: float = 512, rope: float = 64
    ) -> Estimate:
        """Seconds of one decoding layer on one chip. Kernels were measured at ``rank`` 512 and ``rope`` 64."""
        b, h, s = sizes(batch=batch, heads=heads, context=context)
        work = latent_work(b, h, s, rank, rope, self.decode.element_bytes)
        return Estimate(*self.decode.estimate(work, (s, b, h), (np.zeros(s.shape),)))

    def prompt_seconds(
        self, batch: ArrayLike, heads: ArrayLike, seq: ArrayLike, score: float = 192, value: float = 128
    ) -> Estimate:
        """Seconds of one layer over ``batch`` whole prompts: causal, keys and values rebuilt from the latents."""
        b, h, s = sizes(batch=batch, heads=heads, seq=seq)
        work = latent_prefill_work(s, b, h, score, value)
        return Estimate(*self.prefill.estimate(work, (s, b, h), (np.zeros(s.shape),)))


@dataclass(frozen=True)
class Experts:
    """The grouped matmuls of one chip's experts; `expert_matmuls` makes it. ``wide`` is the 16-bit kernel, which bounds
    narrower ones: they were measured for few shapes, and an engine need not take one that is much slower.
    """

    held: Held
    wide: Held | None = None

    def seconds(
        self,
        tokens: ArrayLike,
        shape: tuple[float, float],
        experts: float,
        top_k: float,
        parts: tuple[float, float] = (1, 1),
        sides: float = 3,
    ) -> Estimate:
        """Seconds of one mixture layer for ``tokens`` of all chips that share its experts, with an 80% interval.

        ``shape`` is (width, expert width) and ``parts`` (chips inside an expert, chips by expert). An expert has
        ``sides`` matmuls. Experts are as popular as ``steps.experts.skew`` says. Raises `InputError` for a size below
        one, or fewer experts than chips by expert.
        """
        (t,) = sizes(tokens=tokens)
        inside, by_expert = parts
        if by_expert > experts:
            raise InputError.expected(f"at most {experts:g} chips, one expert each", by_expert, where="ep")
        hidden, own = shape[0], shape[1] / inside
        rows = np.maximum(t * top_k / by_expert, 1.0)
        each = np.ones(t.shape)
        hit = np.maximum(experts_hit(experts * each, top_k * each, t) / by_expert, 1.0)
        skew = number(catalog.constant("steps.experts.skew"))
        terms = (skew * each, skew * np.log(by_expert) * each, np.log(hidden / own) * each, np.log(top_k) * each)
        sides_of = (rows, experts / by_expert * each, hidden * own * each)

        def of(held: Held) -> Estimate:
            work = expert_work(rows, hit, hidden * each, own * each, held.element_bytes, sides)
            seconds, low, high, covered = held.estimate(work, sides_of, terms)
            least = held.roof(*work)  # of a step's experts no cache on the chip holds any
            return Estimate(np.maximum(seconds, least), np.maximum(low, least), np.maximum(high, least), covered)

        found = of(self.held)
        if self.wide is None:
            return found
        wide, most = of(self.wide), number(catalog.constant("steps.experts.slowest"))
        kept = found.seconds <= most * wide.seconds
        seconds, low, high = (
            np.where(kept, getattr(found, name), most * getattr(wide, name)) for name in ("seconds", "low", "high")
        )
        return Estimate(seconds, low, high, found.measured & kept)


@dataclass(frozen=True)
class SmallAllReduce:
    """The all-reduce of a serving engine inside a node; `small_all_reduce` makes it."""

    ramp: Ramp
    link_bytes_s: float | None

    def seconds(self, size_bytes: ArrayLike, group: ArrayLike) -> Estimate:
        """Seconds for ``size_bytes`` on each of ``group`` chips; a group of one takes no time."""
        size, chips = np.broadcast_arrays(np.asarray(size_bytes, float), np.asarray(group, float))
        return on_ramp("all_reduce", self.ramp, np.atleast_1d(size), np.atleast_1d(chips), self.link_bytes_s)


def decode_attention(device: Device | str, kv: str = _USUAL) -> DecodeAttention:
    """Decode attention of that device with a cache of ``kv`` elements.

    Raises `UnknownDeviceError`, and `InputError` where no source states the peak or the memory bandwidth.
    """
    device = _device(device)
    own, usual = surfaces.serving_of(device.slug), _typical()
    nearest = kv if kv in usual.decode else ("fp8" if _bytes(kv) <= 1 else _USUAL)
    found = {dim: _stand_in(item, device, kv, kv == nearest) for dim, item in usual.decode[nearest].items()}
    if own is not None and nearest in own.decode:
        found |= {dim: _measured(item, device, kv, kv == nearest) for dim, item in own.decode[nearest].items()}
    elif own is not None and _USUAL in own.decode:  # measured with wider caches only: its ratio, on fewer bytes
        found |= {dim: _measured(item, device, kv, False) for dim, item in own.decode[_USUAL].items()}
    return DecodeAttention(found)


def prompt_attention(device: Device | str) -> AttentionSurface:
    """Attention of whole prompts as serving engines run it; as `ridgeline.arithmetic.kernels.attention`, from 16 keys.

    Raises as that does.
    """
    device = _device(device)
    base = training_attention(device)
    own, usual = surfaces.serving_of(device.slug), _typical().prefill
    launch = {dim: _stand_in(item, device, _USUAL, True).surface for dim, item in usual.items()}
    if own is None:
        return replace(base, by_dim=launch, dims=(), widening=0.0)
    measured = {dim: _measured(item, device, _USUAL, True) for dim, item in own.prefill.items()}
    exact = all(item.measured for item in measured.values())
    by_dim = launch | {dim: item.surface for dim, item in measured.items()}
    return replace(
        base, by_dim=by_dim, dims=tuple(measured) if exact else (), widening=0.0 if exact else stand_in_spread()
    )


def latent_attention(device: Device | str, kv: str = _USUAL) -> LatentAttention:
    """Latent attention of that device with a cache of ``kv`` elements. Raises as `decode_attention` does."""
    device = _device(device)
    own, usual = surfaces.serving_of(device.slug), _typical()

    def pick(name: str) -> Held:
        mine: Mapping[str, Surface] = {} if own is None else getattr(own, name)
        every: Mapping[str, Surface] = getattr(usual, name)
        nearest = kv if kv in every else ("fp8" if _bytes(kv) <= 1 else _USUAL)
        for key in (nearest, _USUAL):
            if key in mine:
                return _measured(mine[key], device, kv, kv == key)
        return _stand_in(every[nearest], device, kv, kv == nearest)

    return LatentAttention(pick("latent"), pick("latent_prefill"))


def expert_matmuls(device: Device | str, weights: str = _USUAL) -> Experts:
    """Grouped matmuls of experts stored as ``weights`` on that device. Raises as `decode_attention` does."""
    device = _device(device)
    held = _experts_held(device, weights)
    narrow = number(dtype_bytes(weights)) < number(dtype_bytes(_USUAL))
    return Experts(held, _experts_held(device, _USUAL) if narrow else None)


def _experts_held(device: Device, weights: str) -> Held:
    own, usual = surfaces.serving_of(device.slug), _typical().experts
    same = {"fp16": "bf16", "int8": "fp8"}.get(weights, weights)
    key = same if same in usual else _USUAL
    if own is not None and key in own.experts:
        return _measured(own.experts[key], device, weights, same == weights)
    rate = weights if weights in device.peaks else ""
    return _stand_in(usual[key], device, weights, same == weights, rate)


def small_all_reduce(device: Device | str) -> SmallAllReduce | None:
    """The all-reduce of that device; None where the device has a torus or no link, and `fabric` must do."""
    device = _device(device)
    own = surfaces.serving_of(device.slug)
    if own is not None and own.all_reduce is not None:
        return SmallAllReduce(own.all_reduce, None)
    link, usual = device.scale_up, _typical().all_reduce
    if link is None or "switched" not in link.topology or usual is None:
        return None
    return SmallAllReduce(usual, number(link.bandwidth))


def mixed_attention(
    prompt: ArrayLike, decode: ArrayLike, sequences: ArrayLike, group: ArrayLike, device: Device | str
) -> Estimate:
    """Seconds of one attention call over a prompt and ``sequences`` decodes, from the seconds of each part alone.

    ``group`` is queries a key head. It is measured not to be the sum: on two workstation cards the ratio to the sum
    has a median of 1.2 to 1.7 by model (docs/design/serving-surfaces.md), since decodes in a kernel for prompts share
    keys less. Never below the longer part. Kernels of other devices may share better: they take the middle, as a
    logarithm, between the sum and those cards, and an interval that holds both.
    """
    first, second, count, heads = (np.atleast_1d(np.asarray(i, float)) for i in (prompt, decode, sequences, group))
    first, second, count, heads = np.broadcast_arrays(first, second, count, heads)
    held = surfaces.mixed()
    ratio, most = np.log(second / first), held.grid.axes[0][-1]
    seconds = first * np.exp(held.grid.at(ratio, np.log(count), np.log(heads)) + np.maximum(ratio - most, 0.0))
    longer, both = np.maximum(first, second), first + second
    seconds = np.maximum(seconds, longer)
    low, high = seconds * np.exp(held.spread[0]), seconds * np.exp(held.spread[1])
    covered = held.grid.covers(ratio, np.log(count), np.log(heads))
    if _device(device).slug not in held.devices:
        low, high, covered = np.minimum(low, both), np.maximum(high, both), np.zeros_like(covered)
        seconds = np.sqrt(seconds * both)
    return Estimate(seconds, np.maximum(low, longer), np.maximum(high, longer), covered)


def _device(device: Device | str) -> Device:
    return catalog.device(device) if isinstance(device, str) else device


def _typical() -> surfaces.ServingSurfaces:
    found = surfaces.serving(TYPICAL)
    assert found is not None, "typical.json ships with the package"
    return found


def _bytes(dtype: str) -> float:
    return number(dtype_bytes(dtype))


def _measured(surface: Surface, device: Device, dtype: str, exact: bool) -> Held:
    """The device's own surface, or that of its relative, on its own memory bandwidth."""
    held = surfaces.measured(device.slug)
    own = held is not None and device.slug in held.devices and exact
    bandwidth = surface.reference.bandwidth_bytes_s
    if device.hbm_bandwidth is not None:
        bandwidth = number(device.hbm_bandwidth)
    reference = replace(surface.reference, bandwidth_bytes_s=bandwidth)
    return Held(replace(surface, reference=reference), _bytes(dtype), own, 0.0 if own else stand_in_spread())


def _stand_in(surface: Surface, device: Device, dtype: str, exact: bool, rate: str = "") -> Held:
    """The surface over all systems on the device's own roofline."""
    rated = rate or next((item for item in _FALLBACK if item in device.peaks), device.dtypes[-1])
    peak = number(known(device.peak(rated), f"the {rated} peak of {device.name}"))
    bandwidth = _bandwidth(device)
    reference = Reference(surface.reference.launch_s, peak, bandwidth)
    return Held(replace(surface, reference=reference), _bytes(dtype), False, 0.0 if exact else stand_in_spread())


def _bandwidth(device: Device) -> float:
    """The catalog's memory bandwidth, or that of the measured device whose relative this is."""
    held = surfaces.measured(device.slug)
    if device.hbm_bandwidth is None and held is not None:
        return next(iter(held.gemm.values())).reference.bandwidth_bytes_s
    return number(known(device.hbm_bandwidth, f"the memory bandwidth of {device.name}"))


def thin_gemm(device: Device, dtype: str) -> GemmSurface:
    """`ridgeline.arithmetic.kernels.gemm` for a few tokens, at which not every system was measured.

    Below the smallest m of a system's table the ratios of all systems hold, moved so that both meet at that m. A device
    whose tile no source states takes the usual one: at one token padding to a tile is most of the ratio. Raises as
    `gemm` does.
    """
    found = gemm(device, dtype)
    usual = surfaces.load(TYPICAL).gemm
    typical = usual.get(dtype) or usual[_USUAL]
    if device.tile is None:
        found = replace(found, tiles=replace(found.tiles, side=number(catalog.constant("steps.matmul.tile"))))
    own, every = found.surface.grid, typical.grid
    first = own.axes[0][0]
    extra = every.axes[0][every.axes[0] < first - 1e-9]
    if not len(extra):
        return found
    n, k = (item.ravel() for item in np.meshgrid(*own.axes[1:], indexing="ij"))

    def ratio(surface: Surface, log_m: float) -> Floats:
        at = np.full(n.shape, log_m)
        parts = zip(surface.terms.values(), gemm_terms(np.exp(at), np.exp(n), found.tiles), strict=True)
        added = sum((weight * term for weight, term in parts), np.zeros(n.shape))
        return surface.grid.at(at, n, k) + added

    edge = ratio(found.surface, first) - ratio(typical, first)
    blank = replace(found.surface, grid=replace(own, values=np.zeros(own.values.size)))
    rows = [ratio(typical, m) + edge - ratio(blank, m) for m in extra]
    values = np.concatenate([*rows, own.values.ravel()])
    axes = (np.concatenate([extra, own.axes[0]]), *own.axes[1:])
    return replace(found, surface=replace(found.surface, grid=Grid(axes, values)))
