"""The machine that a plan runs on: how many chips, how they are grouped, and the two links between them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ridgeline.core import figures
from ridgeline.core.catalog import DATA, Device, constant, constants, device
from ridgeline.core.errors import InfeasibleError, InputError, did_you_mean
from ridgeline.core.quantity import Quantity

_TEXT = re.compile(r"\s*(\d[\d_,]*)\s*[xX×*]\s*(\S.*?)\s*")
_MOST = 2**24  # chips
_FILL = 0.8  # of a scale-up domain, at least


@dataclass(frozen=True)
class Cluster:
    """``chips`` of one ``device`` in scale-up domains of ``node_size``.

    ``link_bytes_per_s`` leaves a chip inside its domain, ``network_bytes_per_s`` leaves it towards other domains, one
    direction each; ``network_latency_s`` is that of one collective step there. ``facts`` are the
    quantities behind these numbers, assumed ones among them.
    """

    device: Device
    chips: int
    node_size: int
    link_bytes_per_s: float
    network_bytes_per_s: float
    network_latency_s: float
    network: str = ""
    facts: tuple[Quantity, ...] = field(default=(), compare=False, repr=False)

    @property
    def nodes(self) -> int:
        """Scale-up domains, the last one perhaps not full."""
        return -(-self.chips // self.node_size)

    @property
    def assumptions(self) -> tuple[Quantity, ...]:
        """Facts that no source states for this cluster."""
        return tuple(fact for fact in self.facts if fact.kind == "assumed")

    @property
    def name(self) -> str:
        """``512xH100-SXM-80GB``."""
        return f"{self.chips}x{self.device.name}"


def parse(text: str, *, network: str = "", node_size: int = 0) -> Cluster:
    """A cluster from ``512xH100``. ``network`` names a link of ``links.toml``, ``node_size`` a scale-up domain.

    Raises `InputError` for another form, an unknown device or interconnect, `InfeasibleError` for chips that do not
    fill whole domains.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        hint = "write the number of chips in digits, an x, and a device of `ridgeline devices`"
        raise InputError.expected("a cluster such as 512xH100", text, where="the cluster", hint=hint)
    return cluster(int(re.sub(r"[_,]", "", match[1])), match[2], network=network, node_size=node_size)


def cluster(chips: int, name: str, *, network: str = "", node_size: int = 0) -> Cluster:
    """The same from its parts. Raises as `parse` does."""
    if chips < 1 or node_size < 0:
        raise InputError.expected("at least one chip", min(chips, node_size), where="the cluster")
    if chips > _MOST:
        raise InputError.expected(f"at most {_MOST:,} chips", chips, where="the cluster", hint="check the exponent")
    found = device(name)
    domain = None if node_size else _domain(found)
    size = _filled(chips, node_size or int(domain.value if domain is not None else 1))
    port = _port(found, network)
    link = found.scale_up.bandwidth if found.scale_up is not None else constant(f"links.{port}")
    facts = [link, constant(f"links.{port}"), constant("links.latency.scale_up"), constant("links.latency.scale_out")]
    scale_up, scale_out, near, far = (float(fact.base) for fact in facts)
    if min(scale_up, scale_out, near, far) <= 0:
        lowest = min(scale_up, scale_out, near, far)
        raise InputError.expected("bandwidths and latencies above zero", lowest, where="the cluster's links")
    every = tuple(facts) if domain is None else (domain, *facts)
    return Cluster(found, chips, size, scale_up, scale_out, far, port, every)


def resized(whole: Cluster, chips: int) -> Cluster:
    """The same machine with another number of chips. Raises as `parse` does."""
    if chips == whole.chips:
        return whole
    size = 0 if whole.chips <= whole.node_size else whole.node_size
    return cluster(chips, whole.device.name, network=whole.network, node_size=size)


def _filled(chips: int, size: int) -> int:
    """The chips used in each scale-up domain. A rack may keep spares: 64 of 72 chips, in groups that divide evenly."""
    if chips <= size:
        return chips
    used = next(part for part in range(size, 0, -1) if chips % part == 0)
    if used < _FILL * size:
        text = f"Expected whole nodes of {size} chips, got {chips} chips, at the cluster"
        raise InfeasibleError(text, limit="whole scale-up domains", nearest=f"{chips // size * size} chips")
    return used


def _domain(found: Device) -> Quantity:
    """The scale-up domain: of the clusters file, of the catalog, or assumed."""
    stated = constant(f"clusters.domain.{found.slug}", missing_ok=True)
    return stated or found.devices_per_node or constant("clusters.domain.other")


def _port(found: Device, network: str) -> str:
    ports = [name.removeprefix("links.") for name in constants("links") if not name.startswith("links.latency")]
    if network:
        if network not in ports:
            hint = did_you_mean(network, ports, "one of " + ", ".join(ports))
            raise InputError.expected("a known interconnect", network, where="the cluster's network", hint=hint)
        return network
    usual = _usual_ports()
    return usual.get(found.slug, usual["other"])


@lru_cache(maxsize=1)
def _usual_ports() -> Mapping[str, str]:
    table = figures.table(figures.read(DATA / "clusters.toml").get("network"), "$.network")
    return {key: figures.text(value, f"$.network.{key}") for key, value in table.items()}
