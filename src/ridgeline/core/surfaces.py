"""Measured efficiency surfaces: small coefficient files under ``core/data/surfaces``, one per measured system.

``scripts/fit_surfaces.py`` makes the files from public kernel tables. A surface holds ln(measured time / reference) on
a grid of nodes that are regular in the logarithm of a shape's sides, and is read by multilinear interpolation. The
reference is ``launch + FLOPs/peak + bytes/bandwidth`` with the figures stored in the file: a later correction of the
catalog does not move what was measured. Outside the grid the value at its border holds.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.quantity import Source

FOLDER = Path(__file__).parent / "data" / "surfaces"
SERVING = FOLDER / "serving"
TYPICAL = "typical"  # the file of the mean over the measured devices
SCALE = 1000  # grid values are stored as whole thousandths of a logarithm

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """Values on the nodes of a grid; ``axes`` are the nodes' natural logarithms, ascending."""

    axes: tuple[Floats, ...]
    values: Floats

    @classmethod
    def of(cls, axes: Sequence[Sequence[float]], values: Sequence[float]) -> "Grid":
        """A grid from the nodes as they are stored (not logarithms) and the flat list of thousandths."""
        logs = tuple(np.log(np.asarray(axis, dtype=np.float64)) for axis in axes)
        return cls(logs, np.asarray(values, dtype=np.float64) / SCALE)

    def at(self, *coordinates: Floats) -> Floats:
        """The interpolated value at logarithms of the sides: one array per axis, all of one shape."""
        total: Floats = np.zeros(np.shape(coordinates[0]))
        for index, weight in corners(self.axes, coordinates):
            total += weight * self.values[index]
        return total

    def covers(self, *coordinates: Floats) -> NDArray[np.bool_]:
        """Whether each point lies within the grid."""
        inside = np.ones(np.shape(coordinates[0]), dtype=np.bool_)
        for axis, coordinate in zip(self.axes, coordinates, strict=True):
            inside &= (coordinate >= axis[0] - 1e-9) & (coordinate <= axis[-1] + 1e-9)
        return inside


def corners(axes: Sequence[Floats], coordinates: Sequence[Floats]) -> Iterator[tuple[NDArray[np.intp], Floats]]:
    """The flat index and the weight of each corner of the cells that hold the points; the border holds outside.

    An axis of one node has no cells: it is skipped.
    """
    parts: list[tuple[NDArray[np.intp], Floats, int]] = []
    stride = int(np.prod([len(axis) for axis in axes]))
    for axis, coordinate in zip(axes, coordinates, strict=True):
        stride //= len(axis)
        if len(axis) == 1:
            continue
        cell = np.clip(np.searchsorted(axis, coordinate, side="right") - 1, 0, len(axis) - 2)
        share = np.clip((coordinate - axis[cell]) / np.diff(axis)[cell], 0.0, 1.0)
        parts.append((cell * stride, share, stride))
    shape = np.shape(coordinates[0])
    start: list[tuple[NDArray[np.intp], Floats]] = [(np.zeros(shape, dtype=np.intp), np.ones(shape))]
    for base, share, step in parts:
        start = [
            (index + base + step * bit, weight * (share if bit else 1 - share))
            for index, weight in start
            for bit in (0, 1)
        ]
    yield from start


@dataclass(frozen=True)
class Spread:
    """The 80% interval of held-out ln(actual/fitted), by FLOPs: ``edges_flops`` part the bands, ascending.

    ``beyond`` is the interval of a hold-out of the largest shapes: what extrapolation costs.
    """

    edges_flops: Floats
    low: Floats
    high: Floats
    beyond: tuple[float, float]

    def at(self, flops: Floats, inside: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """The lower and upper ends (logarithms) of work of that size, inside or outside the grid."""
        band = np.searchsorted(self.edges_flops, flops)
        low, high = self.low[band], self.high[band]
        outer_low, outer_high = low + self.beyond[0], high + self.beyond[1]
        return np.where(inside, low, outer_low), np.where(inside, high, outer_high)


@dataclass(frozen=True)
class Reference:
    """What a grid's values are relative to: seconds a launch, FLOP/s and B/s of the chip."""

    launch_s: float
    peak_flops_s: float
    bandwidth_bytes_s: float

    def seconds(self, flops: Floats, moved_bytes: Floats) -> Floats:
        """``launch + FLOPs/peak + bytes/bandwidth`` in seconds."""
        return self.launch_s + flops / self.peak_flops_s + moved_bytes / self.bandwidth_bytes_s


@dataclass(frozen=True)
class Surface:
    """One fitted kernel: its grid, reference, interval, extra terms by name, errors on held-out rows, and ceiling.

    ``ceiling`` holds the median, tenth and ninetieth percentile of the share of peak at large shapes.
    """

    grid: Grid
    reference: Reference
    spread: Spread
    terms: Mapping[str, float]
    rows: int
    held_out: Mapping[str, tuple[float, float]]
    ceiling: tuple[float, float, float] | None


@dataclass(frozen=True)
class Ramp:
    """One collective: a grid over ln(group) and ln(bytes), and the 80% interval (logarithms) of what it leaves.

    Its values are ln(seconds), or in the typical file ln(seconds/(``latency_s`` + bytes sent/link bandwidth)).
    """

    grid: Grid
    rows: int
    spread: tuple[float, float]
    latency_s: float


@dataclass(frozen=True)
class Surfaces:
    """Everything measured on one system. ``units`` is the number of multiprocessors, where known.

    ``devices`` are catalog slugs whose figures these are; ``stand_in_for`` are relatives with the same matrix units.
    """

    system: str
    devices: tuple[str, ...]
    stand_in_for: tuple[str, ...]
    units: int | None
    gemm: Mapping[str, Surface]
    attention: Mapping[int, Surface]
    collectives: Mapping[str, Ramp]
    bus_efficiency: Mapping[str, float]
    source: Source


@dataclass(frozen=True)
class Estimate:
    """Seconds with their 80% interval, and whether each lies in the range that was measured; arrays of one shape."""

    seconds: Floats
    low: Floats
    high: Floats
    measured: NDArray[np.bool_]


@dataclass(frozen=True)
class ServingSurfaces:
    """Serving kernels measured on one system, by element type of cache or weights, then by head dim where one is named.

    ``decode`` is attention of new tokens against a cache, ``prefill`` that of whole prompts; ``latent`` and
    ``latent_prefill`` are those of MLA, ``experts`` grouped matmuls, ``all_reduce`` the one for small messages.
    """

    decode: Mapping[str, Mapping[int, Surface]]
    prefill: Mapping[int, Surface]
    latent: Mapping[str, Surface]
    latent_prefill: Mapping[str, Surface]
    experts: Mapping[str, Surface]
    all_reduce: Ramp | None
    source: Source


def measured(slug: str) -> Surfaces | None:
    """The surfaces of the device of that slug, or of the relative that stands in for it; None if there are none."""
    system = _index().get(slug)
    return None if system is None else load(system)


def systems() -> list[str]:
    """The measured systems by the name of their file."""
    return sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != TYPICAL)


@lru_cache(maxsize=1)
def _index() -> dict[str, str]:
    found: dict[str, str] = {}
    for system in systems():
        held = load(system)
        found |= dict.fromkeys((*held.devices, *held.stand_in_for), system)
    return found


@lru_cache(maxsize=32)
def serving(system: str) -> ServingSurfaces | None:
    """The serving surfaces of one file; None where that system has none."""
    path = SERVING / f"{system}.json"
    if not path.is_file():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    by_dim = {
        dtype: {int(dim): _surface(item, ("seen", "caches", "group")) for dim, item in held.items()}
        for dtype, held in data["decode"].items()
    }
    return ServingSurfaces(
        decode=by_dim,
        prefill={int(dim): _surface(item, ("seq", "blocks", "seen")) for dim, item in data["prefill"].items()},
        latent={key: _surface(item, ("seen", "batch", "heads")) for key, item in data["latent"].items()},
        latent_prefill={key: _surface(item, ("seq", "batch", "heads")) for key, item in data["latent_prefill"].items()},
        experts={key: _surface(item, ("rows", "experts", "matrix")) for key, item in data["experts"].items()},
        all_reduce=_ramp(data["all_reduce"]) if data["all_reduce"] else None,
        source=_source(data["source"]),
    )


@dataclass(frozen=True)
class Mixed:
    """ln(attention of a mixed step / that of its prompt alone) by ln of decode over prompt, sequences that decode, and
    queries a key head, with the 80% interval (logarithms) of leaving a profile out. ``devices`` were measured."""

    devices: tuple[str, ...]
    grid: Grid
    spread: tuple[float, float]
    held_out: tuple[float, float]
    source: Source


@lru_cache(maxsize=1)
def mixed() -> Mixed:
    """The measured interaction of a prompt with decodes in one attention call."""
    data = json.loads((SERVING / "mixed.json").read_text(encoding="utf-8"))
    grid = Grid.of([data["nodes"][axis] for axis in ("ratio", "sequences", "group")], data["log_ratio"])
    low, high = data["spread"]
    middle, tail = data["held_out"]["profiles"]
    devices = tuple(data["devices"])
    return Mixed(devices, grid, (float(low), float(high)), (float(middle), float(tail)), _source(data["source"]))


def serving_of(slug: str) -> ServingSurfaces | None:
    """The serving surfaces of the device of that slug or of the relative that stands in for it; None without any."""
    system = _index().get(slug)
    return None if system is None else serving(system)


@lru_cache(maxsize=32)
def load(system: str) -> Surfaces:
    """The surfaces of one file."""
    data = json.loads((FOLDER / f"{system}.json").read_text(encoding="utf-8"))
    return Surfaces(
        system=system,
        devices=tuple(data["devices"]),
        stand_in_for=tuple(data["stand_in_for"]),
        units=data["units"],
        gemm={dtype: _surface(item, ("m", "n", "k")) for dtype, item in data["gemm"].items()},
        attention={int(dim): _surface(item, ("seq", "blocks", "seen")) for dim, item in data["attention"].items()},
        collectives={kind: _ramp(item) for kind, item in data["collectives"].items()},
        bus_efficiency=data["bus_efficiency"],
        source=_source(data["source"]),
    )


def _source(cited: Mapping[str, str]) -> Source:
    where = f"{cited['repository']} at {cited['commit'][:8]}, {cited['licence']}"
    return Source(cited["title"], where, cited["read_on"], cited["url"])


def _surface(item: Mapping[str, Any], axes: tuple[str, ...]) -> Surface:
    reference, spread = item["reference"], item["spread"]
    return Surface(
        Grid.of([item["nodes"][axis] for axis in axes], item["log_ratio"]),
        Reference(reference["launch_s"], reference["peak_flops_s"], reference["bandwidth_bytes_s"]),
        Spread(
            np.asarray(spread["edges_flops"], dtype=np.float64),
            np.asarray(spread["low"], dtype=np.float64),
            np.asarray(spread["high"], dtype=np.float64),
            (float(spread["beyond"][0]), float(spread["beyond"][1])),
        ),
        item["terms"],
        int(item["rows"]),
        {name: (float(pair[0]), float(pair[1])) for name, pair in item["held_out"].items()},
        None if item["ceiling"] is None else tuple(item["ceiling"]),
    )


def _ramp(item: Mapping[str, Any]) -> Ramp:
    low, high = item["spread"]
    grid = Grid.of([item["group"], item["bytes"]], item["log_seconds"])
    return Ramp(grid, int(item["rows"]), (float(low), float(high)), float(item["latency_s"]))
