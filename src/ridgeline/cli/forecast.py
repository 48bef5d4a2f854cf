"""``ridgeline forecast``."""

from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _forecast, _report, _talk

if TYPE_CHECKING:
    from ridgeline.forecast.cases.case import Target


def command(
    points: _forecast.Points,
    target: Annotated[
        str,
        typer.Option("--target", metavar="FLOP", help="The run to forecast: 1e25, or 70Bx1.4T (parameters x tokens)."),
    ],
    objective: _forecast.Objective = "",
    law: _forecast.Laws = None,
    interval: Annotated[
        str, typer.Option("--interval", help="calibrated (default), average, point, group, residual or profile.")
    ] = "",
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Hold out the upper decades of the ladder and print the coverage.")
    ] = False,
    params: _forecast.Params = "",
    column: _forecast.Column = None,
    where: _forecast.Where = None,
    spec: _forecast.SpecFile = None,
    output: _report.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """The loss of a run that is larger than any in the ladder, with an interval, or a refusal.

    Beside the card a report (forecast.html, forecast.json) is written to forecast-report, or to the folder that -o
    names. `ridgeline forecast next` names the run to buy, `forecast compare` sets two recipes side by side, `forecast
    ladder` designs a ladder.
    """
    from ridgeline.core.config import load
    from ridgeline.forecast.cases.case import Question, forecast_case

    chosen = _forecast.settings(
        spec, params, column, where, objective=objective, laws=tuple(law or ()), interval=interval
    )
    line = _report.words(
        [("", ["ridgeline", "forecast", str(points)]), ("--target", target), ("--objective", objective), ("--law", law),
         ("--interval", interval), ("--calibrate", calibrate), ("--params", params),
         ("--column", column), ("--where", where), ("--spec", spec)]
    )  # fmt: skip
    ladder = _forecast.read(points, chosen)
    case = forecast_case(Question(ladder, _target(target), chosen, calibrate), command=line, config=load())
    _report.written(case, output or _forecast.REPORT, "forecast", as_json=as_json)


def _target(text: str) -> "Target":
    """``1e25``, or ``70Bx1.4T``: parameters and tokens."""
    from ridgeline.core import parse
    from ridgeline.forecast.cases.case import Target

    n, sign, d = text.partition("x")
    if not sign:
        return Target(_forecast.flops(text, "--target"))
    sizes = (parse.count(item, where="--target", what=what) for item, what in ((n, "parameters"), (d, "tokens")))
    return Target(None, *map(float, sizes))
