"""``ridgeline trace bridge``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _talk, _trace
from ridgeline.cli.trace import REPORT

if TYPE_CHECKING:
    from ridgeline.core.case import Case

_RUN = "A folder with a run.toml, or traces, of the run"
_BUILD = "A folder with a run.toml, or traces, or the HLO text, of the run"


def command(
    study: Annotated[
        Path | None,
        typer.Argument(metavar="STUDY", help="A folder with a run.toml, the file itself, or a folder of traces."),
    ] = None,
    before: Annotated[Path | None, typer.Option("--before", metavar="A", help=f"{_BUILD} before a fix.")] = None,
    after: Annotated[Path | None, typer.Option("--after", metavar="B", help=f"{_BUILD} after it.")] = None,
    small: Annotated[Path | None, typer.Option("--small", metavar="A", help=f"{_RUN} at a small scale.")] = None,
    large: Annotated[Path | None, typer.Option("--large", metavar="B", help=f"{_RUN} at a large scale.")] = None,
    window: _trace.Window = "all",
    output: _trace.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """From the expected MFU to the observed one: what was never possible, and one bar per cause.

    The causes come from the traces and the log that run.toml names, and from its own [[cause]] tables. With --before
    and --after instead of a STUDY: what a fix really bought. With --small and --large: what a larger scale costs, and
    which to test next. With --before and --after of HLO text alone: what the second compilation fuses, recomputes and
    communicates otherwise. The report (bridge.html, bridge.json) is written to trace-report, or to the folder that -o
    names.
    """
    from ridgeline.core.errors import InputError

    given = {"STUDY": (study,), "--before and --after": (before, after), "--small and --large": (small, large)}
    chosen = [name for name, paths in given.items() if any(path is not None for path in paths)]
    if len(chosen) != 1 or None in given[chosen[0]]:
        got = " and ".join(chosen) or "nothing"
        raise InputError.expected("a STUDY, or both runs of one pair", got, where="ridgeline trace bridge")
    paths = [path for path in given[chosen[0]] if path is not None]
    words = _trace.window_words(window)
    case = _bridge(paths[0], window, words) if len(paths) == 1 else _pair(chosen[0], paths, window, words)
    _trace.written(case, output or REPORT, "bridge", as_json=as_json, inputs=paths)
    _talk.fail_on(case)


def _bridge(study: Path, window: str, words: tuple[str, ...]) -> "Case":
    from ridgeline.core.config import load
    from ridgeline.trace.case import trace_case

    line = _trace.command_line("trace bridge", str(study), *words)
    return trace_case(_trace.facts_of(study, window), command=line, config=load(), lead="bridge")


def _pair(flags: str, paths: list[Path], window: str, words: tuple[str, ...]) -> "Case":
    from ridgeline.trace.bridge_case import compare_case, scale_case
    from ridgeline.trace.causes import buckets_of
    from ridgeline.trace.dump_case import hlo_case

    first, second = (str(path) for path in paths)
    one, _, two = flags.partition(" and ")
    line = _trace.command_line("trace bridge", one, first, two, second, *words)
    make = compare_case if one == "--before" else scale_case
    sides = [_trace.facts_of(path, window) for path in paths]
    texts = [side.dumps for side in sides if side.dumps is not None and side.dumps.hlo and not buckets_of(side)]
    if one == "--before" and len(texts) == 2:
        return hlo_case(texts[0], texts[1], (first, second), line)
    return make(sides[0], sides[1], (first, second), line)
