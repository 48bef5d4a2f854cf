"""A figure written in TOML, read as a `Quantity` with its source and with the figures that disagree.

The shape, the same in every data file::

    [sources.datasheet]            title, url, read_on
    [hbm.bandwidth]                value, unit, kind, source, where, note, label
    reason = "why this one"        and disagree = [{ value, source, where, note }, ...]

A bare number (``hbm.bandwidth = 3.35e12``) is a figure in the expected unit, for files that people write.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.parse import ABSURD
from ridgeline.core.quantity import Kind, Quantity, Source, leaf

KINDS: tuple[Kind, ...] = ("specified", "published", "measured", "assumed")
_KEYS = {"value", "unit", "kind", "source", "where", "note", "label", "reason", "disagree"}


@dataclass(frozen=True)
class Disagreement:
    """A figure of another source that was not chosen; ``reason`` says why the chosen one was."""

    name: str
    value: float
    unit: str
    chosen: float
    reason: str
    source: Source | None
    note: str = ""


@dataclass(frozen=True)
class Context:
    """What the figures of one file share: its sources, the source and the kind of a figure that names none."""

    sources: Mapping[str, Source]
    default_source: Source | None = None
    default_kind: Kind | None = None
    positive: bool = True


def read(path: Path) -> dict[str, Any]:
    """A TOML file as a dict. Raises `InputError` for a file that is missing, unreadable or not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError.expected("a readable TOML file", error.strerror or "an error", where=str(path)) from error
    except ValueError as error:  # not TOML, not UTF-8, or an integer of thousands of digits
        raise InputError(f"Expected valid TOML, got {error},", where=str(path)) from error


def sources(data: Mapping[str, Any]) -> dict[str, Source]:
    """The ``[sources.*]`` tables of a file."""
    found = {}
    for key, item in table(data.get("sources", {}), "$.sources").items():
        entry = table(item, f"$.sources.{key}")
        found[key] = source(entry, f"$.sources.{key}")
    return found


def source(entry: Mapping[str, Any], place: str) -> Source:
    """One source; a title is required, the day is an ISO date."""
    title = text(entry.get("title"), f"{place}.title")
    day = str(entry.get("read_on", ""))
    return Source(title, str(entry.get("where", "")), day, str(entry.get("url", "")))


def figure(
    item: object, name: str, unit: str, place: str, context: Context, extra: frozenset[str] = frozenset()
) -> tuple[Quantity, tuple[Disagreement, ...]]:
    """One figure and the figures that disagree with it.

    ``item`` is a number or a table at ``place`` (such as ``$.hbm.bandwidth``); ``unit`` is the only unit
    accepted; ``extra`` names further keys that the caller reads. Raises `InputError` with the place.
    """
    entry = {"value": item} if not isinstance(item, Mapping) else table(item, place)
    only(entry, _KEYS | extra, place)
    value = number(entry.get("value"), place, positive=context.positive)
    if entry.get("unit", unit) != unit:
        raise InputError.expected(f"the unit {unit}", entry["unit"], where=f"{place}.unit")
    note, chosen = str(entry.get("note", "")), _cited(entry, context, place)
    kind = _kind(entry.get("kind", context.default_kind), place)
    if kind in ("published", "measured") and chosen is None:
        raise InputError.expected("a source for a published or measured figure", None, where=f"{place}.source")
    quantity = leaf(name, value, unit, kind, chosen, note).titled(str(entry.get("label", "")))
    return quantity, tuple(_disagreements(entry, quantity, place, context))


def _disagreements(entry: Mapping[str, Any], chosen: Quantity, place: str, context: Context) -> list[Disagreement]:
    found = []
    for index, other in enumerate(entry.get("disagree", [])):
        at = f"{place}.disagree[{index}]"
        only(table(other, at), {"value", "source", "where", "note"}, at)
        value = number(other.get("value"), at, positive=context.positive)
        reason = text(entry.get("reason"), f"{place}.reason")
        cited = _cited(other, context, at)
        note = str(other.get("note", ""))
        found.append(Disagreement(chosen.name, value, chosen.unit, cast(float, chosen.value), reason, cited, note))
    return found


def _cited(entry: Mapping[str, Any], context: Context, place: str) -> Source | None:
    key, where = entry.get("source"), str(entry.get("where", ""))
    if key is None:
        return context.default_source
    if key not in context.sources:
        hint = did_you_mean(str(key), context.sources, "add it under [sources]")
        raise InputError.expected("a source of this file", key, where=f"{place}.source", hint=hint)
    base = context.sources[key]
    return Source(base.title, where or base.where, base.read_on, base.url)


def _kind(value: object, place: str) -> Kind:
    for kind in KINDS:
        if value == kind:
            return kind
    raise InputError.expected("one of " + ", ".join(KINDS), value, where=f"{place}.kind")


def number(value: object, place: str, *, positive: bool = True) -> float:
    """A finite number, greater than zero unless told otherwise. Raises `InputError`."""
    wanted = "a positive number" if positive else "a finite number"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError.expected(wanted, value, where=place)
    if abs(value) > ABSURD or not math.isfinite(value) or (positive and value <= 0):
        raise InputError.expected(wanted, value, where=place)
    return value


def table(value: object, place: str) -> Mapping[str, Any]:
    """A TOML table. Raises `InputError`."""
    if not isinstance(value, Mapping):
        raise InputError.expected("a table", value, where=place)
    return value


def text(value: object, place: str) -> str:
    """A text that is not empty. Raises `InputError`."""
    if not isinstance(value, str) or not value.strip():
        raise InputError.expected("a text", value, where=place)
    return value


def texts(value: object, place: str) -> tuple[str, ...]:
    """A list of texts. Raises `InputError`."""
    if not isinstance(value, list):
        raise InputError.expected("a list of texts", value, where=place)
    return tuple(text(item, f"{place}[{index}]") for index, item in enumerate(value))


def only(entry: Mapping[str, Any], allowed: set[str] | frozenset[str], place: str) -> None:
    """Refuse a key that nothing reads: a misspelt figure would otherwise be an unknown one."""
    for key in entry:
        if key not in allowed:
            hint = did_you_mean(key, allowed, "known keys: " + ", ".join(sorted(allowed)))
            raise InputError.expected("a known key", key, where=f"{place}.{key}", hint=hint)
