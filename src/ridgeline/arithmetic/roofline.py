"""The roofline: a piece of work takes at least as long as its slowest resource needs.

``time >= max(FLOPs/peak, bytes/bandwidth, network bytes/network bandwidth)``, and at most their sum, when nothing
overlaps. Rates are per chip (``FLOP/s/chip``, ``B/s/chip``), as in the accelerator catalog. Williams, Waterman
and Patterson, "Roofline", 2009; the network as a second axis gives the two-dimensional form for distributed work.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgeline.arithmetic.inputs import known, one_chip, require_fraction, require_not_negative, require_positive, under
from ridgeline.arithmetic.tiles import MatmulShape
from ridgeline.core.device import Device
from ridgeline.core.quantity import Quantity, derive


@dataclass(frozen=True)
class Rates:
    """One chip: ``peak`` FLOP/s/chip, ``bandwidth`` of its memory and, for distributed work, of its ``network``.

    Both bandwidths in B/s/chip; the network's is one direction.
    """

    peak: Quantity
    bandwidth: Quantity
    network: Quantity | None = None

    @classmethod
    def of(cls, device: Device, dtype: str, link: str = "scale_up") -> "Rates":
        """The dense figures of a device of the catalog, with one of its links where that is known.

        Raises `InputError` for a peak or memory bandwidth that no source states.
        """
        return cls(
            known(device.peak(dtype), f"the {dtype} peak of {device.name}"),
            known(device.hbm_bandwidth, f"the memory bandwidth of {device.name}"),
            device.links[link].bandwidth if link in device.links else None,
        )


@dataclass(frozen=True)
class Work:
    """What is to be done, summed over ``chips``: ``flops``, ``bytes`` of memory traffic, ``network`` bytes sent."""

    flops: Quantity
    bytes: Quantity
    network: Quantity | None = None
    chips: Quantity | None = None


@dataclass(frozen=True)
class Bounds:
    """Seconds per resource, the ``lower`` bound (all overlap) and the ``upper`` (nothing does).

    ``peak_share`` is the share of peak FLOP/s reached at the lower bound, in percent.
    """

    compute: Quantity
    memory: Quantity
    network: Quantity | None
    lower: Quantity
    upper: Quantity
    peak_share: Quantity

    @property
    def resources(self) -> dict[str, Quantity]:
        """The bounds by resource: compute, memory, and network where there is one."""
        found = {"compute": self.compute, "memory": self.memory}
        return found if self.network is None else {**found, "network": self.network}

    @property
    def binding(self) -> Any:
        """The resource that binds: a text, or an array of texts for an array of candidates."""
        return binding(self.resources)


def binding(times: Mapping[str, Quantity]) -> Any:
    """The name of the longest of several times (the first of equals), for each candidate."""
    names = np.array(list(times))
    columns = np.broadcast_arrays(*(np.asarray(q.base, dtype=np.float64) for q in times.values()))
    found = names[np.argmax(np.stack(columns), axis=0)]
    return found if found.ndim else str(found)


def achievable(rate: Quantity, efficiency: Quantity, prefix: str = "") -> Quantity:
    """``<rate's name>.achievable``: a peak or bandwidth times the share of it that real kernels reach."""
    require_fraction(efficiency)
    return derive(
        under(prefix, f"{rate.name}.achievable"), "rate*efficiency", rate.unit, rate=rate, efficiency=efficiency
    )


def ridge_point(rates: Rates, prefix: str = "") -> Quantity:
    """``roofline.ridge`` (FLOP/B): the intensity at which compute and memory take equally long, peak/bandwidth."""
    require_positive(rates.peak, rates.bandwidth)
    name = under(prefix, "roofline.ridge")
    return derive(name, "peak/bandwidth", "FLOP/B", peak=rates.peak, bandwidth=rates.bandwidth).titled("Ridge point")


def network_ridge_point(rates: Rates, prefix: str = "") -> Quantity:
    """``roofline.network_ridge`` (FLOP/B): the same for the network, the second axis of distributed work."""
    assert rates.network is not None, "network_ridge_point needs Rates with a network"
    require_positive(rates.peak, rates.network)
    name = under(prefix, "roofline.network_ridge")
    found = derive(name, "peak/network", "FLOP/B", peak=rates.peak, network=rates.network)
    return found.titled("Ridge point of the network")


def matmul_intensity(shape: MatmulShape, element: Quantity, prefix: str = "") -> Quantity:
    """``matmul.intensity`` (FLOP/B) when each operand and the result cross the memory bus once.

    ``element`` is the size of one number (B). An upper bound: a matmul that does not fit on chip rereads operands.
    """
    require_positive(element, *shape.sides.values())
    text = "2*m*k*n/(element*(m*k + k*n + m*n))"
    name = under(prefix, "matmul.intensity")
    return derive(name, text, "FLOP/B", element=element, **shape.sides).titled("Arithmetic intensity of the matmul")


def elementwise_intensity(operations: Quantity, read: Quantity, written: Quantity, prefix: str = "") -> Quantity:
    """``elementwise.intensity`` (FLOP/B): ``operations`` FLOP per element over the B ``read`` and ``written`` for it.

    Five operations an element and one read and one write in bf16 is a layernorm: 1.25.
    """
    require_positive(operations, read, written)
    name, text = under(prefix, "elementwise.intensity"), "operations/(read + written)"
    found = derive(name, text, "FLOP/B", operations=operations, read=read, written=written)
    return found.titled("Arithmetic intensity, elementwise")


def decode_intensity(params: Quantity, batch: Quantity, weights: Quantity, kv: Quantity, prefix: str = "") -> Quantity:
    """``decode.intensity`` (FLOP/B) of one decode step: 2N FLOP per sequence over the bytes swept for it.

    ``params`` active per token, ``batch`` sequences decoded together, ``weights`` (B) read once a step, ``kv`` (B) the
    cache of one sequence. Tends to 2N/kv as the batch grows: a long context keeps decoding memory-bound.
    """
    require_positive(params, batch, weights)
    require_not_negative(kv)
    name, text = under(prefix, "decode.intensity"), "2*count(N)*count(batch)/(weights + count(batch)*kv)"
    found = derive(name, text, "FLOP/B", N=params, batch=batch, weights=weights, kv=kv)
    return found.titled("Arithmetic intensity of decoding")


def attainable(intensity: Quantity, rates: Rates, prefix: str = "") -> Quantity:
    """``roofline.attainable`` (FLOP/s/chip): min(peak, intensity * bandwidth)."""
    require_positive(intensity, rates.peak, rates.bandwidth)
    return derive(
        under(prefix, "roofline.attainable"),
        "min(peak, intensity*bandwidth)",
        "FLOP/s/chip",
        peak=rates.peak,
        intensity=intensity,
        bandwidth=rates.bandwidth,
    ).titled("Attainable rate")


def peak_share(intensity: Quantity, rates: Rates, prefix: str = "") -> Quantity:
    """``roofline.peak_share`` (percent): the attainable share of peak at this intensity."""
    reach = attainable(intensity, rates, prefix)
    name = under(prefix, "roofline.peak_share")
    return derive(name, "attainable/peak", "%", attainable=reach, peak=rates.peak).titled("Attainable share of peak")


def bounds(work: Work, rates: Rates, prefix: str = "") -> Bounds:
    """``roofline.compute``, ``.memory``, ``.network``, ``.lower``, ``.upper`` (s) and ``.reached`` (percent of peak).

    The work is spread evenly over ``work.chips`` (one chip by default). Raises `InputError` for a rate or chip
    count that is not positive. Without network bytes, or without a network rate, there are two bounds.
    """
    chips = work.chips or one_chip()
    require_positive(chips, rates.peak, rates.bandwidth)
    require_not_negative(work.flops, work.bytes)
    compute = _spread(under(prefix, "roofline.compute"), "flops/(chips*rate)", work.flops, chips, rates.peak)
    memory = _spread(under(prefix, "roofline.memory"), "bytes/(chips*rate)", work.bytes, chips, rates.bandwidth)
    network = None
    if work.network is not None:
        assert rates.network is not None, "network bytes need Rates with a network"
        require_positive(rates.network)
        require_not_negative(work.network)
        network = _spread(under(prefix, "roofline.network"), "bytes/(chips*rate)", work.network, chips, rates.network)
    terms = {"compute": compute, "memory": memory} | ({} if network is None else {"network": network})
    lower = derive(under(prefix, "roofline.lower"), f"max({', '.join(terms)})", "s", **terms)
    upper = derive(under(prefix, "roofline.upper"), " + ".join(terms), "s", **terms)
    reached = derive(under(prefix, "roofline.reached"), "compute/lower", "%", compute=compute, lower=lower)
    return Bounds(
        compute.titled("Time at peak FLOP/s"),
        memory.titled("Time at full memory bandwidth"),
        network.titled("Time at full network bandwidth") if network else None,
        lower.titled("Lower bound, everything overlaps"),
        upper.titled("Upper bound, nothing overlaps"),
        reached.titled("Share of peak at the lower bound"),
    )


def _spread(name: str, formula: str, amount: Quantity, chips: Quantity, rate: Quantity) -> Quantity:
    symbol = formula.partition("/")[0]
    return derive(name, formula, "s", **{symbol: amount}, chips=chips, rate=rate)
