"""``ridgeline drill new``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _talk


def command(
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same drill.", min=0, max=2**32)] = 1,
    incident: Annotated[bool, typer.Option("--incident", help="The named incident instead of a seed's drill.")] = False,
    cause: Annotated[
        list[str] | None, typer.Option("--cause", help="Plant this cause instead of drawn ones. Repeatable.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Where to; drill-SEED if not given.")
    ] = None,
    as_json: _talk.AsJson = False,
) -> None:
    """A training run to practise on: traces of all ranks, a step log and the run file, with one to four planted causes.

    Find the causes with `ridgeline trace DIR --run DIR` or by hand, write them into answers.toml, and grade it. The
    solution lies packed in its own folder.
    """
    from ridgeline.core.errors import InputError
    from ridgeline.trace.drills.generate import drill
    from ridgeline.trace.drills.incident import write_incident
    from ridgeline.trace.drills.render import write

    if incident and cause:
        raise InputError.expected("either --incident or --cause", "both", where="ridgeline drill new")
    if incident:
        path = write_incident(output or Path("drill-incident"))
    else:
        path = write(drill(seed, cause), output or Path(f"drill-{seed}"))
    if as_json:
        _talk.emit_json({"folder": str(path), "answers": str(path / "answers.toml")})
        return
    _talk.emit(f"wrote {path}: fill in {path / 'answers.toml'}, then: ridgeline drill grade {path / 'answers.toml'}")
