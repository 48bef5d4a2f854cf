"""An accelerator, read from its TOML file. The catalog finds the file: see `ridgeline.core.catalog`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ridgeline.core import figures
from ridgeline.core.errors import InputError
from ridgeline.core.figures import Context, Disagreement
from ridgeline.core.quantity import Quantity

DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
_DTYPE_NAMES = {
    "float64": "fp64", "float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "half": "fp16",
    "float8": "fp8", "mxfp8": "fp8", "mxfp4": "fp4", "nvfp4": "fp4",
}  # fmt: skip
_RATE = "FLOP/s/chip"
_UNITS = {
    "hbm.bytes": "B/chip", "hbm.bandwidth": "B/s/chip", "power.tdp": "W/chip", "design.tile": "1",
    "design.sm_count": "1", "design.devices_per_node": "chip",
}  # fmt: skip
_DEVICE_KEYS = {"name", "vendor", "aliases", "note", "sources", "peak", "sparse", "matmul", "link"} | {
    key.partition(".")[0] for key in _UNITS
}
_LINK_KEYS = frozenset({"technology", "topology", "links", "per_link"})


@dataclass(frozen=True)
class Link:
    """A link of a device. ``bandwidth`` is the chip's total, one direction; ``per_link`` what one pair can use."""

    name: str
    technology: str
    topology: str
    bandwidth: Quantity
    per_link: Quantity | None
    links: int | None


@dataclass(frozen=True)
class Device:
    """An accelerator as its sources describe it. A figure that no source states is None.

    ``peaks`` are dense, ``sparse`` ones need structured sparsity and are never a default, ``ceilings`` are the
    best matmul rates measured (``measured``); all by dtype, in FLOP/s/chip. ``tile`` is the side of the matmul
    tile on M and N.
    """

    name: str
    slug: str
    vendor: str
    aliases: tuple[str, ...]
    note: str
    peaks: Mapping[str, Quantity]
    sparse: Mapping[str, Quantity]
    ceilings: Mapping[str, Quantity]
    hbm_bytes: Quantity | None
    hbm_bandwidth: Quantity | None
    links: Mapping[str, Link]
    power: Quantity | None
    tile: Quantity | None
    sm_count: Quantity | None
    devices_per_node: Quantity | None
    disagreements: tuple[Disagreement, ...]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The data types with a dense peak, widest first."""
        return tuple(dtype for dtype in DTYPES if dtype in self.peaks)

    @property
    def scale_up(self) -> Link | None:
        """The link inside the scale-up domain, or None where its bandwidth is unknown."""
        return self.links.get("scale_up")

    def peak(self, dtype: str) -> Quantity | None:
        """The dense peak, None if unknown. Raises `InputError` for something that is no data type."""
        return self.peaks.get(dtype_name(dtype))

    def sparse_peak(self, dtype: str) -> Quantity | None:
        """The peak with structured sparsity, None if unknown."""
        return self.sparse.get(dtype_name(dtype))

    def ceiling(self, dtype: str) -> Quantity | None:
        """The best matmul rate that was measured, None if unknown."""
        return self.ceilings.get(dtype_name(dtype))

    def figures(self) -> list[Quantity]:
        """Every known figure of the device."""
        single = (self.hbm_bytes, self.hbm_bandwidth, self.power, self.tile, self.sm_count, self.devices_per_node)
        links = [item for link in self.links.values() for item in (link.bandwidth, link.per_link)]
        rates = [*self.peaks.values(), *self.sparse.values(), *self.ceilings.values()]
        return [item for item in (*rates, *single, *links) if item is not None]


def dtype_name(dtype: str) -> str:
    """The catalog's name of a data type: ``bfloat16`` -> ``bf16``. Raises `InputError`."""
    key = _DTYPE_NAMES.get(dtype.lower(), dtype.lower())
    if key not in DTYPES:
        raise InputError.expected("a data type", dtype, where="the dtype", hint="one of " + ", ".join(DTYPES))
    return key


def parse(data: Mapping[str, Any], slug: str, context: Context) -> Device:
    """The device of a TOML document. Raises `InputError` with the place, such as ``$.hbm.bandwidth``."""
    figures.only(data, _DEVICE_KEYS, "$")
    others: list[Disagreement] = []
    one = dict.fromkeys(_UNITS) | _single_figures(data, slug, context, others)
    rates = {group: _rates(data, group, slug, context, others) for group in ("peak", "sparse", "matmul")}
    links = figures.table(data.get("link", {}), "$.link")
    return Device(
        name=figures.text(data.get("name", slug), "$.name"),
        slug=slug,
        vendor=str(data.get("vendor", "")),
        aliases=figures.texts(data.get("aliases", []), "$.aliases"),
        note=str(data.get("note", "")),
        peaks=rates["peak"],
        sparse=rates["sparse"],
        ceilings=rates["matmul"],
        hbm_bytes=one["hbm.bytes"],
        hbm_bandwidth=one["hbm.bandwidth"],
        links={key: _link(item, key, slug, context, others) for key, item in links.items()},
        power=one["power.tdp"],
        tile=one["design.tile"],
        sm_count=one["design.sm_count"],
        devices_per_node=one["design.devices_per_node"],
        disagreements=tuple(others),
    )


def _single_figures(
    data: Mapping[str, Any], slug: str, context: Context, others: list[Disagreement]
) -> dict[str, Quantity]:
    found = {}
    for group in ("hbm", "power", "design"):
        known = {key.partition(".")[2]: unit for key, unit in _UNITS.items() if key.startswith(f"{group}.")}
        entries = figures.table(data.get(group, {}), f"$.{group}")
        figures.only(entries, set(known), f"$.{group}")
        for key, item in entries.items():
            name = f"device.{slug}." + {"bytes": "hbm_bytes", "bandwidth": "hbm_bandwidth", "tdp": "power"}.get(
                key, key
            )
            found[f"{group}.{key}"], rest = figures.figure(item, name, known[key], f"$.{group}.{key}", context)
            others += rest
    return found


def _rates(
    data: Mapping[str, Any], group: str, slug: str, context: Context, others: list[Disagreement]
) -> dict[str, Quantity]:
    entries = figures.table(data.get(group, {}), f"$.{group}")
    figures.only(entries, set(DTYPES), f"$.{group}")
    label = {"sparse": "sparse_peak", "matmul": "ceiling"}.get(group, group)
    found = {}
    for dtype, item in entries.items():
        found[dtype], rest = figures.figure(
            item, f"device.{slug}.{label}.{dtype}", _RATE, f"$.{group}.{dtype}", context
        )
        others += rest
    return found


def _link(item: object, key: str, slug: str, context: Context, others: list[Disagreement]) -> Link:
    place, name = f"$.link.{key}", f"device.{slug}.link.{key}"
    bandwidth, rest = figures.figure(item, name, "B/s/chip", place, context, _LINK_KEYS)
    others += rest
    entry = figures.table(item, place) if isinstance(item, Mapping) else {}
    pair = None
    if "per_link" in entry:
        context = Context(context.sources, bandwidth.source, bandwidth.kind)
        pair, _ = figures.figure(entry["per_link"], f"{name}.per_link", "B/s/chip", f"{place}.per_link", context)
    links = entry.get("links")
    count = None if links is None else int(figures.number(links, f"{place}.links"))
    return Link(key, str(entry.get("technology", "")), str(entry.get("topology", "")), bandwidth, pair, count)
