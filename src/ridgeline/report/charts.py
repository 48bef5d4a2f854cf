"""Charts of a document made ready to draw: data put in from the table, theme and colours applied, SVG.

A spec has no data of its own: the chart's table is its data, under the column names. A spec that brings
values keeps them; one that would load from an address is drawn without it.
"""

import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ridgeline.core.cache import kept
from ridgeline.core.case import Json
from ridgeline.core.format import printable
from ridgeline.report import palette
from ridgeline.report.grid import plain_value
from ridgeline.report.view import View

STATIC_WIDTH = 600
HEIGHT = 300


@dataclass(frozen=True)
class Drawing:
    """A chart for a page: the spec for scripts, the SVG without; ``problem`` says why there is no SVG."""

    chart: Json
    spec: Json
    svg: str
    problem: str = ""


def values(view: View, table: Json) -> list[Json]:
    """A table's rows as data for a chart: column name -> value in the column's unit."""
    columns = table.get("columns") or []
    result = []
    for row in table.get("rows") or []:
        record: Json = {}
        for column, raw in zip(columns, row, strict=False):
            cell = view.cell(raw)
            figure = plain_value(cell, str(column.get("unit") or ""))
            record[column["name"]] = cell if figure is None and isinstance(cell, str | bool) else figure
        result.append(record)
    return result


def ready(view: View, chart: Json) -> Json:
    """The spec with its data, theme and colours, as wide as its container."""
    spec: Json = _colored(copy.deepcopy(chart["spec"]))
    table = view.table(str(chart["table"]))
    if not _has_values(spec.get("data")) and table is not None:
        spec["data"] = {"values": values(view, table)}
    spec.setdefault("$schema", "https://vega.github.io/schema/vega-lite/v6.json")
    spec.setdefault("height", HEIGHT)
    if not {"facet", "hconcat", "vconcat", "concat", "repeat"} & set(spec):
        spec["width"] = "container"
        if not isinstance(spec["height"], dict):  # a height by steps grows with its rows and fits nothing
            spec["autosize"] = {"type": "fit", "contains": "padding"}
    spec["config"] = {**palette.theme(), **(spec.get("config") or {})}
    return spec


def _has_values(data: Any) -> bool:
    return isinstance(data, dict) and "values" in data


def _colored(node: Any) -> Any:
    """Give every scale over activities their fixed colours."""
    if isinstance(node, list):
        return [_colored(item) for item in node]
    if not isinstance(node, dict):
        return node
    result = {key: _colored(item) for key, item in node.items() if key != "values" or not isinstance(item, list)}
    result |= {key: item for key, item in node.items() if key not in result}
    domain = node.get("domain")
    colors = palette.activity_range(domain) if isinstance(domain, list) else None
    return {**result, "range": colors} if colors else result


def draw(view: View, chart: Json) -> Drawing:
    """A chart with its static picture. A spec that does not draw leaves the reason instead of a picture."""
    spec = ready(view, chart)
    try:
        return Drawing(chart, spec, svg(spec))
    except ValueError as error:
        return Drawing(chart, spec, "", f"This chart could not be drawn: {' '.join(str(error).split())[:200]}")


def svg(spec: Json) -> str:
    """A spec as SVG, with nothing loaded from anywhere."""
    import vl_convert

    fixed = {**spec, "width": STATIC_WIDTH} if spec.get("width") == "container" else spec
    return printable(str(vl_convert.vegalite_to_svg(fixed, allowed_base_urls=[])))


@lru_cache(maxsize=1)
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which sets ``window.vegaEmbed``."""
    from importlib.metadata import version

    def make() -> str:
        import vl_convert

        return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))

    return kept(f"vega-{version('vl-convert-python')}.js", make)  # making it takes a second
