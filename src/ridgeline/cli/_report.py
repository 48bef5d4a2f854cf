"""What the commands with a report share: the words of their command line, and where the files go."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _talk

if TYPE_CHECKING:
    from ridgeline.core.case import Case

Folder = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="PATH", help="Folder for the report, or a .json file for the case alone."),
]


def words(options: Sequence[tuple[str, object]]) -> str:
    """Flags and values as typed; what was not given is left out, lists repeat their flag."""
    said: list[str] = []
    for flag, value in options:
        for item in value if isinstance(value, list | tuple) else (value,):
            if item is True:
                said.append(flag)
            elif item not in (None, "", False):
                said += [flag, str(item)] if flag else [str(item)]
    return shlex.join(said)


def written(case: "Case", place: Path, name: str, *, as_json: bool) -> None:
    """Print the card, write the report (or the case alone, into a ``.json`` file), and exit 1 if a finding failed."""
    keep_inputs(case, place, name)
    if place.suffix == ".json":
        _talk.hand_over(case, _talk.plain_card, as_json=as_json, output=place)
        return
    _talk.report(case, place, name, as_json=as_json)
    _talk.fail_on(case)


def keep_inputs(case: "Case", place: Path, name: str) -> None:
    """Raise `InputError` where a file that was read would be written over."""
    from ridgeline.core.errors import InputError

    written = [place] if place.suffix == ".json" else [place / f"{name}.html", place / f"{name}.json"]
    for item in case.inputs:
        for path in written:
            if path.exists() and Path(item.path).exists() and path.samefile(item.path):
                raise InputError.expected("an output beside the inputs", "a file that was read", where=f"-o, {path}",
                                          hint="name another file or folder with -o")  # fmt: skip
