"""``ridgeline forecast next``."""

from typing import Annotated

import typer

from ridgeline.cli import _forecast, _report, _talk


def command(
    points: _forecast.Points,
    target: _forecast.Target,
    budget: Annotated[str, typer.Option("--budget", metavar="FLOP", help="What the runs may cost, such as 3e22.")],
    chip: Annotated[str, typer.Option("--chip", help="Device that prices the runs, such as H100.")] = "",
    params: _forecast.Params = "",
    column: _forecast.Column = None,
    where: _forecast.Where = None,
    spec: _forecast.SpecFile = None,
    output: _report.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """The next run to buy: what narrows the forecast at the target most for its cost, or that nothing does.

    The report (next.html, next.json) is written to forecast-report, or to the folder that -o names.
    """
    from ridgeline.forecast.cases.next_case import next_case
    from ridgeline.forecast.deciding.worth import machine

    chosen = _forecast.settings(spec, params, column, where)
    line = _report.words(
        [("", ["ridgeline", "forecast", "next", str(points)]), ("--target", target), ("--budget", budget),
         ("--chip", chip), ("--params", params), ("--column", column), ("--where", where), ("--spec", spec)]
    )  # fmt: skip
    computes = _forecast.flops(target, "--target"), _forecast.flops(budget, "--budget")
    ladder = _forecast.read(points, chosen)
    case = next_case(ladder, *computes, on=machine(chip) if chip else None, command=line)
    _report.written(case, output or _forecast.REPORT, "next", as_json=as_json)
