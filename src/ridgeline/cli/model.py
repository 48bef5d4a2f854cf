"""``ridgeline model``."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _talk

if TYPE_CHECKING:
    from ridgeline.arithmetic.spec import ModelSpec
    from ridgeline.core.case import InputFile


def command(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="A config.json, the folder that holds it, or a TOML file."),
    ] = None,
    download: Annotated[
        str, typer.Option("--download", metavar="HUB_ID", help="Fetch the config of this hub id instead of PATH.")
    ] = "",
    allow_field: Annotated[
        list[str] | None,
        typer.Option("--allow-field", metavar="NAME", help="Accept this unknown field; it changes no count."),
    ] = None,
    context: Annotated[str, typer.Option("--context", help="Sequence length for the FLOPs of a token.")] = "8k",
    matmuls: Annotated[bool, typer.Option("--matmuls", help="Also list the matmuls of one token.")] = False,
    output: _talk.Output = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Exact parameter counts of a model by part, and the matmuls of one token."""
    from ridgeline.arithmetic.model_case import FLOPS, MATMULS, PARTS, model_case
    from ridgeline.core import parse

    allowed = tuple(allow_field or ())
    length = parse.context(context, where="--context")
    spec, source = _read(path, download, allowed)
    words = ["--download", download] if download else [str(path)]
    words += [word for name in allowed for word in ("--allow-field", name)]
    case = model_case(
        spec, source, context=length, command=shlex.join(["ridgeline", "model", *words, "--context", context])
    )
    shown = [PARTS, FLOPS, *([MATMULS] if matmuls else [])]
    _talk.hand_over(case, lambda made: _talk.sheet(made, shown), as_json=as_json, output=output)


def _read(path: Path | None, download: str, allowed: tuple[str, ...]) -> "tuple[ModelSpec, InputFile]":
    from ridgeline.arithmetic.read_model import config_from_bytes, read_model
    from ridgeline.core.errors import InputError

    if (path is None) == (not download):
        raise InputError.expected("either a PATH or --download HUB_ID", str(path or download), where="PATH")
    if path is not None:
        return read_model(path, allow_fields=allowed)
    from ridgeline.cli._hub import fetch_config

    content, address = fetch_config(download)
    return config_from_bytes(content, origin=address, name=download, allow_fields=allowed)
