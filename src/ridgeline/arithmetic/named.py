"""Models by name: a few published shapes in ``core/data/models``, so that a command needs no file.

A file holds the keys of `arithmetic.shape`, or those of a Hugging Face config with its ``model_type``, and its source.
"""

from pathlib import Path

from ridgeline.arithmetic.configs.reader import read_config
from ridgeline.arithmetic.read_model import read_model
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.case import InputFile
from ridgeline.core.catalog import DATA
from ridgeline.core.errors import InputError, did_you_mean, located
from ridgeline.core.specs import build, read_toml

_FOLDER = DATA / "models"


def names() -> list[str]:
    """Every model that has a name here."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def named(name: str) -> tuple[ModelSpec, InputFile]:
    """The model of that name, upper or lower case, and its file.

    Raises `InputError` with the close matches.
    """
    key = name.strip().lower()
    if key not in names():
        hint = did_you_mean(key, names(), "known: " + ", ".join(names()) + "; or the path of a config.json")
        raise InputError.expected("a known model or a file", name, where="the model", hint=hint)
    file = _FOLDER / f"{key}.toml"
    data = read_toml(file, what="model file")
    data.pop("source", None)
    with located(str(file)):
        spec = read_config(data, name=key) if "model_type" in data else model(build(Shape, {"name": key, **data}))
    return spec, InputFile(f"models/{file.name}", InputFile.of(file).sha256, file.stat().st_size)


def find_model(text: str) -> tuple[ModelSpec, InputFile]:
    """A model by name or by path (config.json, its folder, a TOML). Raises `InputError` for neither."""
    if text.strip().lower() in names() or not Path(text).exists():
        return named(text)
    return read_model(text)
