"""The report: a Case document as one self-contained page that loads nothing.

Every number is a link to its entry in *All numbers*; with scripts on the entry opens in a dialog instead, so
a derivation is in the page once however often its number is cited. Charts are SVG, replaced by interactive
Vega where scripts run.
"""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.core.case import Json
from ridgeline.core.format import printable
from ridgeline.report import charts, derivation, palette, view
from ridgeline.report.grid import FIRST_ROWS, grid
from ridgeline.report.view import Number, View

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATES = Path(__file__).parent / "templates"
PRINTED_NUMBERS = 150  # a longer list of derivations stays off paper


def render(document: Json) -> str:
    """The page of a Case document, as text. No network, no external file."""
    root = View(document)
    drawings = {
        (part.path, name): charts.draw(part, chart)
        for part in root.walk()
        for name in part.document.get("charts") or {}
        if (chart := part.chart(name)) is not None
    }
    interactive = any(drawing.svg for drawing in drawings.values())
    return _template().render(
        root=root,
        views=list(root.walk()),
        drawing=lambda part, name: drawings.get((part.path, name)),
        first_rows=FIRST_ROWS,
        printed_numbers=PRINTED_NUMBERS,
        css=_file("report.css").replace("/* chart colours on a dark page */", palette.dark_css()),
        script=_file("report.js"),
        vega=charts.bundle() if interactive else "",
    )


@lru_cache(maxsize=1)
def _template() -> "Template":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=StrictUndefined, finalize=_seen,
    )  # fmt: skip
    environment.globals.update(
        grid=grid, inputs=derivation.inputs, symbolic=derivation.symbolic, put_in=derivation.put_in,
        rests_on=_rests_on, anchor=view.anchor, coded=view.coded,
    )  # fmt: skip
    environment.tests["number"] = lambda value: isinstance(value, Number)
    return environment.get_template("report.html.j2")


def _seen(value: Any) -> Any:
    """Text without control and bidirectional marks, which turn what stands around them; markup stays."""
    return printable(value) if type(value) is str else value


def _file(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _rests_on(part: View) -> dict[str, list[Number]]:
    """For each derived quantity, the assumed leaves below it."""
    done: dict[str, frozenset[str]] = {}

    def visit(name: str, above: tuple[str, ...]) -> frozenset[str]:
        if name not in done:
            number = part.numbers.get(name)
            if number is None or name in above:
                return frozenset()
            below: Any = (visit(item, (*above, name)) for item in (number.entry.get("inputs") or {}).values())
            done[name] = frozenset({name} if number.assumed else ()).union(*below)
        return done[name]

    found = {name: visit(name, ()) for name in part.numbers}
    return {name: [part.numbers[item] for item in sorted(items - {name})] for name, items in found.items()}
