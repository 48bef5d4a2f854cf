"""A Case as a sheet: its tables, whole, wrapped to the width of a terminal. For look-ups rather than decisions."""

import textwrap
from collections.abc import Sequence

from ridgeline.core.case import Json
from ridgeline.report.grid import Grid, Head, grid
from ridgeline.report.view import View, plain

WIDTH = 80
_NARROW, _LEAST, _GAP = 12, 12, 2  # text columns that are never wrapped; the least width of one that is


def render(document: Json, tables: Sequence[str] = (), width: int = WIDTH) -> str:
    """Title, decision, prose and tables (all, or the named ones) as text."""
    read = View(document)
    head = f"{read.title}: {plain(read.decision)}" if read.decision else read.title
    prose = [plain(pieces) for section in read.sections for pieces in read.section_pieces(section)]
    blocks = ["\n".join(line for text in (head, *prose) for line in textwrap.wrap(text, width))]
    names = tables or tuple(document.get("tables") or ())
    return "\n\n".join([*blocks, *(_table(grid(read, document["tables"][name]), width) for name in names)])


def _table(laid: Grid, width: int) -> str:
    per_chip = "per chip" in laid.title  # said once there, so not in every unit
    units = [head.unit.removesuffix("/chip") if per_chip else head.unit for head in laid.heads]
    rows = [[head.title for head in laid.heads], units, *([cell.text for cell in row] for row in laid.rows)]
    widths = _widths(rows, laid.heads, width)
    lines = [laid.title]
    for number, row in enumerate(rows):
        wrapped = _row(row, widths, laid.heads)
        if laid.highlight is not None and number == laid.highlight + 2:
            wrapped[0] += f"  <- {laid.mark}"
        lines += [line for line in wrapped if line]
    return "\n".join([*lines, *textwrap.wrap(laid.note, width)])


def _widths(rows: Sequence[Sequence[str]], heads: Sequence[Head], width: int) -> list[int]:
    """Natural widths; where they are too much, the wide text columns share what the others leave."""
    natural = [max(len(row[i]) for row in rows) for i in range(len(heads))]
    room = width - _GAP * (len(heads) - 1)
    # the first column is what people look for: it stays in one piece
    wide = [i for i, head in enumerate(heads) if i and not head.numeric and natural[i] > _NARROW]
    if sum(natural) <= room or not wide:
        return natural
    left = room - sum(size for i, size in enumerate(natural) if i not in wide)
    for done, i in enumerate(sorted(wide, key=lambda i: natural[i])):  # a narrower one leaves more to the rest
        share = max(_LEAST, left // (len(wide) - done))
        natural[i] = min(natural[i], share)
        left -= natural[i]
    return natural


def _row(row: Sequence[str], widths: Sequence[int], heads: Sequence[Head]) -> list[str]:
    each = list(zip(row, widths, heads, strict=True))
    cells = [[text] if head.numeric else textwrap.wrap(text, size) or [""] for text, size, head in each]
    deepest = max(len(cell) for cell in cells)
    padded = [[*cell, *[""] * (deepest - len(cell))] for cell in cells]
    return [
        (" " * _GAP).join(_pad(cell[i], w, head) for cell, w, head in zip(padded, widths, heads, strict=True)).rstrip()
        for i in range(deepest)
    ]


def _pad(text: str, width: int, head: Head) -> str:
    return text.rjust(width) if head.numeric else text.ljust(width)
