"""``ridgeline rule``."""

import re
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ridgeline.cli import _talk

if TYPE_CHECKING:
    from ridgeline.core.finding import Rule

_WIDTH = 80
_OPENS = re.compile(r"#|(?:\d+\.|-) |threshold: ")  # a line that is not the rest of the one before


def command(
    code: Annotated[str, typer.Argument(metavar="CODE", help="A rule's code; without it, the list of rules.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """What a rule checks, why it matters, how to confirm it and what to do, cheapest first."""
    from ridgeline.core.plugins import find_rule, rules

    if as_json:
        _talk.emit_json(_entry(find_rule(code)) if code else [_entry(item) for item in rules().values()])
    elif code:
        _talk.emit(_page(find_rule(code)))
    else:
        _talk.emit("\n".join(f"{item.code}  {item.title}" for item in rules().values()))


def _entry(item: "Rule") -> dict[str, Any]:
    limit = item.threshold
    threshold = None if limit is None else {"value": limit.value, "unit": limit.unit, "why": limit.note}
    return {"code": item.code, "title": item.title, "threshold": threshold, "page": item.page}


def _page(item: "Rule") -> str:
    from ridgeline.core import format as formats

    lines = [f"{item.code}  {item.title}"]
    if item.threshold is not None:
        lines.append(f"threshold: {formats.show(item.threshold)} ({item.threshold.note}); ridgeline.toml changes it")
    return "\n".join([*_wrapped("\n".join(lines)), "", *_wrapped(item.page)])


def _wrapped(page: str) -> list[str]:
    """Markdown for a terminal: paragraphs and items refilled to its width, headings and blank lines as they are."""
    items: list[str] = []
    for line in page.splitlines():
        opens = not line.strip() or _OPENS.match(line) or not items or not items[-1] or items[-1].startswith("#")
        items = [*items, line] if opens else [*items[:-1], f"{items[-1]} {line.strip()}"]
    return [line for item in items for line in _filled(item)]


def _filled(item: str) -> list[str]:
    indent = _indent(item)
    return textwrap.wrap(item, _WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False) or [""]


def _indent(item: str) -> str:
    found = re.match(r"(?:\d+\.|-) ", item)
    return " " * len(found.group()) if found else ""
