"""Vega-Lite specs as plain dicts: a chart's data is its table, so a spec only names columns.

Colours, fonts and sizes are the renderer's. Axis titles come from the table's columns, a log axis is labelled
in decades, and series carry their names at their ends instead of in a legend.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgeline.core.case import Column, Table
from ridgeline.core.quantity import Quantity

Spec = dict[str, Any]
ACTIVITIES = ("compute", "communication", "copies", "host", "idle")
ROLES: dict[str, Spec] = {  # of a row of `curves`, in drawing order
    "fit": {},
    "run": {"filled": True, "size": 34, "opacity": 0.75},
    "held": {"filled": False, "size": 60, "strokeWidth": 1.5},
    "vertex": {"filled": True, "shape": "diamond", "size": 130},
    "forecast": {"filled": True, "shape": "square", "size": 110},
}
_COUNTED = ("tokens", "params", "chips", "requests", "$")
_PLAIN = {"": "", "1": "", "%": "%", "point": "points", "USD": "$", "s": "seconds", "day": "days", "h": "hours"}
_FLAT: Spec = {"labelLimit": 180, "domain": False, "ticks": False}
_LETTER = 6  # pixels, about, of a letter beside a mark
_NARROW: Spec = {**_FLAT, "labelLimit": 170}


@dataclass(frozen=True)
class Look:
    """How a chart is drawn beside its columns: log axes, and values to mark with a line and a word."""

    log_x: bool = False
    log_y: bool = False
    zero_y: bool = False
    mark_x: Sequence[tuple[float, str]] = ()
    mark_y: Sequence[tuple[float, str]] = ()
    height: int = 300


def line(table: Table, x: str, y: str, series: str = "", band: tuple[str, str] | None = None,
         look: Look | None = None) -> Spec:  # fmt: skip
    """Lines over a numeric column, one per value of ``series``; ``band`` names the columns of an interval."""
    look = look or Look()
    encoding = _axes(table, x, y, look)
    if series:
        encoding["color"] = _color(table, series)
    layers: list[Spec] = []
    if band:
        low, high = ({"field": _field(name), "type": "quantitative"} for name in band)
        ends = {"y": {**encoding["y"], **low}, "y2": {"field": high["field"]}}
        layers.append({"mark": {"type": "area", "opacity": 0.18}, "encoding": ends})
    few = len(table.rows) <= 60
    layers.append({"mark": {"type": "line", "point": {"size": 36, "filled": True} if few else False}})
    layers += _end_labels(table, x, y, series, look) if series else []
    return _layered(encoding, [*layers, *_marks(look)], table, look)


def points(table: Table, x: str, y: str, label: str = "", series: str = "", look: Look | None = None) -> Spec:
    """One dot per row, with its name beside it."""
    look = look or Look()
    encoding = _axes(table, x, y, look)
    if series:
        encoding["color"] = _color(table, series)
    layers: list[Spec] = [{"mark": {"type": "point", "filled": True, "size": 70}}]
    if label:
        text = {"text": {"field": _field(label)}}
        layers.append({"mark": {"type": "text", "align": "left", "dx": 8, "dy": -6}, "encoding": text})
    return _layered(encoding, [*layers, *_marks(look)], table, look)


def curves(table: Table, x: str, y: str, series: str, role: str, band: tuple[str, str] | None = None,
           look: Look | None = None) -> Spec:  # fmt: skip
    """Measured points and the lines fitted to them, one colour per ``series``, which is named at its line's end.

    The column ``role`` says what a row is: ``run`` (a dot), ``fit`` (on the line), ``vertex`` (a diamond), ``held``
    (measured and kept out of the fit: a ring) or ``forecast`` (a square). ``band`` names the columns of an interval
    around the line.
    """
    look = look or Look()
    encoding = _axes(table, x, y, look) | {"color": _color(table, series)}
    of = {name: {"transform": [{"filter": f"datum[{json.dumps(role)}] === {json.dumps(name)}"}]} for name in ROLES}
    layers: list[Spec] = []
    if band:
        low, high = ({"field": _field(name), "type": "quantitative"} for name in band)
        ends = {"y": {**encoding["y"], **low}, "y2": {"field": high["field"]}}
        layers.append({**of["fit"], "mark": {"type": "area", "opacity": 0.18}, "encoding": ends})
    layers.append({**of["fit"], "mark": {"type": "line"}})
    for name, mark in ROLES.items():
        if name != "fit":
            layers.append({**of[name], "mark": {"type": "point", **mark}})
    drawn = _index(table, role)
    lines = replace(table, rows=tuple(row for row in table.rows if row[drawn] == "fit"))
    layers += _end_labels(lines, x, y, series, look)
    return _layered(encoding, [*layers, *_marks(look)], table, look)


def strip(table: Table, group: str, value: str, mark: tuple[float, str] | None = None) -> Spec:
    """One dot per row along a horizontal axis, a lane for each value of ``group`` in the table's order."""
    lanes = list(dict.fromkeys(str(row[_index(table, group)]) for row in table.rows))
    encoding: Spec = {
        "y": {"field": _field(group), "type": "nominal", "sort": lanes, "title": None, "axis": _NARROW},
        "x": {**_axis(table, value, log=False), "scale": {"zero": False, "nice": True}},
    }
    look = Look(mark_x=(mark,) if mark else ())
    dots = [{"mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.6}}, *_marks(look)]
    return {
        **_layered(encoding, dots, table, look),
        "height": {"step": 24 if len(lanes) <= 20 else 14},
        "padding": _beside(lanes),
    }


def forest(table: Table, label: str, ends: tuple[str, str, str], series: str,
           mark: tuple[float, str] | None = None, most: int = 60, known: Sequence[str] = ()) -> Spec:  # fmt: skip
    """Intervals in lanes, in the table's order: ``ends`` name the columns of low, estimate and high.

    Rows without an interval are left out; ``mark`` is a value with its word; at most ``most`` rows are drawn. Of a
    series with ``known`` values each keeps its colour, whichever others there are.
    """
    low, middle, high = ends
    names = list(dict.fromkeys(str(row[_index(table, label)]) for row in table.rows))[:most]
    y = {"field": _field(label), "type": "nominal", "sort": names, "title": None, "axis": _NARROW}
    x = {**_axis(table, middle, log=False), "scale": {"zero": False, "nice": True}}
    color = {**_color(table, series), "legend": {"title": None}}
    if known:
        found = [name for name in known if name in color["scale"]["domain"]]
        color |= {"scale": {"domain": list(known)}, "legend": {"title": None, "values": found}}
    encoding: Spec = {"y": y, "x": x, "color": color}
    reach = {"x": {**x, "field": _field(low)}, "x2": {"field": _field(high)}}
    layers: list[Spec] = [
        {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": reach},
        {"mark": {"type": "point", "filled": True, "size": 50, "opacity": 1}},
        *_marks(Look(mark_x=(mark,) if mark else ())),
    ]
    whole = f"isValid(datum[{json.dumps(low)}]) && isValid(datum[{json.dumps(high)}])"
    return {
        **_layered(encoding, layers, table, Look()),
        "transform": [{"filter": f"{whole} && indexof({json.dumps(names)}, datum[{json.dumps(label)}]) >= 0"}],
        "height": {"step": 24 if len(names) <= 20 else 14},
        "padding": _beside(names),
    }


def bars(table: Table, label: str, value: str, series: str = "") -> Spec:
    """Horizontal bars in the table's order, the value written at the end; with ``series`` they are stacked."""
    names = list(dict.fromkeys(str(row[_index(table, label)]) for row in table.rows))
    x = {**_axis(table, value, log=False), "scale": {"zero": True, "nice": True}}
    y = {"field": _field(label), "type": "nominal", "sort": names, "title": None, "axis": _FLAT}
    encoding: Spec = {"x": x, "y": y, "tooltip": _tooltip(table)}
    bar: Spec = {"type": "bar", "height": {"band": 0.7}}
    if series:
        color = {**_color(table, series), "legend": {"title": None}}
        encoding |= {"color": color, "order": {"field": "part_order", "type": "quantitative"}}
        place = f"indexof({json.dumps(color['scale']['domain'])}, datum[{json.dumps(series)}])"
        transform = [{"calculate": place, "as": "part_order"}]
        layers: list[Spec] = [{"mark": {**bar, "stroke": "#ffffff", "strokeWidth": 0.5}}]
    else:
        short = _short(f"datum[{json.dumps(value)}]", table.columns[_index(table, value)])
        transform = [{"calculate": short, "as": "value_text"}]
        written = {"mark": {"type": "text", "align": "left", "dx": 5}, "encoding": {"text": {"field": "value_text"}}}
        layers = [{"mark": bar}, written]
    return {
        "transform": transform,
        "encoding": encoding,
        "layer": layers,
        "height": {"step": 30 if len(names) <= 15 else 18},
        "padding": _beside(names),
    }


def waterfall(table: Table, label: str, low: str, high: str, series: str, text: str) -> Spec:
    """Floating horizontal bars from ``low`` to ``high`` in the table's order, the words of ``text`` at their ends."""
    names = list(dict.fromkeys(str(row[_index(table, label)]) for row in table.rows))
    place = _index(table, text)
    first, second = (f"datum[{json.dumps(name)}]" for name in (low, high))
    encoding: Spec = {
        "y": {"field": _field(label), "type": "nominal", "sort": names, "title": None, "axis": _NARROW},
        "tooltip": _tooltip(table),
    }
    x = {**_axis(table, low, log=False), "scale": {"zero": True, "nice": True}}
    bar = {"x": x, "x2": {"field": _field(high)}, "color": _color(table, series)}
    end = {"x": {"field": "right_end", "type": "quantitative"}, "text": {"field": _field(text)}}
    return {
        "transform": [{"calculate": f"max({first}, {second})", "as": "right_end"}],
        "encoding": encoding,
        "layer": [
            {"mark": {"type": "bar", "height": {"band": 0.65}}, "encoding": bar},
            {"mark": {"type": "text", "align": "left", "dx": 5}, "encoding": end},
        ],
        "height": {"step": 30 if len(names) <= 15 else 18},
        "padding": _beside(names) | {"right": _LETTER * max((len(str(row[place])) for row in table.rows), default=0)},
    }


def _beside(labels: Sequence[str]) -> Spec:
    """Room at the left for long labels: a page's font may be wider than the one that measured them."""
    return {"left": 28 if max(map(len, labels), default=0) > 14 else 4, "right": 4, "top": 4, "bottom": 4}


def spans(table: Table, lane: str, start: str, end: str, series: str) -> Spec:
    """A timeline: bars from ``start`` to ``end`` in one lane for each value of ``lane``, coloured by ``series``."""
    lanes = list(dict.fromkeys(str(row[_index(table, lane)]) for row in table.rows))
    x = {**_axis(table, start, log=False), "scale": {"zero": False, "nice": False}}
    encoding = {
        "y": {"field": _field(lane), "type": "nominal", "sort": lanes, "title": None, "axis": _FLAT},
        "x": x,
        "x2": {"field": _field(end)},
        "color": {**_color(table, series), "legend": {"title": None}},
        "tooltip": _tooltip(table),
    }
    step = 26 if len(lanes) <= 16 else 14
    return {"mark": {"type": "bar", "height": {"band": 0.8}}, "encoding": encoding, "height": {"step": step}}


def cells(table: Table, row: str, column: str, value: str, *, around: bool = False) -> Spec:
    """A matrix of cells, deeper the larger ``value`` is; ``around`` colours values below and above zero apart.

    The figures stand in the cells where there are at most 160 of them.
    """
    rows, columns = (
        list(dict.fromkeys(str(item[_index(table, name)]) for item in table.rows)) for name in (row, column)
    )
    figures = _figures(table, value)
    most = max((abs(figure) for figure in figures), default=0.0) or 1.0
    field, here = _field(value), f"datum[{json.dumps(value)}]"
    encoding: Spec = {
        "y": {"field": _field(row), "type": "nominal", "sort": rows, "title": None, "axis": _NARROW},
        "x": {"field": _field(column), "type": "nominal", "sort": columns, "title": None,
              "axis": {**_FLAT, "orient": "top", "labelAngle": 0 if len(columns) <= 8 else -45}},
        "tooltip": _tooltip(table),
    }  # fmt: skip
    sides = ["more", "less"] if around else ["more"]
    scale = {"domain": ["less", "more"] if around else ["", "more"]}  # the palette's second colour is "more"
    legend = {"title": None, "values": sides} if around else None
    depth: Spec = {"field": "depth", "type": "quantitative", "scale": {"domain": [0, most], "range": [0.04, 0.55]},
                   "legend": None}  # fmt: skip
    color = {"field": "side", "type": "nominal", "scale": scale, "legend": legend}
    layers: list[Spec] = [{"mark": {"type": "rect"}, "encoding": {"color": color, "opacity": depth}}]
    if len(rows) * len(columns) <= 160:
        places = 0 if most >= 100 else 1 if most >= 10 else 2 if most >= 1 else 3
        words = {"field": field, "type": "quantitative", "format": f"{'+' if around else ''},.{places}f"}
        layers.append({"mark": {"type": "text", "fontSize": 11}, "encoding": {"text": words}})
    return {
        "transform": [
            {"calculate": f"{here} < 0 ? 'less' : 'more'", "as": "side"},
            {"calculate": f"abs({here})", "as": "depth"},
        ],
        "encoding": encoding,
        "layer": layers,
        "height": {"step": 26 if len(rows) <= 20 else 14},
        "padding": _beside(rows),
    }


def _short(value: str, column: Column) -> str:
    """An expression that writes a value with three digits: 1.8M for counts and money, plain otherwise."""
    if _unit(column) in _COUNTED:
        return f"replace(format({value}, '.3~s'), 'G', 'B')"
    return f"abs({value}) < 1e6 ? format({value}, ',.3~r') : format({value}, '.3~e')"


def _layered(encoding: Spec, layers: list[Spec], table: Table, look: Look) -> Spec:
    own = [layer for layer in layers if "data" not in layer]
    extra = [layer for layer in layers if "data" in layer]
    common = {**encoding, "tooltip": _tooltip(table)}
    shared = [{**layer, "encoding": {**common, **layer.get("encoding", {})}} for layer in own]
    return {"layer": [*extra, *shared], "height": look.height}


def _axes(table: Table, x: str, y: str, look: Look) -> Spec:
    horizontal, vertical = _axis(table, x, look.log_x), _axis(table, y, look.log_y)
    if not look.log_x:
        horizontal["scale"] = {"zero": False, "nice": True}
    if not look.log_y:
        vertical["scale"] = {"zero": look.zero_y, "nice": True}
    return {"x": horizontal, "y": vertical}


def _axis(table: Table, name: str, log: bool) -> Spec:
    column = table.columns[_index(table, name)]
    axis: Spec = {"tickCount": 6, "format": "~s" if _unit(column) in _COUNTED else ",~f"}
    result: Spec = {"field": _field(name), "type": "quantitative", "title": _title(column), "axis": axis}
    if log:
        positive = [figure for figure in _figures(table, name) if figure > 0] or [1.0]
        result["scale"] = {"type": "log", "nice": False}
        ticks = {"values": _decades(min(positive), max(positive)), "labelSeparation": 6}  # on a phone every second one
        result["axis"] = {**ticks, "labelExpr": _decade_labels(column.unit)}
    elif axis["format"] == "~s":
        axis["labelExpr"] = "replace(datum.label, 'G', 'B')"
    else:
        axis["labelExpr"] = "abs(datum.value) >= 1e6 ? format(datum.value, '.2~e') : datum.label"
    return result


def _decades(least: float, largest: float) -> list[float]:
    """Powers of ten between the values; with steps of 2 and 5 where that gives fewer than two."""
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(largest))
    step = 1 + (high - low) // 9
    tens = [10.0**power for power in range(low, high + 1, step) if least <= 1.001 * 10.0**power <= 1.002 * largest]
    if len(tens) >= 2:
        return tens
    steps = [factor * 10.0**power for power in range(low, high + 1) for factor in (1, 2, 5)]
    return [tick for tick in steps if 0.999 * least <= tick <= 1.001 * largest]


def _decade_labels(unit: str) -> str:
    if unit in ("param", "token", "chip", "request", "USD"):
        short = "replace(format(datum.value, '~s'), 'G', 'B')"
        sign = "'$' + " if unit == "USD" else ""
        return f"{sign}(datum.value >= 1e15 ? replace(format(datum.value, '~e'), '+', '') : {short})"
    plain = "datum.value >= 0.001 && datum.value < 100000"
    return f"{plain} ? format(datum.value, ',~g') : replace(format(datum.value, '~e'), '+', '')"


def _end_labels(table: Table, x: str, y: str, series: str, look: Look) -> list[Spec]:
    """The name of each series at its last point, moved apart where they would touch."""
    at = [_index(table, name) for name in (x, y, series)]
    last: dict[str, tuple[float, float]] = {}
    for row in table.rows:
        across, up = (_plain(row[index], table.columns[index].unit) for index in at[:2])
        name = str(row[at[2]])
        if across is not None and up is not None and across >= last.get(name, (-math.inf, 0.0))[0]:
            last[name] = (across, up)
    figures = _figures(table, y)
    heights = {name: _height(point[1], figures, look) for name, point in last.items()}
    layers = []
    for name, shift in _apart(heights).items():
        across, up = last[name]
        mark = {"type": "text", "align": "left", "dx": 8, "dy": -shift, "text": name, "clip": False}
        place = {"x": {"datum": across, "type": "quantitative"}, "y": {"datum": up, "type": "quantitative"}}
        color = {"datum": name, **{key: part for key, part in _color(table, series).items() if key != "field"}}
        layers.append({"data": {"values": [{}]}, "mark": mark, "encoding": {**place, "color": color}})
    return layers


def _height(value: float, figures: list[float], look: Look) -> float:
    """Where a value stands on the axis, in pixels from the bottom."""
    scale = math.log10 if look.log_y else float
    usable = [scale(figure) for figure in figures if figure > 0 or not look.log_y]
    low, high = min(usable), max(usable)
    return (scale(value) - low) / (high - low or 1) * look.height


def _apart(heights: dict[str, float], gap: float = 15) -> dict[str, float]:
    """How far to move each label up so that none is nearer than ``gap`` pixels to the one below."""
    moved: dict[str, float] = {}
    floor = -math.inf
    for name, height in sorted(heights.items(), key=lambda item: item[1]):
        place = max(height, floor)
        moved[name] = round(place - height, 1)
        floor = place + gap
    return moved


def _marks(look: Look) -> list[Spec]:
    """Dashed lines with a word each; words of neighbouring lines stand on two levels."""
    layers: list[Spec] = []
    for index, (value, word) in enumerate(sorted(look.mark_x)):
        side = {"align": "left", "dx": 4, "baseline": "top", "y": 14 * (index % 2)}
        layers += _mark({"x": {"datum": value, "type": "quantitative"}}, {"text": word, **side})
    for value, word in look.mark_y:
        side = {"align": "right", "dy": -6, "x": "width"}
        layers += _mark({"y": {"datum": value, "type": "quantitative"}}, {"text": word, **side})
    return layers


def _mark(place: Spec, text: Spec) -> list[Spec]:
    one = {"data": {"values": [{}]}, "encoding": place}
    return [{**one, "mark": {"type": "rule", "strokeDash": [4, 3]}}, {**one, "mark": {"type": "text", **text}}]


def _color(table: Table, series: str) -> Spec:
    """A colour by series, without a legend: the lines carry their names. Activities keep their fixed order."""
    found = list(dict.fromkeys(str(row[_index(table, series)]) for row in table.rows))
    if set(found) <= set(ACTIVITIES):
        found = [name for name in ACTIVITIES if name in found]
    return {"field": _field(series), "type": "nominal", "legend": None, "scale": {"domain": found}}


def _tooltip(table: Table) -> list[Spec]:
    result = []
    for column in table.columns:
        numeric = any(_plain(row[_index(table, column.name)]) is not None for row in table.rows)
        kind = {"type": "quantitative", "format": ",.4~g"} if numeric else {"type": "nominal"}
        result.append({"field": _field(column.name), "title": _title(column), **kind})
    return result


def _title(column: Column) -> str:
    unit = _unit(column)
    said = unit in column.title.lower().split()
    return f"{column.title} ({unit})" if unit and not said else column.title


def _unit(column: Column) -> str:
    if column.unit in ("param", "token", "chip", "request"):
        return f"{column.unit}s"
    return _PLAIN.get(column.unit, column.unit.replace("USD/", "$/"))


def _index(table: Table, name: str) -> int:
    return [column.name for column in table.columns].index(name)


def _figures(table: Table, name: str) -> list[float]:
    index = _index(table, name)
    unit = table.columns[index].unit
    return [figure for row in table.rows if (figure := _plain(row[index], unit)) is not None]


def _plain(cell: Any, unit: str = "") -> float | None:
    """A cell as a number in its column's unit (draws: their median); None for text and gaps."""
    if isinstance(cell, Quantity):
        return float(np.median(cell.to(unit) if unit else cell.value))
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else None


def _field(name: str) -> str:
    return name.replace(".", "\\.").replace("[", "\\[").replace("]", "\\]")
