"""Times of collectives on one device's links: measured inside a node, alpha-beta beyond it.

Inside a node the measured table is interpolated in the logarithms of bytes and group (its bandwidth ramp); above the
largest message the time grows with the bytes. A device without a table takes the mean ramp of the measured switched
links on its own link bandwidth, and a torus the model of `ridgeline.arithmetic.collectives`.

Across nodes each chip has its own port (a rail). Chips of a group that share a node reduce or gather inside it while
the network moves the node's share, so the time is the longer of the two plus the network's latency: of a ring, or for
an all-reduce of a tree where that is shorter. Sizes are those of `ridgeline.arithmetic.collectives`. Plain NumPy.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ridgeline.arithmetic import collectives
from ridgeline.arithmetic.collectives import Switch, Torus
from ridgeline.arithmetic.surface_terms import bus_bytes, number
from ridgeline.core import catalog, surfaces
from ridgeline.core.device import Device
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.quantity import given
from ridgeline.core.surfaces import TYPICAL, Estimate, Floats, Ramp

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "point_to_point")
_AXIS_LINKS = 2  # a chip of a torus sends both ways along an axis


@dataclass(frozen=True)
class Network:
    """A scale-out network: B/s a chip one way before overheads, the share of it that is reached, s a step."""

    bandwidth_bytes_s: float
    latency_s: float
    efficiency: float
    name: str = "given"

    @classmethod
    def of(cls, link: str | float) -> "Network":
        """A link of ``core/data/links.toml`` by name (``infiniband_ndr``), or the B/s of a chip's port.

        Raises `InputError` for an unknown name or a bandwidth that is not positive.
        """
        latency = number(catalog.constant("links.latency.scale_out"))
        share = number(catalog.constant("kernels.network.efficiency"))
        if isinstance(link, str):
            names = [name.removeprefix("links.") for name in catalog.constants("links") if "latency" not in name]
            if link not in names:
                hint = did_you_mean(link, names, "known links: " + ", ".join(names))
                raise InputError.expected("a known interconnect", link, where="the network", hint=hint)
            return cls(number(catalog.constant(f"links.{link}")), latency, share, link)
        if not np.isfinite(link) or link <= 0:
            raise InputError.expected("a bandwidth above zero", link, where="the network's bandwidth")
        return cls(float(link), latency, share)


@dataclass(frozen=True)
class Collectives:
    """The collectives of one device; `collective` makes it."""

    device: Device

    def seconds(
        self,
        kind: str,
        size_bytes: ArrayLike,
        group: ArrayLike,
        per_node: ArrayLike,
        network: Network | None = None,
        axes: int = 1,
    ) -> Estimate:
        """Seconds of one collective over ``group`` chips of which ``per_node`` share a node, with an 80% interval.

        Arrays broadcast. ``network`` is needed where a group spans nodes; ``axes`` is how many axes of a torus a group
        inside a node covers. A group of one takes no time. Raises `InputError` for an unknown kind, a group that is
        not a multiple of ``per_node``, or a network that is missing.
        """
        if kind not in KINDS:
            raise InputError.expected(f"one of {', '.join(KINDS)}", kind, where="the collective")
        size, group_, node = (
            np.atleast_1d(item).astype(np.float64) for item in np.broadcast_arrays(size_bytes, group, per_node)
        )
        node = np.minimum(node, group_)
        _check(size, group_, node)
        nodes = group_ / node
        inner = self._inside(kind, *_inner(kind, size, group_, node), axes)
        if not np.any(nodes > 1):
            return inner
        if network is None:
            raise InputError.expected("a network for groups that span nodes", "none", where="the collective's network")
        outer, latency = _across(kind, size, group_, node, network)
        across = nodes > 1
        seconds = np.where(across, np.maximum(inner.seconds, outer) + latency, inner.seconds)
        ratio = number(catalog.constant("kernels.network.spread"))
        low = np.where(across, seconds / ratio, inner.low)
        return Estimate(seconds, low, np.where(across, seconds * ratio, inner.high), inner.measured & ~across)

    def _inside(self, kind: str, size: Floats, group: Floats, axes: int) -> Estimate:
        """Seconds inside the scale-up domain."""
        held = surfaces.measured(self.device.slug)
        table = _TABLE.get(kind, kind)
        if kind == "point_to_point":  # in an all-gather of two, each sends half to the other
            size, group = np.where(group > 1, 2 * size, size), np.minimum(group, 2.0)
        if held is not None and table in held.collectives and self.device.slug in held.devices:
            return on_ramp(table, held.collectives[table], size, group, None)
        if self._torus:
            return self._on_torus(kind, size, group, axes)
        link = self.device.scale_up
        if link is None:
            what = f"the scale-up bandwidth of {self.device.name}"
            raise InputError(f"Expected {what}, got no figure from any source,", where="the catalog")
        pair = link.per_link if kind == "point_to_point" else None  # a pair of chips has one link
        usual = surfaces.load(TYPICAL).collectives[table]
        return on_ramp(table, usual, size, group, number(pair or link.bandwidth))

    def _on_torus(self, kind: str, size: Floats, group: Floats, axes: int) -> Estimate:
        """The model of a torus with all links of ``axes`` axes; one chip takes no time."""
        link = self.device.scale_up
        assert link is not None, "only a device with links has a torus"
        links = link.links or _AXIS_LINKS * axes
        pair = number(link.bandwidth) / links if link.per_link is None else number(link.per_link)
        share = number(catalog.constant("kernels.network.efficiency"))
        fabric = Torus(
            given("side", np.maximum(np.round(group ** (1 / axes)), 1.0), "1"),
            given("axes", float(axes), "1"),
            given("directions", float(_AXIS_LINKS), "1"),
            given("link", pair * share, "B/s/chip"),
            given("hop", self._latency_s, "s"),
        )
        total = collectives.collective(cast("collectives.Collective", kind), given("size", size, "B"), fabric).total
        seconds = np.where(group > 1, np.asarray(total.base, dtype=np.float64), 0.0)
        ratio = number(catalog.constant("kernels.network.spread"))
        return Estimate(seconds, seconds / ratio, seconds * ratio, np.zeros(size.shape, dtype=np.bool_))

    @property
    def _torus(self) -> bool:
        return self.device.scale_up is not None and "torus" in self.device.scale_up.topology

    @cached_property
    def _latency_s(self) -> float:
        return number(catalog.constant("links.latency.scale_up"))


_TABLE = {"point_to_point": "all_gather"}


def collective(device: Device | str) -> Collectives:
    """The collectives of that device, or of the one of that name. Raises `UnknownDeviceError`."""
    return Collectives(catalog.device(device) if isinstance(device, str) else device)


def _check(size: Floats, group: Floats, node: Floats) -> None:
    if not np.all(size >= 0):
        raise InputError.expected("zero bytes or more", float(np.min(size)), where="the collective's size")
    if not np.all(node >= 1):
        raise InputError.expected("at least one chip of the group in a node", float(np.min(node)), where="per_node")
    if np.any(group % node):
        uneven = int(np.argmax(group % node != 0))
        where = f"a group of {group[uneven]:g} with {node[uneven]:g} a node"
        raise InputError.expected("a group that is whole nodes", "a remainder", where=where)


def _inner(kind: str, size: Floats, group: Floats, node: Floats) -> tuple[Floats, Floats]:
    """Bytes and group of the part inside a node: an all-to-all keeps the share whose destination is there."""
    if kind == "all_to_all":
        return size * node / group, node
    if kind == "point_to_point":
        return size, np.where(group > node, 1.0, node)
    return size, node


def _across(kind: str, size: Floats, group: Floats, node: Floats, network: Network) -> tuple[Floats, Floats]:
    """Transfer and latency (s) of the part between nodes, one port a chip."""
    nodes = group / node
    port = given("port", network.bandwidth_bytes_s * network.efficiency, "B/s/chip")
    shared = {"all_to_all": size, "point_to_point": size}.get(kind, size / node)
    fabric = Switch(given("nodes", nodes, "chip"), port, given("latency", network.latency_s, "s"))
    found = collectives.collective(cast("collectives.Collective", kind), given("size", shared, "B"), fabric)
    latency = np.asarray(found.latency.base, dtype=np.float64)
    if kind == "all_reduce":
        latency = np.minimum(latency, 2 * np.ceil(np.log2(np.maximum(nodes, 1))) * network.latency_s)
    return np.asarray(found.transfer.base, dtype=np.float64), latency


def on_ramp(kind: str, ramp: Ramp, size: Floats, group: Floats, bandwidth_bytes_s: float | None) -> Estimate:
    """Seconds from a table; with a bandwidth the table holds ratios to ``latency + bytes sent/bandwidth``.

    A group above the largest in the table sends as much more as its ring does, and waits for each further step.
    """
    groups, sizes = (np.exp(axis) for axis in ramp.grid.axes)
    held, most = np.clip(group, groups[0], groups[-1]), sizes[-1]
    ratio = ramp.grid.at(np.log(held), np.log(np.maximum(size, 1.0)))
    if bandwidth_bytes_s is None:
        seconds = np.exp(ratio) * np.maximum(size / most, 1.0)
    else:
        seconds = np.exp(ratio) * (ramp.latency_s + bus_bytes(kind, size, held) / bandwidth_bytes_s)
    seconds *= _more(kind, group, held)
    seconds += _step_s(ramp) * np.maximum(group - held, 0.0)
    seconds = np.where(group > 1, seconds, 0.0)
    inside: NDArray[np.bool_] = (size <= most * (1 + 1e-9)) & (group <= groups[-1] + 1e-9)
    low, high = ramp.spread
    outer = np.where(inside, 1.0, number(catalog.constant("kernels.network.spread")))
    return Estimate(
        seconds,
        seconds * np.exp(low) / outer,
        seconds * np.exp(high) * outer,
        inside & np.bool_(bandwidth_bytes_s is None),
    )


def _step_s(ramp: Ramp) -> float:
    """What one more chip adds to the smallest message, between the two largest groups of a table of seconds."""
    groups, sizes = ramp.grid.axes
    first = ramp.grid.values.reshape(len(groups), len(sizes))[-2:, 0]
    seconds = np.exp(first) * (ramp.latency_s or 1.0)
    return max(0.0, float(np.diff(seconds)[0] / np.diff(np.exp(groups[-2:]))[0]))


def _more(kind: str, group: Floats, held: Floats) -> Floats:
    """Bytes sent by a group over those sent by the nearest one in the table."""
    group = np.maximum(group, 2.0)
    found: Floats = bus_bytes(kind, np.ones(group.shape), group) / bus_bytes(kind, np.ones(group.shape), held)
    return np.where(group > held, found, 1.0)


def dispatch_bytes(tokens: ArrayLike, top_k: ArrayLike, width: ArrayLike) -> Floats:
    """Bytes that one chip sends to experts in fp8: each token ``top_k`` times, with one fp32 scale a group of elements.

    ``T*k*(H + 4*H/128)``, as DeepEP's low-latency kernels send them.
    """
    tokens, top_k, width = (np.asarray(item, dtype=np.float64) for item in (tokens, top_k, width))
    group = number(catalog.constant("kernels.expert_exchange.scale_group"))
    element, scale = number(catalog.constant("dtypes.fp8")), number(catalog.constant("dtypes.fp32"))
    found: Floats = tokens * top_k * width * (element + scale / group)
    return found


def combine_bytes(tokens: ArrayLike, top_k: ArrayLike, width: ArrayLike) -> Floats:
    """Bytes that come back from the experts in bf16: ``T*k*2H``."""
    tokens, top_k, width = (np.asarray(item, dtype=np.float64) for item in (tokens, top_k, width))
    found: Floats = tokens * top_k * width * number(catalog.constant("dtypes.bf16"))
    return found


def expert_exchange(
    direction: Literal["dispatch", "combine"], tokens: ArrayLike, top_k: ArrayLike, width: ArrayLike, group: ArrayLike
) -> Estimate:
    """Seconds of a low-latency all-to-all to experts (``dispatch``, fp8) or back (``combine``, bf16), one layer.

    ``tokens`` a chip over ``group`` chips with 400 Gbit/s ports: `dispatch_bytes` or `combine_bytes` over the bandwidth
    that the published times imply, interpolated in the logarithm of the group. Outside the published groups (8 to
    256) the nearest one's bandwidth holds. Raises `InputError` for another direction.
    """
    count = {"dispatch": dispatch_bytes, "combine": combine_bytes}.get(direction)
    if count is None:
        raise InputError.expected("dispatch or combine", direction, where="the exchange's direction")
    groups, bandwidth_bytes_s = _published_exchange(direction)
    group_ = np.asarray(group, dtype=np.float64)
    rate = np.exp(np.interp(np.log(group_), np.log(groups), np.log(bandwidth_bytes_s)))
    seconds = np.atleast_1d(count(tokens, top_k, width) / rate)
    published = np.broadcast_to(np.isin(group_, groups), seconds.shape)
    ratio = np.where(published, 1.0, number(catalog.constant("kernels.network.spread")))
    noise = number(catalog.constant("kernels.stand_in.spread"))
    return Estimate(seconds, seconds / ratio / noise, seconds * ratio * noise, published)


@lru_cache(maxsize=2)
def _published_exchange(direction: str) -> tuple[Floats, Floats]:
    """The published groups, and the B/s that their times imply for the shape that they were measured with."""
    prefix = "kernels.expert_exchange."
    held = {
        int(name.rpartition(".ep")[2]): number(found[0])
        for name, found in catalog.constants("kernels").items()
        if name.startswith(f"{prefix}{direction}.ep")
    }
    shape = [number(catalog.constant(f"{prefix}{name}")) for name in ("tokens", "top_k", "width")]
    size = {"dispatch": dispatch_bytes, "combine": combine_bytes}[direction](*shape)
    groups = np.array(sorted(held), dtype=np.float64)
    return groups, size / np.array([held[int(group)] for group in groups])
