"""Typed inputs: pydantic models, with our wording for what they refuse, and readers for TOML and JSON."""

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from ridgeline.core.errors import InputError, did_you_mean

M = TypeVar("M", bound=BaseModel)


class Spec(BaseModel):
    """A frozen input without unknown fields: a misspelt field is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


def typed(read: Callable[..., Any], where: str, **options: Any) -> BeforeValidator:
    """A field that people type (``"15T"``, ``"30d"``, 8192): ``read`` of `ridgeline.core.parse` makes its value."""

    def validate(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InputError.expected("a text or a number", value, where=where)
        return read(value if isinstance(value, str) else repr(value), where=where, **options)

    return BeforeValidator(validate)


def build(model: type[M], data: Mapping[str, Any], *, where: str = "") -> M:
    """Validate a plain mapping. Raises `InputError` with the place as ``$.a[3].b`` of the first fault."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _worded(model, error, where) from None


# pydantic's names for what a TOML file calls otherwise
_PLAIN = {"a valid tuple": "a list", "a valid dictionary": "a table", "a valid boolean": "true or false"}


def _worded(model: type[BaseModel], error: ValidationError, where: str) -> InputError:
    first = error.errors(include_url=False)[0]
    place = path(first["loc"])
    full = f"{where}: {place}" if where else place
    if first["type"] == "extra_forbidden":
        name = str(first["loc"][-1])
        hint = did_you_mean(name, _fields(model, first["loc"][:-1]))
        return InputError(f"Expected a known field, got {name!r},", where=full, hint=hint)
    if first["type"] == "missing":
        return InputError("Expected a value, got none,", where=full)
    message = (
        first["msg"].removeprefix("Value error, ").removeprefix("Input should be ").partition(" or instance of ")[0]
    )
    return InputError.expected(_PLAIN.get(message, message), first["input"], where=full)


def _fields(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The field names where a fault lies, through lists and optional tables."""
    current: Any = model
    for step in loc:
        info = getattr(current, "model_fields", {}).get(step)
        current = _table(info.annotation) if info is not None else current
    return list(getattr(current, "model_fields", {}))


def _table(annotation: Any) -> Any:
    """The model inside ``X | None``, ``tuple[X, ...]`` or ``X``."""
    inside = [_table(item) for item in get_args(annotation)]
    return next((item for item in inside if hasattr(item, "model_fields")), annotation)


def path(loc: tuple[int | str, ...]) -> str:
    """``("layers", 3, "d_ff")`` -> ``$.layers[3].d_ff``."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc)


def read_text(file: str | Path, *, what: str) -> str:
    """A text file, or an `InputError` in one sentence."""
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.expected(f"{what} as UTF-8 text", "other bytes", where=f"{file}, byte {error.start}") from None
    except OSError as error:
        raise InputError.expected(f"a readable {what}", error.strerror, where=str(file)) from None


def read_toml(file: str | Path, *, what: str = "TOML file") -> dict[str, Any]:
    """A TOML file as a mapping."""
    try:
        return tomllib.loads(read_text(file, what=what))
    except tomllib.TOMLDecodeError as error:
        raise InputError.expected(f"a valid {what}", str(error), where=str(file)) from None


def read_json(file: str | Path, *, what: str = "JSON file") -> Any:
    """A JSON file. ``Infinity`` and ``NaN``, which Python's writers put there, are read as floats."""
    text = read_text(file, what=what)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        hint = "the file seems cut short" if error.pos >= len(text.rstrip()) - 1 else ""
        place = f"{file}, line {error.lineno}, column {error.colno}"
        raise InputError.expected(f"a whole {what}", error.msg, where=place, hint=hint) from None
    except (RecursionError, ValueError) as error:
        raise InputError.expected(f"a plain {what}", str(error), where=str(file)) from None
