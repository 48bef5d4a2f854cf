"""What the serve commands share: the model, the chips of one replica, how it is spread and in which element types."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _report

if TYPE_CHECKING:
    from ridgeline.core.case import Case, InputFile
    from ridgeline.serve.deployment import Deployment

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A name such as llama-3-70b, or a config.json, its folder, or a TOML.")
]
Chip = Annotated[str, typer.Option("--device", help="Accelerator, such as H100; see `ridgeline devices`.")]
Count = Annotated[int, typer.Option("--count", help="Chips of one replica.")]
Parallel = Annotated[
    str,
    typer.Option("--parallel", metavar="SIZES", help="Such as tp=4,pp=2,ep=8,dp_attention=8; tp takes what is left."),
]
Weights = Annotated[str, typer.Option("--weights", help="Type of the weights: bf16, fp8, int4, fp4.")]
Kv = Annotated[str, typer.Option("--kv", help="Type of the cache: bf16, fp8, fp8_ds_mla, int8, int4, fp4.")]
Engine = Annotated[str, typer.Option("--engine", help="vllm, sglang or trtllm, where it matters.")]
Context = Annotated[str, typer.Option("--context", help="Tokens of one request, prompt and answer, such as 8k.")]

Folder = _report.Folder
REPORT = Path("serve-report")

_SIZES = ("tp", "pp", "ep", "dp_attention")


def deployment(
    model: str,
    device: str,
    count: int = 1,
    *,
    parallel: str = "",
    weights: str = "bf16",
    kv: str = "bf16",
    engine: str = "",
) -> "tuple[Deployment, InputFile]":
    """The deployment that the flags describe, and the file of its model.

    ``tp`` is what ``pp`` and ``dp_attention`` leave of ``count``. Raises `InputError` for an unknown model or device,
    sizes that do not multiply to ``count``, or types that are not known.
    """
    from ridgeline.arithmetic.named import find_model
    from ridgeline.core.catalog import device as find_device
    from ridgeline.core.errors import InputError
    from ridgeline.serve.deployment import Deployment

    sizes = _sizes(parallel, count)
    if not model.strip():
        raise InputError.expected("a model", "none", where="MODEL", hint="a name such as llama-3-70b, or a config.json")
    spec, file = find_model(_file_of(model))
    made = Deployment(spec, find_device(device), **sizes, weights=weights, kv=kv, engine=engine)
    return made, file


def _file_of(model: str) -> str:
    """The model file of a project folder, which may hold a ``model.toml`` in place of a config.json."""
    folder = Path(model)
    own = folder / "model.toml"
    return str(own) if own.is_file() and not (folder / "config.json").is_file() else model


def _sizes(text: str, count: int) -> dict[str, int]:
    """``"tp=4,pp=2"`` of 8 chips as sizes. Raises `InputError` where they do not make up the replica."""
    from ridgeline.core.errors import InputError, did_you_mean

    if count < 1:
        raise InputError.expected("at least 1 chip", count, where="--count")
    sizes: dict[str, int] = {}
    for item in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = item.partition("=")
        name = name.strip().replace("-", "_")
        if name not in _SIZES:
            raise InputError.expected("one of " + ", ".join(_SIZES), name, where="--parallel",
                                      hint=did_you_mean(name, _SIZES, "such as tp=4,pp=2"))  # fmt: skip
        if not value.strip().isdecimal() or int(value) < 1:
            raise InputError.expected("a whole number of at least 1", value, where=f"--parallel, {name}")
        if name in sizes:
            raise InputError.expected(f"{name} once", text, where="--parallel")
        sizes[name] = int(value)
    others = sizes.get("pp", 1) * sizes.get("dp_attention", 1)
    left = sizes.get("tp", max(1, count // others))
    if left * others != count:
        text = f"sizes whose product tp*pp*dp_attention is the {count} chips of --count"
        hint = f"--count {left * others}, or leave tp out: it takes what is left"
        raise InputError.expected(text, f"{left}*{others}", where="--parallel", hint=hint)
    return sizes | {"tp": left}


def written(case: "Case", place: Path | None, name: str, *, as_json: bool) -> None:
    """Print the card, write the report (or the case alone, into a ``.json`` file), and exit 1 if a finding failed."""
    _report.written(case, place or REPORT, name, as_json=as_json)
