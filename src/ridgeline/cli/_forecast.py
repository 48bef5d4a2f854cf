"""What the forecast commands share: reading a ladder, and the files of a report."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _talk

if TYPE_CHECKING:
    from ridgeline.core.case import Case
    from ridgeline.forecast.cases.settings import Settings
    from ridgeline.forecast.points import Points as Ladder

REPORT = Path("forecast-report")
_FLAGS = (  # the reader's keywords, and the flags that say the same
    (re.compile(r'where=\{"([^"]*)": "([^"]*)"\}'), r"--where '\1=\2'"),
    (re.compile(r'columns=\{"([^"]*)": "([^"]*)"\}'), r"--column '\1=\2'"),
    (re.compile(r'scale=\{"([^"]*)": ([^}]*)\}'), r"a --spec file with \1 = \2 under [scale]"),
    (re.compile(r"\bparams=([\w-]+)"), r"--params \1"),
)

Points = Annotated[Path, typer.Argument(metavar="POINTS", help="The runs: CSV, JSON or Parquet, one a row.")]
Target = Annotated[str, typer.Option("--target", metavar="FLOP", help="Compute of the run to forecast, such as 1e25.")]
Objective = Annotated[str, typer.Option("--objective", help="What the fit minimizes: huber, lad, ls, logls or mle.")]
Laws = Annotated[
    list[str] | None, typer.Option("--law", help="Law to fit; `ridgeline forecast laws` lists them. Repeatable.")
]
Params = Annotated[str, typer.Option("--params", help="Which parameters N counts: total, non-embedding or active.")]
Column = Annotated[
    list[str] | None, typer.Option("--column", metavar="NAME=HEADER", help="Header of N, D, C, loss. Repeatable.")
]
Where = Annotated[
    list[str] | None, typer.Option("--where", metavar="HEADER=VALUE", help="Keep these rows only. Repeatable.")
]
SpecFile = Annotated[
    Path | None, typer.Option("--spec", metavar="FILE", help="TOML with these options and the rarer ones.")
]
Folder = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="PATH", help="Folder for the report, or a .json file for the case alone."),
]


def flops(text: str, where: str) -> float:
    """A compute in FLOP. Raises `InputError` for anything else."""
    from ridgeline.core import parse

    return float(parse.count(text, where=where, what="a compute in FLOP"))


def settings(
    spec: Path | None, params: str, column: Sequence[str] | None, where: Sequence[str] | None, **others: object
) -> "Settings":
    """The settings of the flags that every command has, and of others by their key."""
    from ridgeline.forecast.cases.settings import pairs, settings_of

    columns, rows = pairs(column or (), where="--column"), pairs(where or (), where="--where")
    return settings_of(spec, params=params, columns=columns, where=rows, **others)


def read(path: Path, chosen: "Settings") -> "Ladder":
    """The ladder of a file. Raises `InputError` whose hint is written as flags."""
    from ridgeline.core.errors import InputError
    from ridgeline.forecast.reading.read_points import read_points

    try:
        return read_points(path, chosen.reading)
    except InputError as error:
        for pattern, flag in _FLAGS:
            error.hint = pattern.sub(flag, error.hint)
        raise


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


def written(case: "Case", place: Path | None, name: str, *, as_json: bool) -> None:
    """Print the card, write the report (or the case alone, into a ``.json`` file), and exit 1 if a finding failed."""
    keep_inputs(case, place, name)
    if place is not None and place.suffix == ".json":
        _talk.hand_over(case, _talk.plain_card, as_json=as_json, output=place)
        return
    _talk.report(case, place or REPORT, name, as_json=as_json)
    _talk.fail_on(case)


def keep_inputs(case: "Case", place: Path | None, name: str) -> None:
    """Raise `InputError` where a file that was read would be written over."""
    from ridgeline.core.errors import InputError

    folder = place or REPORT
    written = [folder] if folder.suffix == ".json" else [folder / f"{name}.html", folder / f"{name}.json"]
    for item in case.inputs:
        for path in written:
            if path.exists() and Path(item.path).exists() and path.samefile(item.path):
                raise InputError.expected("an output beside the inputs", "a file that was read", where=f"-o, {path}",
                                          hint="name another file or folder with -o")  # fmt: skip
