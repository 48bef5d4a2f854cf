"""``ridgeline gate canary``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _gate, _report, _talk

Baseline = Annotated[
    str, typer.Option("--baseline", metavar="FILE", help="Results in 16 bit: of `gate probe`, of RULER, or a table.")
]
Candidate = Annotated[str, typer.Option("--candidate", metavar="FILE", help="Results in 8 bit, in the same form.")]
Set = Annotated[
    Path | None, typer.Option("--set", metavar="FILE", help="The canary set, or RULER's data, that was asked.")
]
Serving = Annotated[
    list[Path] | None,
    typer.Option("--serving", metavar="FILE", help="Server's arguments or a model's config.json. Repeatable."),
]
SliceMargin = Annotated[str, typer.Option("--slice-margin", help="Loss tolerated at one depth of one length.")]


def command(
    baseline: Baseline = "",
    candidate: Candidate = "",
    canary: Set = None,
    serving: Serving = None,
    margin: _gate.Margin = "",
    slice_margin: SliceMargin = "",
    column: _gate.Columns = None,
    registration: _gate.PlanFile = None,
    junit: _gate.JUnit = None,
    github: _gate.GitHub = False,
    output: _gate.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Facts hidden at every depth of a long context: ship 8 bit only where none of the depths loses them.

    `ridgeline gate haystack` makes the set and `ridgeline gate probe` asks it. With --serving alone only the
    configuration is read. Exit codes: 0 ship, 1 do not ship, 4 not enough evidence, 2 bad input.
    """
    from ridgeline.core.config import load
    from ridgeline.gate.canary.configs import read_serving
    from ridgeline.gate.canary.results import read_run
    from ridgeline.gate.canary.sets import read_set
    from ridgeline.gate.evidence.reader import Wanted
    from ridgeline.gate.gates.canary import Evidence, decide

    chosen = _gate.plan("canary", registration, column, margin=margin, slice_margin=slice_margin)
    words = _report.words([
        ("--baseline", baseline), ("--candidate", candidate), ("--set", canary), ("--serving", serving),
        ("--margin", margin), ("--slice-margin", slice_margin), ("--column", column), ("--registration", registration),
    ])  # fmt: skip
    asked = read_set(canary) if canary else None
    wanted = Wanted(chosen.columns)
    runs = [read_run(Path(name), asked, wanted) if name else None for name in (baseline, candidate)]
    evidence = Evidence(runs[0], runs[1], asked, tuple(read_serving(path) for path in serving or ()))
    found = decide(evidence, chosen, load())
    ci = _gate.CI(junit, github, registration)
    _gate.decided(found, f"ridgeline gate canary {words}", output, as_json=as_json, ci=ci, chosen=chosen)
