"""``ridgeline devices``."""

from typing import Annotated

import typer

from ridgeline.cli import _talk


def command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A device, its alias, or a TOML file; without it, the catalog.")
    ] = "",
    output: _talk.Output = None,
    as_json: _talk.AsJson = False,
) -> None:
    """The accelerators that are known, or one of them with the source of each figure."""
    from ridgeline.core.device_case import catalog_case, device_case

    case = device_case(name) if name else catalog_case()
    _talk.hand_over(case, _talk.sheet, as_json=as_json, output=output)
