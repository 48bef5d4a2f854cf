"""``ridgeline forecast laws``."""

from typing import Annotated

import typer

from ridgeline.cli import _report, _talk


def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A law; without it, the list.")] = "",
    as_json: _talk.AsJson = False,
) -> None:
    """The laws that can be fitted: what each predicts, where it stops being valid, what its source leaves open."""
    from ridgeline.forecast.forms import laws_case

    line = _report.words([("", ["ridgeline", "forecast", "laws"]), ("", name)])
    shown = () if name else ("laws",)
    _talk.hand_over(laws_case(name, command=line), lambda case: _talk.sheet(case, shown), as_json=as_json)
