"""``ridgeline why``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ridgeline.cli import _talk


def command(
    case: Annotated[Path, typer.Argument(metavar="CASE", help="A case file, as `-o case.json` writes it.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="A quantity's name; without it, the list of names.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="The quantity and all it rests on as JSON.")] = False,
) -> None:
    """Where a number comes from: its formula, the numbers put in, and their sources."""
    from ridgeline.core.case import load
    from ridgeline.report import why

    document = load(case)
    text = why.tree(document, name)  # refuses an unknown name
    if as_json:
        _talk.emit_json(_under(document, name) if name else sorted(document["quantities"]))
    else:
        _talk.emit(text.rstrip())


def _under(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The quantity and everything it rests on, by name; a nested case's own names are looked up there."""
    from ridgeline.report.view import View

    known = next(view.document["quantities"] for view in View(document).walk() if name in view.numbers)
    return {item: known[item] for item in _rests_on(known, name)}


def _rests_on(quantities: dict[str, Any], name: str) -> Iterator[str]:
    """The quantity and everything under it, each once."""
    waiting, seen = [name], {name}
    while waiting:
        current = waiting.pop()
        yield current
        below = [item for item in quantities[current]["inputs"].values() if item in quantities and item not in seen]
        waiting += below
        seen.update(below)
