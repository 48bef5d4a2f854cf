"""The card: a Case document on one screen of 80 columns, in the order of the report. No colour is needed."""

import textwrap
from typing import TYPE_CHECKING

from ridgeline.core.case import Json
from ridgeline.core.format import printable
from ridgeline.report.grid import Cell, Grid, grid
from ridgeline.report.view import FindingView, Number, Piece, View, tally

if TYPE_CHECKING:
    from rich.text import Text

TABLES = 3
ROWS = 8
_INDENT = " " * 8
_BLOCKS = " ▏▎▍▌▋▊▉█"
_BAR = 24
_STYLES = {"FAIL": "bold red", "WARN": "bold yellow", "UNKNOWN": "bold magenta", "PASS": "green"}


def card(document: Json, width: int = 80, report_path: str = "", case_path: str = "") -> str:
    """The card as plain text, no line wider than ``width`` (a longer path stays whole, so it can be copied)."""
    view = View(document)
    lines = [f"{view.facts['tool']}: {view.title}".strip(": ")]
    lines = _wrap(lines[0], width)
    lines += ["", *_wrap(_write(view.decision), width)]
    lines += ["", *_wrap(_write(view.because), width)] if view.because else []
    if view.tally:
        lines += ["", f"checks: {_counts(view.tally)}"]
    lines += _findings(view, width)
    for part in _tables(view, width):
        lines += ["", *part]
    if view.evidence:
        lines += ["", *(line for part in view.evidence for line in _evidence(part, width))]
    if view.assumptions:
        lines += ["", f"* marks an assumed number; the report lists all {len(view.assumptions)}"]
    lines += ["", *_pointers(view, report_path, case_path)]
    return printable("\n".join(line.rstrip() for line in lines).rstrip()) + "\n"


def paint(text: str) -> "Text":
    """A card with its verdict words coloured, for a terminal. The words stay: colour carries nothing alone."""
    from rich.text import Text

    painted = Text(text, no_wrap=True, overflow="ignore")
    for word, style in _STYLES.items():
        painted.highlight_regex(rf"(?m)^{word}\b", style)
    painted.highlight_regex(r"(?m)^(report|why) ", "bold")
    painted.highlight_regex(r"\A.*", "bold")
    return painted


def _write(pieces: list[Piece]) -> str:
    return "".join(piece if isinstance(piece, str) else _mark(piece) for piece in pieces)


def _mark(number: Number) -> str:
    return f"{number.text}*" if number.assumed else number.text


def _counts(counted: list[tuple[str, int]]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in counted)


def _wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _findings(view: View, width: int) -> list[str]:
    lines: list[str] = []
    for finding in view.top:
        lines += ["", *_finding(finding, width)]
    if view.rest:
        lines += ["", f"{_INDENT}in the report: {_counts(tally([finding.verdict for finding in view.rest]))}"]
    return lines


def _finding(finding: FindingView, width: int) -> list[str]:
    cost = ", ".join(map(_mark, finding.cost))
    head = f"{finding.verdict.upper():<7} {finding.raw['code']}  {finding.raw['title']}"
    right = f"costs {cost}" if cost else ""
    if len(head) + len(right) + 2 <= width:
        lines = [head + right.rjust(width - len(head)) if right else head]
    else:
        lines = _wrap(head, width, rest=_INDENT) + _wrap(right, width, _INDENT, _INDENT)
    lines += _wrap(_write(finding.sentence), width, _INDENT, _INDENT)
    lines += _wrap(_write(finding.fix), width, f"{_INDENT}do: ", f"{_INDENT}    ")
    return lines


def _tables(view: View, width: int) -> list[list[str]]:
    """The first small tables in the order of the report, and the data of charts where that is small."""
    laid: list[Grid] = []
    shown = list(dict.fromkeys(name for section in view.sections for name in section["show"]))
    for name in shown:
        chart = view.chart(name)
        if chart and chart["table"] != name and chart["table"] in shown:  # the table itself comes, with its rows cut
            continue
        table = view.table(str(chart["table"]) if chart else name)
        item = grid(view, table) if table else None
        if item and len(item.heads) > 1 and len(item.rows) > 0 and not (chart and len(item.rows) > ROWS):
            laid.append(item)
    return [_table(item, width) for item in laid[:TABLES]]


def _table(item: Grid, width: int) -> list[str]:
    kept = [index for index in range(len(item.rows)) if index < ROWS or index == item.highlight]
    rows = [[_cell(cell) for cell in item.rows[index]] for index in kept]
    marks = [f"< {item.mark}" if item.mark and index == item.highlight else "" for index in kept]
    heads = [[head.title for head in item.heads], [head.unit for head in item.heads]]
    columns = _fitting([*heads, *rows], width - max(map(len, marks)) - 2)
    bars = _bars(item, kept, width - sum(columns) - 2 * len(columns) - max(map(len, marks)) - 2)
    lines = _wrap(item.title, width)
    tails = [[bar, mark] for bar, mark in zip(bars, marks, strict=True)]
    for cells, tail in zip([*heads, *rows], [[], [], *tails], strict=True):
        pairs = zip(cells, columns, item.heads, strict=False)
        shown = [_fit(cell, size, right=head.numeric) for cell, size, head in pairs]
        lines.append("  ".join([*shown, *filter(None, tail)]).rstrip())
    missing = _missing(len(item.rows) - len(kept), len(item.heads) - len(columns))
    return [line for line in lines if line] + ([f"... {missing} in the report"] if missing else [])


def _missing(rows: int, columns: int) -> str:
    counted = ((rows, "row"), (columns, "column"))
    return " and ".join(f"{count} more {noun}{'s' * (count > 1)}" for count, noun in counted if count)


def _cell(cell: Cell) -> str:
    text = " ".join(cell.text.split())
    return f"{text}*" if cell.assumed else text


def _fitting(rows: list[list[str]], room: int) -> list[int]:
    """The widths of the columns that fit: a long text is cut, then columns fall off on the right."""
    sizes = [min(max(map(len, column)), room // 2) for column in zip(*rows, strict=True)]
    while len(sizes) > 1 and sum(sizes) + 2 * (len(sizes) - 1) > room:
        sizes.pop()
    return sizes


def _fit(text: str, size: int, right: bool) -> str:
    cut = text if len(text) <= size else text[: size - 1] + "…"
    return cut.rjust(size) if right else cut.ljust(size)


def _bars(item: Grid, kept: list[int], room: int) -> list[str]:
    """Bars in block characters for a table of names and one number; empty for any other."""
    plain = [""] * len(kept)
    size = min(_BAR, room)
    if [head.numeric for head in item.heads] != [False, True] or size < 8:
        return plain
    values = [item.rows[index][1].sort for index in kept]
    figures = [value for value in values if isinstance(value, float | int)]
    if len(figures) < 2 or min(figures) < 0 or max(figures) == 0:
        return plain
    return [_bar(value / max(figures), size) if isinstance(value, float | int) else " " * size for value in values]


def _bar(share: float, size: int) -> str:
    eighths = round(share * size * 8)
    return ("█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()).ljust(size)


def _evidence(part: View, width: int) -> list[str]:
    text = _write(part.decision) or part.title
    checks = f" ({_counts(part.tally)})" if part.tally else ""
    return _wrap(f"evidence, {part.facts['tool']}: {text}{checks}", width, rest="  ")


def _pointers(view: View, report_path: str, case_path: str) -> list[str]:
    lines = [f"report  {report_path}"] if report_path else []
    name = _interesting(view)
    if case_path and name:
        lines.append(f"why     ridgeline why {case_path} {name}")
    return lines


def _interesting(view: View) -> str:
    """The number that a reader would ask about first: a derived one of the decision or the findings."""
    cited = [piece for piece in view.decision if isinstance(piece, Number)]
    cited += [piece for finding in view.findings for piece in finding.sentence if isinstance(piece, Number)]
    cited += list(view.numbers.values())
    return next((number.name for number in cited if number.formula), cited[0].name if cited else "")
