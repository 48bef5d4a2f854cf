"""``ridgeline memo``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _talk


def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="A folder with a study.toml, or the file itself.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Write the memo here instead of into the study.")
    ] = None,
    as_json: _talk.AsJson = False,
) -> None:
    """A study as a decision memo: memo.html (one file, no network), memo.md and memo.json, and a summary here."""
    from ridgeline.plan.memo import memo_case

    case = memo_case(study)
    folder = out or (study if study.is_dir() else study.parent)
    _talk.report(case, folder, "memo", as_json=as_json, with_markdown=True)
    _talk.fail_on(case)
