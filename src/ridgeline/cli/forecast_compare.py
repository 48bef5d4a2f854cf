"""``ridgeline forecast compare``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _forecast, _report, _talk


def command(
    baseline: Annotated[Path, typer.Argument(metavar="BASELINE", help="The runs of the recipe in use.")],
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE", help="The runs of the recipe that may replace it.")],
    target: Annotated[str, typer.Option("--target", metavar="FLOP", help="Compute at which to choose, such as 1e25.")],
    objective: _forecast.Objective = "",
    law: Annotated[str, typer.Option("--law", help="Law fitted to both recipes.")] = "chinchilla",
    chip: Annotated[str, typer.Option("--chip", help="Device that prices serving, such as H100.")] = "",
    params: _forecast.Params = "",
    column: _forecast.Column = None,
    where: _forecast.Where = None,
    spec: _forecast.SpecFile = None,
    output: _report.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Two recipes at one target: the difference of loss with its interval, and the compute at which they cross.

    Both are fitted with one law and objective to the runs that they share, and one resample serves both. The report
    (compare.html, compare.json) is written to forecast-report, or to the folder that -o names.
    """
    from ridgeline.core.errors import InputError
    from ridgeline.forecast.cases.compare_case import compare_case
    from ridgeline.forecast.deciding.compare import How, compare
    from ridgeline.forecast.deciding.worth import machine
    from ridgeline.forecast.fitting.objective import objective as chosen_objective
    from ridgeline.forecast.forms import form

    chosen = _forecast.settings(spec, params, column, where, objective=objective)
    how = How(form(law), chosen_objective(chosen.objective), max(chosen.draws, 100), chosen.seed, chosen.level)
    ladders = [_forecast.read(path, chosen) for path in (baseline, candidate)]
    one, two = (ladder.source for ladder in ladders)
    if one and two and one.sha256 == two.sha256:
        raise InputError.expected("the runs of two recipes", f"the same runs as in {one.path}", where=two.path,
                                  hint="name the candidate's own file")  # fmt: skip
    found = compare(ladders[0], ladders[1], _forecast.flops(target, "--target"), how)
    line = _report.words(
        [("", ["ridgeline", "forecast", "compare", str(baseline), str(candidate)]), ("--target", target),
         ("--objective", objective), ("--law", "" if law == "chinchilla" else law),
         ("--chip", chip), ("--params", params), ("--column", column), ("--where", where), ("--spec", spec)]
    )  # fmt: skip
    names = (baseline.stem, candidate.stem) if baseline.stem != candidate.stem else ("the baseline", "the candidate")
    case = compare_case(found, names, on=machine(chip, serving=True) if chip else None, command=line)
    _report.written(case, output or _forecast.REPORT, "compare", as_json=as_json)
