"""``ridgeline gate multihop``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _gate, _report, _talk


def command(
    gold: Annotated[
        Path, typer.Option("--gold", metavar="FILE", help="JSON lines of questions with all evidence and the answer.")
    ],
    candidate: Annotated[
        Path, typer.Option("--candidate", metavar="FILE", help="JSON lines: id, retrieved items best first, answer.")
    ],
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="The same of the retriever that is trusted.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Retrieved items that count.")] = 5,
    slices: Annotated[str, typer.Option("--slices", help="hops: also require every number of hops.")] = "",
    metric: _gate.Metric = None,
    margin: _gate.Margin = "",
    registration: _gate.PlanFile = None,
    junit: _gate.JUnit = None,
    github: _gate.GitHub = False,
    output: _gate.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Retrieval of every hop, against a baseline: ship, do not ship, or not enough evidence.

    Exit codes: 0 ship, 1 do not ship, 4 not enough evidence, 2 bad input.
    """
    from ridgeline.gate.evidence.retrieval import read_gold, read_run
    from ridgeline.gate.gates.multihop import decide

    chosen = _gate.plan("multihop", registration, None, slices=slices, metrics=tuple(metric or ()), margin=margin)
    words = _report.words([
        ("--gold", gold), ("--candidate", candidate), ("--baseline", baseline), ("-k", k), ("--slices", slices),
        ("--metric", metric), ("--margin", margin), ("--registration", registration),
    ])  # fmt: skip
    trusted = None if baseline is None else read_run(baseline)
    found = decide(read_gold(gold), trusted, read_run(candidate), chosen, k)
    ci = _gate.CI(junit, github, registration)
    _gate.decided(found, f"ridgeline gate multihop {words}", output, as_json=as_json, ci=ci, chosen=chosen)
