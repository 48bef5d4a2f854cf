"""``ridgeline gate ood``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _gate, _report, _talk


def command(
    offline: Annotated[
        str, typer.Option("--offline", metavar="PATH", help="Labelled decisions on the test set; PATH#SCORE>=0.8.")
    ],
    field: Annotated[
        str, typer.Option("--field", metavar="PATH", help="The same on a sample of the deployment; required to ship.")
    ] = "",
    slices: Annotated[str, typer.Option("--slices", help="Column that cuts the population into slices.")] = "",
    margin: Annotated[str, typer.Option("--margin", help="Rise of the false-positive rate tolerated, as 1%.")] = "",
    column: _gate.Columns = None,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="JSON lines of every look at the field; added to.")
    ] = None,
    date: Annotated[str, typer.Option("--date", help="Day of the field sample, as 2026-05-31; else its file's.")] = "",
    registration: _gate.PlanFile = None,
    junit: _gate.JUnit = None,
    github: _gate.GitHub = False,
    output: _gate.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """A field sample against the test set: ship, do not ship, or not enough evidence; without one never ship.

    Exit codes: 0 ship, 1 do not ship, 4 not enough evidence, 2 bad input.
    """
    from ridgeline.gate.detector.history import read_history
    from ridgeline.gate.detector.labelled import read_labelled
    from ridgeline.gate.gates.ood import Samples, decide

    grouped = "cluster" if any(item.startswith("cluster=") for item in column or ()) else ""
    chosen = _gate.plan("ood", registration, column, slices=slices, margin=margin, cluster=grouped)
    words = _report.words([
        ("--offline", offline), ("--field", field), ("--slices", slices), ("--margin", margin), ("--column", column),
        ("--log", log), ("--date", date), ("--registration", registration),
    ])  # fmt: skip
    history = read_history(log)
    sample = read_labelled(field, chosen) if field else None
    day = _day(date, field)
    found = Samples(read_labelled(offline, chosen), sample, day, history, log is not None)
    judged = decide(found, chosen)
    line = history.line(judged.look) if judged.look else ""
    if log is not None and line:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(line)
    ci = _gate.CI(junit, github, registration)
    _gate.decided(judged.decided, f"ridgeline gate ood {words}", output, as_json=as_json, ci=ci, chosen=chosen)


def _day(text: str, field: str) -> str:
    """The day that was given, or that of the field's file; empty without a field sample."""
    from datetime import UTC, datetime
    from datetime import date as day

    from ridgeline.core.errors import InputError

    if text:
        try:
            return day.fromisoformat(text).isoformat()
        except ValueError as error:
            raise InputError.expected("a day such as 2026-05-31", text, where="--date") from error
    if not field:
        return ""
    path = Path(field.rpartition("#")[0] if "#" in field else field)
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
