"""The catalog: devices, scaling laws, constants, public runs and data sets, read from ``core/data`` when asked for.

One device is one file under ``data/accelerators`` and one law one file under ``data/laws``; a path to a ``.toml``
is accepted wherever a name is, and an entry point of the group ``ridgeline.accelerator`` or ``ridgeline.law``
names a further folder of such files. There is no default device. An unknown figure is None.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, overload

from ridgeline.core import figures
from ridgeline.core.device import Device, Link
from ridgeline.core.device import parse as parse_device
from ridgeline.core.errors import InputError, UnknownDeviceError, did_you_mean, located
from ridgeline.core.figures import Context, Disagreement
from ridgeline.core.law import Law
from ridgeline.core.law import parse as parse_law
from ridgeline.core.quantity import Quantity, Source, leaf

__all__ = [
    "DATA", "Dataset", "Device", "Disagreement", "Law", "Link", "PublishedRun", "constant", "constants", "datasets",
    "device", "devices", "law", "laws", "published_run", "published_runs",
]  # fmt: skip

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class PublishedRun:
    """A public training run. ``params`` are all parameters, ``active`` those a token uses (the same when dense).

    ``chip_hours`` were billed on ``device`` (a slug of the catalog); None where no card says.
    """

    name: str
    slug: str
    params: Quantity
    active: Quantity
    tokens: Quantity
    device: str | None
    chip_hours: Quantity | None
    note: str


@dataclass(frozen=True)
class Dataset:
    """A public data file: its address, SHA-256, size in bytes, licence, citation, and place in a data folder."""

    name: str
    url: str
    sha256: str
    size_bytes: int
    licence: str
    citation: str
    path: str


def device(name: str) -> Device:
    """The device of that name, slug or alias (case, spaces, ``-`` and ``_`` do not matter), or of a TOML file.

    Raises `UnknownDeviceError` with the close matches, `InputError` for a file that cannot be used.
    """
    if _is_path(name):
        return _read_device(Path(name), own=True)
    path = _find("accelerators", name)
    if path is None:
        every = _index("accelerators").values()
        narrowed = [names[0] for names in every if _key(name) and any(_key(name) in _key(item) for item in names)]
        raise UnknownDeviceError(name, narrowed or [item for names in every for item in (names[0], *names[2:])])
    return _device(path)


def devices() -> list[str]:
    """The names of all devices."""
    return sorted((names[0] for names in _index("accelerators").values()), key=str.lower)


def law(name: str) -> Law:
    """The scaling law of that slug, name or alias, or of a TOML file. Raises `InputError` with the close matches."""
    path = Path(name) if _is_path(name) else _find("laws", name)
    if path is None:
        hint = did_you_mean(name, [item for names in _index("laws").values() for item in names], ", ".join(laws()))
        raise InputError.expected("a known scaling law", name, where="the law", hint=hint)
    return _read_law(path) if _is_path(name) else _law(path)


def laws() -> list[str]:
    """The slugs of all scaling laws."""
    return sorted(path.stem for path in _index("laws"))


@overload
def constant(name: str, *, missing_ok: Literal[False] = False) -> Quantity: ...
@overload
def constant(name: str, *, missing_ok: bool) -> Quantity | None: ...
def constant(name: str, *, missing_ok: bool = False) -> Quantity | None:
    """A constant by its dotted name, such as ``prices.electricity``: the file, then the tables inside it.

    Raises `InputError` for an unknown name; with ``missing_ok`` it gives None instead.
    """
    found = constants(name.partition(".")[0]) if _is_constant_file(name) else {}
    if name in found:
        return found[name][0]
    if missing_ok:
        return None
    hint = did_you_mean(name, found, "files: " + ", ".join(sorted(path.stem for path in DATA.glob("*.toml"))))
    raise InputError.expected("a known constant", name, where="the constant's name", hint=hint)


@lru_cache(maxsize=64)
def constants(file: str) -> dict[str, tuple[Quantity, tuple[Disagreement, ...]]]:
    """Every figure of one file of ``core/data`` by dotted name, each with the figures that disagree."""
    data = figures.read(DATA / f"{file}.toml")
    context = Context(figures.sources(data))
    found: dict[str, tuple[Quantity, tuple[Disagreement, ...]]] = {}

    def visit(entry: Mapping[str, Any], name: str) -> None:
        if "value" in entry:
            found[name] = figures.figure(
                entry, name, figures.text(entry.get("unit"), f"$.{name}.unit"), f"$.{name}", context
            )
            return
        for key, item in entry.items():
            if isinstance(item, Mapping):
                visit(item, f"{name}.{key}")

    visit({key: item for key, item in data.items() if key != "sources"}, file)
    return found


def _is_constant_file(name: str) -> bool:
    return (
        re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_-]+)+", name) is not None
        and (DATA / f"{name.partition('.')[0]}.toml").is_file()
    )


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip().lower())


def _squashed(name: str) -> str:
    """What two spellings of a name share: ``TPU v5e``, ``tpu-v5e``, ``TPUv5e``."""
    return re.sub(r"[\s_-]+", "", name.lower())


def _is_path(name: str) -> bool:
    return name.lower().endswith(".toml") or "/" in name


def _find(kind: str, name: str) -> Path | None:
    direct = DATA / kind / f"{_key(name)}.toml"
    if direct.is_file():  # the common case reads one file
        return direct
    wanted = _squashed(name)
    return next((path for path, names in _index(kind).items() if wanted in map(_squashed, names)), None)


@lru_cache(maxsize=4)
def _index(kind: str) -> dict[Path, tuple[str, ...]]:
    """Every file of a kind with its names: the name, the slug, the aliases."""
    paths = sorted((DATA / kind).glob("*.toml"))
    for entry in entry_points(group=f"ridgeline.{'accelerator' if kind == 'accelerators' else 'law'}"):
        paths += sorted(Path(entry.load()).glob("*.toml"))
    return {path: _names(path) for path in paths}


def _names(path: Path) -> tuple[str, ...]:
    """The names at the top of a file, without parsing its tables."""
    head = path.read_text(encoding="utf-8").partition("\n[")[0]
    try:
        data = tomllib.loads(head)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"Expected valid TOML, got {error},", where=str(path)) from error
    return (str(data.get("name", path.stem)), path.stem, *data.get("aliases", []))


@lru_cache(maxsize=128)
def _device(path: Path) -> Device:
    return _read_device(path, own=False)


def _read_device(path: Path, *, own: bool) -> Device:
    """A catalog figure must name its kind and its source; a user's own file vouches for its figures."""
    with located(str(path) if own else path.name):
        data = figures.read(path)
        found = figures.sources(data)
        given = Source("given by the user", str(path))
        context = Context(found, given, "specified") if own else Context(found)
        return parse_device(data, _key(path.stem), context)


@lru_cache(maxsize=64)
def _law(path: Path) -> Law:
    return _read_law(path)


def _read_law(path: Path) -> Law:
    with located(path.name if path.is_relative_to(DATA) else str(path)):
        return parse_law(figures.read(path), _key(path.stem))


def published_runs() -> list[str]:
    """The slugs of the public training runs."""
    return sorted(_runs())


def published_run(slug: str) -> PublishedRun:
    """A public training run. Raises `InputError` with the close matches."""
    runs = _runs()
    if slug not in runs:
        hint = did_you_mean(slug, runs, ", ".join(sorted(runs)))
        raise InputError.expected("a known public run", slug, where="the run", hint=hint)
    return runs[slug]


@lru_cache(maxsize=1)
def _runs() -> dict[str, PublishedRun]:
    data = figures.read(DATA / "published_runs.toml")
    cited = figures.sources(data)
    return {slug: _run(slug, entry, cited[entry["source"]]) for slug, entry in data["runs"].items()}


def _run(slug: str, entry: Mapping[str, Any], source: Source) -> PublishedRun:
    source = replace(source, where=entry["where"])

    def stated(key: str, unit: str) -> Quantity:
        return leaf(f"run.{slug}.{key}", entry[key], unit, "published", source, entry.get("note", ""))

    params = stated("params", "param")
    return PublishedRun(
        name=entry["name"],
        slug=slug,
        params=params,
        active=stated("params_active", "param") if "params_active" in entry else params,
        tokens=stated("tokens", "token"),
        device=entry.get("device"),
        chip_hours=stated("chip_hours", "chip*h") if "chip_hours" in entry else None,
        note=entry.get("note", ""),
    )


def datasets() -> dict[str, Dataset]:
    """The public data files by name. ``licence`` says *none stated* where the repository has no licence file."""
    return {
        name: Dataset(
            name, entry["url"], entry["sha256"], entry["bytes"], entry["licence"], entry["citation"], entry["path"]
        )
        for name, entry in figures.read(DATA / "datasets.toml").items()
    }
