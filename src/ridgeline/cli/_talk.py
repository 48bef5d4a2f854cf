"""What every command shares: data to stdout, talk to stderr, a document for programs, an exit code from a case."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ridgeline.core.case import Case

# Options that mean the same in every command.
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of the card.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Also write the case as JSON to this file.")]


@dataclass
class Settings:
    """The global flags of this process."""

    quiet: bool = False
    debug: bool = False


settings = Settings()


def emit(text: str) -> None:
    """Write data to stdout."""
    print(text)


def emit_card(text: str) -> None:
    """Write a card to stdout; on a terminal its verdicts are coloured, unless ``NO_COLOR`` is set."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        emit(text)
        return
    from rich.console import Console

    from ridgeline.report.terminal import paint

    Console(highlight=False, soft_wrap=True).print(paint(text))


def emit_json(document: Any) -> None:
    """Write one JSON document to stdout."""
    print(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """Write a remark to stderr, unless ``--quiet``."""
    if not settings.quiet:
        print(text, file=sys.stderr)


def warn(text: str) -> None:
    """Write an error to stderr, always; what it quotes from files moves no cursor."""
    from ridgeline.core.format import printable

    print(printable(text), file=sys.stderr)


def sheet(case: "Case", tables: Sequence[str] = ()) -> str:
    """A case without findings as text: title, decision, prose and tables (all, or the named ones)."""
    from ridgeline.report.sheet import render

    return render(case.to_json(), tables)


def report(case: "Case", folder: Path, name: str, *, as_json: bool, with_markdown: bool = False) -> None:
    """Print the card (or the document), and write the page and the document into the folder.

    The card comes first: drawing the page takes longer than most analyses.
    """
    from ridgeline.core.case import dumps
    from ridgeline.report import html, markdown, terminal

    document = case.to_json()
    text = dumps(document)
    folder.mkdir(parents=True, exist_ok=True)
    page, numbers = folder / f"{name}.html", folder / f"{name}.json"
    numbers.write_text(text, encoding="utf-8")
    if with_markdown:
        (folder / f"{name}.md").write_text(markdown.render(document), encoding="utf-8")
    try:
        if as_json:
            print(text, end="", flush=True)
        else:
            emit_card(terminal.card(document, report_path=str(page), case_path=str(numbers)))
            sys.stdout.flush()
    finally:  # a reader that went away loses the card, not the page
        page.write_text(html.render(document), encoding="utf-8")


def plain_card(case: "Case") -> str:
    """The card as text."""
    from ridgeline.report import terminal

    return terminal.card(case.to_json())


def hand_over(case: "Case", card: Callable[["Case"], str], *, as_json: bool, output: Path | None = None) -> None:
    """Print a case (as a card, or whole with ``--json``), write it where asked, and exit 1 if a finding failed."""
    document = case.dumps()
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(document, encoding="utf-8")
        say(f"wrote {output}; try: ridgeline why {output} NAME")
    if as_json:
        sys.stdout.write(document)
    else:
        emit_card(card(case))
    fail_on(case)


def fail_on(case: "Case") -> None:
    """Exit 1 if a finding failed."""
    if any(finding.verdict == "fail" for finding in case.findings):
        raise typer.Exit(1)
