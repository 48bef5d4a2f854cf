"""``ridgeline devices``: the catalog, or one device with the source of each figure, as a `Case`."""

from typing import Any

from ridgeline.core import catalog
from ridgeline.core import format as formats
from ridgeline.core.case import Case, Column, Section, Table
from ridgeline.core.device import Device
from ridgeline.core.figures import Disagreement
from ridgeline.core.quantity import Source

CATALOG, FIGURES = "devices.catalog", "devices.figures"
DISAGREEMENTS, SOURCES = "devices.disagreements", "devices.sources"


def catalog_case() -> Case:
    """Every device with the figures that most cost models need; *unknown* where no source states one."""
    devices = [catalog.device(name) for name in catalog.devices()]
    case = Case("devices", "Accelerators", f"{len(devices)} devices", "ridgeline devices")
    columns = (
        Column("device", "Device"),
        Column("bf16", "bf16", "FLOP/s/chip", "dense peak"),
        Column("fp8", "fp8", "FLOP/s/chip", "dense peak"),
        Column("hbm", "HBM", "B/chip", "memory size"),
        Column("bandwidth", "HBM rate", "B/s/chip", "memory bandwidth"),
        Column("link", "Scale-up", "B/s/chip", "link bandwidth inside the scale-up domain, one direction"),
        Column("power", "TDP", "W/chip", "board power limit"),
    )
    case.add_table(
        CATALOG, Table("Dense peaks, memory and links, per chip", columns, tuple(_row(device) for device in devices))
    )
    return case


def _row(device: Device) -> tuple[Any, ...]:
    link = device.scale_up
    figures = (
        device.peak("bf16"),
        device.peak("fp8"),
        device.hbm_bytes,
        device.hbm_bandwidth,
        None if link is None else link.bandwidth,
        device.power,
    )
    return (device.name, *figures)


def device_case(name: str) -> Case:
    """One device: every known figure with its kind and source, and the figures that disagree.

    Raises `UnknownDeviceError` with the close matches, or `InputError` for a TOML file that cannot be used.
    """
    device = catalog.device(name)
    also = f", also called {', '.join(device.aliases)}" if device.aliases else ""
    case = Case("devices", device.name, f"{device.vendor} {device.name}{also}".strip(), f"ridgeline devices {name}")
    cited = _Cited()
    case.add_table(FIGURES, _figures(device, cited))
    if device.disagreements:
        case.add_table(DISAGREEMENTS, _disagreements(device, cited))
    case.add_table(SOURCES, cited.table())
    case.sections = [Section("Figures", tuple(filter(None, [device.note])), tuple(case.tables))]
    return case


class _Cited:
    """The sources in the order of their first citation; a figure names its source by number."""

    def __init__(self) -> None:
        self._found: dict[str, Source] = {}

    def number(self, source: Source | None) -> str:
        """``[2] page 9``; empty without a source."""
        if source is None:
            return ""
        self._found.setdefault(source.title, source)
        return f"[{list(self._found).index(source.title) + 1}] {source.where}".rstrip()

    def table(self) -> Table:
        """The list of sources."""
        columns = (
            Column("number", "No."), Column("title", "Source"), Column("read_on", "Read on"), Column("url", "Address"),
        )  # fmt: skip
        every = enumerate(self._found.values(), start=1)
        rows = tuple((f"[{number}]", source.title, source.read_on, source.url) for number, source in every)
        return Table("Sources", columns, rows)


def _figures(device: Device, cited: _Cited) -> Table:
    columns = (
        Column("figure", "Figure"),
        Column("value", "Value"),
        Column("kind", "Kind", meaning="specified, published, measured or assumed"),
        Column("source", "Source", meaning="its number, and where in it"),
    )
    rows = tuple((_short(q.name, device), q, q.kind, cited.number(q.source)) for q in device.figures())
    return Table(f"Figures of {device.name}", columns, rows, note="`sparse_peak` needs structured sparsity.")


def _short(name: str, device: Device) -> str:
    return name.removeprefix(f"device.{device.slug}.")


def _disagreements(device: Device, cited: _Cited) -> Table:
    columns = (
        Column("figure", "Figure"),
        Column("other", "Other"),
        Column("chosen", "Chosen"),
        Column("source", "Source of the other"),
        Column("reason", "Why it was not chosen"),
    )
    rows = tuple(_disagreement(item, device, cited) for item in device.disagreements)
    return Table("Sources that disagree", columns, rows)


def _disagreement(item: Disagreement, device: Device, cited: _Cited) -> tuple[str, ...]:
    other, chosen = formats.value(item.value, item.unit, 4), formats.value(item.chosen, item.unit, 4)
    return (_short(item.name, device), other, chosen, cited.number(item.source), item.reason)
