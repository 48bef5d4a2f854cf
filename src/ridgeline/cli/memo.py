"""``ridgeline memo``."""

import sys
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
    from ridgeline.report import html, markdown, terminal

    case = memo_case(study)
    document = case.to_json()
    folder = out or (study if study.is_dir() else study.parent)
    folder.mkdir(parents=True, exist_ok=True)
    text = case.dumps()
    written = {"memo.json": text, "memo.md": markdown.render(document), "memo.html": html.render(document)}
    for name, content in written.items():
        (folder / name).write_text(content, encoding="utf-8")
    if as_json:
        sys.stdout.write(text)
    else:
        report, numbers = str(folder / "memo.html"), str(folder / "memo.json")
        _talk.emit_card(terminal.card(document, report_path=report, case_path=numbers))
    _talk.fail_on(case)
