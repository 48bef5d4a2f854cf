"""``ridgeline plan populations``."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _talk


def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="A study.toml with tables and a trunk, or its folder")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder of the report.")] = Path(
        "plan-report"
    ),
    as_json: _talk.AsJson = False,
) -> None:
    """A recommender as two populations on one fabric: sharded tables beside a dense trunk, against one strategy.

    Beside the card a report (populations.html, populations.json) is written to plan-report, or to the folder of -o.
    """
    from ridgeline.core.errors import located
    from ridgeline.plan.layouts.populations import populations
    from ridgeline.plan.layouts.populations_case import populations_case
    from ridgeline.plan.layouts.sparse import read_study

    found, file = read_study(study)
    line = shlex.join(["ridgeline", "plan", "populations", str(study)])
    with located(file.path):
        case = populations_case(populations(found), command=line, inputs=[file])
    _talk.report(case, output, "populations", as_json=as_json)
