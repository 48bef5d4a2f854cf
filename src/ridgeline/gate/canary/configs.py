"""A serving configuration as flat settings: JSON, TOML, YAML, or the text of a command line.

Names are lower case with underscores, without what they are nested in; the place keeps the whole path. Command lines
inside JSON or YAML (``args`` of a container) and JSON inside a command line (``--hf-overrides``) are read too.
"""

import importlib
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError, MissingExtraError

_NUMBER = re.compile(r"^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$")
_TOKENS = re.compile(r"^(\d+(?:\.\d+)?)([kKmM])$")
_STEPS = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20}  # as vLLM reads them
_WORDS = {"true": True, "false": False, "none": None, "null": None}
_VARIABLE = re.compile(r"^[A-Z][A-Z0-9_]*=")
_MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class Setting:
    """One value with its name, the place that a reader can find, and the part of the file that it stands in."""

    name: str
    value: Any
    place: str
    scope: str


@dataclass(frozen=True)
class Serving:
    """The settings of one file."""

    settings: tuple[Setting, ...]
    file: InputFile


def read_serving(path: Path) -> Serving:
    """The settings of a file. Raises `InputError` for one without any, `MissingExtraError` for YAML without PyYAML."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError.expected("a serving configuration", error.strerror, where=str(path)) from error
    if len(raw) > _MAX_BYTES:
        raise InputError.expected("a serving configuration", f"{len(raw):,} bytes", where=str(path))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.expected("text", "other bytes", where=str(path)) from error
    found = tuple(_settings(path, text))
    if not found:
        hint = "JSON, TOML, YAML, or the server's command line as text"
        raise InputError.expected("settings of a server or model", "none", where=str(path), hint=hint)
    return Serving(found, InputFile.of(path, raw))


def _settings(path: Path, text: str) -> Iterator[Setting]:
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        return _flat(_yaml(text, str(path)), "$", path.name)
    if suffix == ".toml":
        try:
            return _flat(tomllib.loads(text), "$", path.name)
        except tomllib.TOMLDecodeError as error:
            raise InputError.expected("TOML", str(error), where=str(path)) from error
    if suffix == ".json" or text.lstrip()[:1] in ("{", "["):
        try:
            return _flat(json.loads(text, parse_constant=_no_number), "$", path.name)
        except (ValueError, RecursionError) as error:
            raise InputError.expected("JSON", str(error), where=str(path)) from error
    return _line(text, path.name, str(path))


def _no_number(text: str) -> None:
    raise ValueError(f"{text}, which is no number")


def _yaml(text: str, where: str) -> Any:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise MissingExtraError("PyYAML", "readers") from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError.expected("YAML", " ".join(str(error).split())[:200], where=where) from None


def _flat(value: Any, at: str, file: str) -> Iterator[Setting]:
    """Every leaf, each list of plain values as one; lists and texts that are a command line as its options."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            place = f"{at}.{name}"
            if isinstance(inner, Mapping) or _nested(inner):
                yield from _flat(inner, place, file)
            elif _command(inner):
                yield from _line(inner if isinstance(inner, str) else shlex.join(inner), file, f"{file}: {place}")
            else:
                yield Setting(_name(str(name)), inner, f"{file}: {place}", f"{file}: {at}")
    elif _command(value):
        yield from _line(value if isinstance(value, str) else shlex.join(value), file, f"{file}: {at}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _flat(inner, f"{at}[{index}]", file)


def _nested(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, Mapping) for item in value)


def _command(value: Any) -> bool:
    if isinstance(value, str):
        return " --" in f" {value}" and not value.lstrip().startswith("{")
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value) and any(
        item.startswith("--") for item in value
    )  # fmt: skip


def _name(text: str) -> str:
    return text.strip().lower().replace("-", "_")


def _line(text: str, file: str, where: str) -> Iterator[Setting]:
    """Options of a command line, and variables set before it. ``--no-x`` is x, off; an option without value is on."""
    try:
        words = shlex.split(text.replace("\\\n", " ").replace("\\\r\n", " "), comments=True)
    except ValueError as error:
        raise InputError.expected("a command line", str(error), where=where) from error
    place = where if ": " in where else file
    index = 0
    while index < len(words):
        word, index = words[index], index + 1
        if _VARIABLE.match(word):
            name, _, value = word.partition("=")
            yield Setting(_name(name), _value(value), f"{place}: {name}", f"{place}: environment")
            continue
        if not word.startswith("--") or word == "--":
            continue
        name, equals, value = word[2:].partition("=")
        if not equals and index < len(words) and not words[index].startswith("--"):
            value, equals, index = words[index], "=", index + 1
        yield from _option(name, value if equals else None, place)


def _option(name: str, value: str | None, place: str) -> Iterator[Setting]:
    here = f"{place}: --{name}"
    if value is None:
        off = name.startswith("no-")
        yield Setting(_name(name[3:] if off else name), not off, here, place)
    elif value.lstrip().startswith("{"):
        try:
            inner = json.loads(value)
        except ValueError as error:
            raise InputError.expected("JSON", str(error), where=here) from error
        yield from (Setting(s.name, s.value, s.place, here) for s in _flat(inner, f"--{name}", place))
    else:
        yield Setting(_name(name), _value(value), here, place)


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _NUMBER.match(text):
        number = float(text)
        return int(number) if number.is_integer() else number
    if match := _TOKENS.match(text):
        return int(float(match.group(1)) * _STEPS[match.group(2)])
    return text
