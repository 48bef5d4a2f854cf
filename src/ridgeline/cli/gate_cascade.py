"""``ridgeline gate cascade``."""

from typing import Annotated

import typer

from ridgeline.cli import _gate, _report, _talk

Weak = Annotated[
    str, typer.Option("--weak", metavar="PATH", help="Results of the weak model; PATH#COLUMN names one column.")
]
Strong = Annotated[str, typer.Option("--strong", metavar="PATH", help="Results of the strong model, in the same form.")]
Router = Annotated[str, typer.Option("--router", help="slice, confidence or difficulty (a column of that name).")]
Cost = Annotated[str, typer.Option("--cost", metavar="WEAK:STRONG", help="Cost an example: numbers or columns.")]


def command(
    weak: Weak,
    strong: Strong,
    router: Router = "",
    cost: Cost = "",
    slices: _gate.Slices = "",
    margin: _gate.Margin = "",
    column: _gate.Columns = None,
    registration: _gate.PlanFile = None,
    junit: _gate.JUnit = None,
    github: _gate.GitHub = False,
    output: _gate.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """A weak model that escalates to a strong one, against always-strong; the threshold is judged held out.

    Exit codes: 0 ship, 1 do not ship, 4 not enough evidence, 2 bad input.
    """
    from ridgeline.core.config import load
    from ridgeline.gate.gates.cascade import decide
    from ridgeline.gate.routing.evidence import routed

    said = [f"{name}={value}" for name, value in (("router", router), ("cost", cost)) if value]
    chosen = _gate.plan("cascade", registration, [*(column or []), *said], slices=slices, margin=margin)
    words = _report.words([
        ("--weak", weak), ("--strong", strong), ("--router", router), ("--cost", cost), ("--slices", slices),
        ("--margin", margin), ("--column", column), ("--registration", registration),
    ])  # fmt: skip
    found = decide(routed(weak, strong, chosen), chosen, load())
    ci = _gate.CI(junit, github, registration)
    _gate.decided(found, f"ridgeline gate cascade {words}", output, as_json=as_json, ci=ci, chosen=chosen)
