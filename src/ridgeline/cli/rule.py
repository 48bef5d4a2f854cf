"""``ridgeline rule``."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ridgeline.cli import _talk

if TYPE_CHECKING:
    from ridgeline.core.finding import Rule


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
    return "\n".join([*lines, "", item.page])
