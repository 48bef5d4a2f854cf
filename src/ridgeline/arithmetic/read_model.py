"""A model from a file: a Hugging Face ``config.json`` (or its folder), or a TOML in either vocabulary."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ridgeline.arithmetic.configs.reader import read_config
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError, located
from ridgeline.core.specs import build, read_json, read_toml

CONFIG = "config.json"


def read_model(path: str | Path, *, allow_fields: Sequence[str] = ()) -> tuple[ModelSpec, InputFile]:
    """The model that a file or folder describes, and the file's hash.

    A folder stands for its ``config.json``. A TOML file with ``model_type`` is read as a Hugging Face config,
    any other as a `Shape`. Raises `InputError` for what cannot be read, is not a model, or does not fit together.
    """
    file = Path(path)
    if file.is_dir():
        file = file / CONFIG
        if not file.is_file():
            raise InputError.expected(f"a folder with a {CONFIG}", str(path), where="PATH")
    if file.suffix == ".toml":
        spec = _from_toml(read_toml(file, what="model file"), file, allow_fields)
    else:
        spec = _from_config(read_json(file, what="model config"), file, allow_fields)
    return spec, InputFile.of(file)


def config_from_bytes(
    content: bytes, *, origin: str, name: str, allow_fields: Sequence[str] = ()
) -> tuple[ModelSpec, InputFile]:
    """The model of a downloaded ``config.json``; ``origin`` is its address, which the case records."""
    try:
        config = json.loads(content)
    except ValueError as error:
        raise InputError.expected("a whole JSON document", str(error), where=origin) from error
    with located(origin):
        spec = read_config(config, name=name, allow_fields=allow_fields)
    return spec, InputFile.of(origin, content)


def _from_toml(data: dict[str, Any], file: Path, allow_fields: Sequence[str]) -> ModelSpec:
    if "model_type" in data:
        return _from_config(data, file, allow_fields)
    with located(str(file)):
        return model(build(Shape, {"name": file.stem, **data}))


def _from_config(config: Any, file: Path, allow_fields: Sequence[str]) -> ModelSpec:
    name = file.resolve().parent.name if file.name == CONFIG else file.stem
    with located(str(file)):
        return read_config(config, name=name, allow_fields=allow_fields)
