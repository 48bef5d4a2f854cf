"""``ridgeline trace``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _talk, _trace

REPORT = Path("trace-report")


def command(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Traces of one job: files, or the folder with one per rank.")
    ],
    run: Annotated[
        Path | None,
        typer.Option(
            "--run", metavar="FILE", help="The run.toml: model, machine, expectation; by default that of the folder."
        ),
    ] = None,
    window: _trace.Window = "all",
    output: _trace.Folder = None,
    bug: Annotated[
        str, typer.Option("--bug", metavar="CODE", help="Also pack what a compiler team needs for this finding.")
    ] = "",
    perfetto: Annotated[
        bool, typer.Option("--perfetto", help="Also write the annotated trace for the Perfetto UI.")
    ] = False,
    workers: _trace.Workers = None,
    ray: _trace.Ray = "",
    as_json: _talk.AsJson = False,
) -> None:
    """Where every second of a step goes, which causes stack up, and what each is worth.

    Beside the card a report (trace.html, trace.json) is written to trace-report, or to the folder that -o names.
    `ridgeline trace bridge` leads from the expected MFU to the observed one.
    """
    from ridgeline.core.config import load
    from ridgeline.trace.case import trace_case
    from ridgeline.trace.context import read_context

    run = run or _trace.run_file(paths)
    context = read_context(run) if run is not None else None
    facts = _trace.analysed(paths, context, window, workers, ray)
    words = [*map(str, paths), *(("--run", str(run)) if run else ()), *_trace.window_words(window)]
    case = trace_case(facts, command=_trace.command_line("trace", *words), config=load())
    folder = output or REPORT
    _trace.written(case, folder, "trace", as_json=as_json, inputs=paths)
    if perfetto:
        from ridgeline.trace.perfetto import write

        place = folder / "trace.perfetto.json"
        write(facts, case, place)
        _talk.say(f"wrote {place}: open it in the Perfetto UI")
    if bug:
        from ridgeline.trace.bugpack import bug_package

        _talk.say(f"wrote {bug_package(facts, case, bug, folder)}")
    _talk.fail_on(case)
