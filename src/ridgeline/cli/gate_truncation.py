"""``ridgeline gate truncation``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _gate, _report, _talk

if TYPE_CHECKING:
    from ridgeline.gate.gates.truncation import Setting
    from ridgeline.gate.truncation.scores import Scores

File = Annotated[Path, typer.Argument(metavar="FILE", help="Scores by example and history length: long or wide table.")]
Metric = Annotated[str, typer.Option("--metric", help="auc or loss; by the columns if not given.")]
Length = Annotated[
    int | None, typer.Option("--length", metavar="EVENTS", help="History to decide on; else the shortest that holds.")
]
Model = Annotated[str, typer.Option("--model", help="Model by name or config.json: also the FLOPs by length.")]
Approximate = Annotated[
    Path | None, typer.Option("--approximate", metavar="FILE", help="Scores of O(L) attention over the whole history.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help="Column of id, user, label, length, score, loss, history or slice. Repeatable.",
    ),
]


def command(
    file: File,
    metric: Metric = "",
    length: Length = None,
    margin: _gate.Margin = "",
    column: Columns = None,
    model: Model = "",
    approximate: Approximate = None,
    registration: _gate.PlanFile = None,
    junit: _gate.JUnit = None,
    github: _gate.GitHub = False,
    output: _gate.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """How long a history must be: AUC or loss at each length against the longest, paired, by user.

    Exit codes: 0 ship, 1 do not ship, 4 not enough evidence, 2 bad input.
    """
    from ridgeline.gate.gates.truncation import decide

    chosen = _gate.plan("truncation", registration, column, margin=margin, metrics=(metric,) if metric else ())
    roles = {"slice": chosen.slices, "user": chosen.cluster}
    columns = {**{role: name for role, name in roles.items() if name}, **chosen.columns}
    scores = _scores(file, "".join(chosen.metrics[:1]), columns)
    other = None if approximate is None else _scores(approximate, scores.metric, columns)
    words = _report.words([
        ("", file), ("--metric", metric), ("--length", length), ("--margin", margin), ("--column", column),
        ("--model", model), ("--approximate", approximate), ("--registration", registration),
    ])  # fmt: skip
    result = decide(scores, _setting(length, model, other), chosen)
    ci = _gate.CI(junit, github, registration)
    _gate.decided(result, f"ridgeline gate truncation {words}", output, as_json=as_json, ci=ci, chosen=chosen)


def _scores(file: Path, metric: str, columns: dict[str, str]) -> "Scores":
    from ridgeline.gate.truncation.scores import read_scores

    return read_scores(file, metric, columns)


def _setting(length: int | None, model: str, approximate: "Scores | None") -> "Setting":
    from ridgeline.arithmetic.named import find_model
    from ridgeline.gate.gates.truncation import Setting

    if not model:
        return Setting(length, approximate=approximate)
    spec, file = find_model(model)
    return Setting(length, spec, approximate, (file,))
