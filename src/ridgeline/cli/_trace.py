"""What the commands on traces share: reading with progress, and the files of a report."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _talk

if TYPE_CHECKING:
    from ridgeline.core.case import Case
    from ridgeline.trace.context import RunContext
    from ridgeline.trace.facts import TraceFacts

SLOW_S = 1.0  # a stage that takes longer is worth a line
Window = Annotated[str, typer.Option("--window", help="Device events to count: all, linked or before_last_step.")]
Folder = Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="Folder for the report.")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Processes that read; by default by size.")]
Ray = Annotated[
    str, typer.Option("--ray", metavar="ADDRESS", help="Read on this Ray cluster: auto or ray://host:port.")
]


def analysed(
    paths: Sequence[Path],
    context: "RunContext | None" = None,
    window: str = "all",
    workers: int | None = None,
    address: str = "",
) -> "TraceFacts":
    """The facts of files or folders; stages that take long are told on stderr."""
    from ridgeline.core.config import kernels
    from ridgeline.core.errors import InputError
    from ridgeline.trace.analyse import How, analyse
    from ridgeline.trace.kinds import user_rules
    from ridgeline.trace.levels.l0 import WINDOWS

    if window not in WINDOWS:
        raise InputError.expected(f"one of {', '.join(WINDOWS)}", window, where="--window")
    for path in paths:
        if not path.exists():
            raise InputError.expected("a trace file or a folder of them", str(path), where="PATH")
    how = How(window=window, rules=user_rules(kernels()), workers=workers, address=address)
    return analyse(paths, context, how, _tell)


def run_file(paths: Sequence[Path]) -> Path | None:
    """The ``run.toml`` that lies in a folder of traces, so that it need not be named."""
    from ridgeline.trace.context import FILE

    return next((path / FILE for path in paths if (path / FILE).is_file()), None)


def facts_of(study: Path, window: str = "all") -> "TraceFacts":
    """A study with a ``run.toml`` (its traces and log, if it names any), or a folder or file of traces alone."""
    from ridgeline.trace.audit import audit
    from ridgeline.trace.context import FILE, read_context
    from ridgeline.trace.facts import TraceFacts

    if study.suffix != ".toml" and not (study / FILE).is_file():
        return analysed([study], None, window)
    context = read_context(study)
    paths = [context.resolve(name) for name in context.file.traces]
    if not paths and (log := context.log) is not None:
        paths = [log]
    return analysed(paths, context, window) if paths else TraceFacts(context=context, audit=audit(context))


def _tell(what: str, seconds: float) -> None:
    if seconds >= SLOW_S:
        _talk.say(f"{what}: {seconds:.1f} s")


def window_words(window: str) -> tuple[str, ...]:
    """The window as words of a command line; none for the default."""
    return () if window == "all" else ("--window", window)


def command_line(name: str, *words: str) -> str:
    """The command that makes this case, without what only says where it goes."""
    return shlex.join(["ridgeline", *name.split(), *words])


def written(case: "Case", folder: Path, name: str, *, as_json: bool, inputs: Sequence[Path] = ()) -> None:
    """Print and write a report, which must not join the files it is about.

    Raises `InputError` where the folder is one of the inputs.
    """
    from ridgeline.core.errors import InputError

    for path in inputs:
        if path.is_dir() and folder.resolve() == path.resolve():
            raise InputError.expected("a folder of its own for the report", str(folder), where="-o")
    _talk.report(case, folder, name, as_json=as_json)
