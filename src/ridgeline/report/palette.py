"""The colours of every chart, once.

The five activities keep their colour everywhere. Their lightness differs by eight or more steps of L* from one
to the next, so they stay apart in grey print and for every kind of colour blindness. Each colour has a partner for
a dark page; the style sheet swaps them there, so a chart is never drawn twice.
"""

from typing import Any

INK, MUTED, GRID, PAPER = "#1c2127", "#59636e", "#d9dde2", "#ffffff"
ACTIVITIES = {
    "compute": "#1a4288",
    "communication": "#c4600f",
    "copies": "#3ca392",
    "host": "#8e3b78",
    "idle": "#c3c8ce",
}
CATEGORIES = ("#1a4288", "#c4600f", "#3ca392", "#8e3b78", "#7d6a14", "#6496dd", "#5b636c")
DARK = {
    "#1a4288": "#6b9cec",
    "#c4600f": "#f0a050",
    "#3ca392": "#86e0cf",
    "#8e3b78": "#b5619f",
    "#c3c8ce": "#565e68",
    "#7d6a14": "#cbab4f",
    "#6496dd": "#a9c8f5",
    "#5b636c": "#9aa4af",
    INK: "#e8eaed",
    MUTED: "#a3adb8",
    GRID: "#343b44",
    PAPER: "#14181d",
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def theme() -> dict[str, Any]:
    """The Vega-Lite configuration of every chart."""
    axis = {
        "labelColor": MUTED, "titleColor": MUTED, "gridColor": GRID, "domainColor": GRID, "tickColor": GRID,
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelOverlap": True,
        "titlePadding": 8, "labelPadding": 4,
    }  # fmt: skip
    return {
        "background": None,
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"grid": False},
        "axisY": {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "start", "titleX": 0, "titleY": -14,
                  "ticks": False, "domain": False},
        "legend": {"labelColor": INK, "titleColor": MUTED, "labelFontSize": 12, "titleFontSize": 12, "orient": "top",
                   "titleFontWeight": "normal", "symbolType": "square", "columnPadding": 16,
                   "columns": {"expr": "width < 300 ? 2 : width < 460 ? 3 : 6"}},
        "range": {"category": list(CATEGORIES)},
        "mark": {"color": CATEGORIES[0]},
        "text": {"color": INK, "fontSize": 12},
        "rule": {"color": MUTED},
        "line": {"strokeWidth": 2},
        "point": {"filled": True, "size": 60},
    }  # fmt: skip


def activity_range(domain: list[Any]) -> list[str] | None:
    """The colours of a scale whose domain is made of activities only; None for any other domain."""
    known = [ACTIVITIES.get(str(item)) for item in domain]
    return [color for color in known if color] if domain and all(known) else None


def dark_css() -> str:
    """Style rules that swap every chart colour for its partner on a dark page."""
    rules = [f'svg [{side}="{light}"]{{{side}:{dark}}}' for light, dark in DARK.items() for side in ("fill", "stroke")]
    return "\n".join(rules)
