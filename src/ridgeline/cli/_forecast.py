"""What the forecast commands share: the options of a fit, and reading a ladder."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
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
