"""The memo: a Case document as Markdown, with the derivations as a table at the end."""

import re

from ridgeline.core.case import Json
from ridgeline.report.derivation import put_in, symbolic
from ridgeline.report.grid import Grid, grid
from ridgeline.report.view import FindingView, Number, Piece, View, coded

ROWS = 40  # a longer table is cut here; the report and the case have the rest


def render(document: Json) -> str:
    """The memo of a Case document."""
    view = View(document)
    lines = [
        f"# {escape(view.title)}",
        "",
        f"**{_text(view.decision)}**" if view.decision else "",
        "",
        _text(view.because),
    ]
    if view.tally:
        lines += ["", "Checks: " + ", ".join(f"{count} {verdict}" for verdict, count in view.tally) + "."]
    if view.assumptions:
        lines += ["", f"{_mark()} marks an assumed number."]
    lines += _body(view, "##")
    if view.assumptions:
        lines += ["", "## Assumptions", "", *_assumptions(view)]
    if any(part.numbers for part in view.walk()):
        lines += ["", "## All numbers", *_numbers(view)]
    lines += ["", "## Ledger", *_ledger(view)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def escape(text: str) -> str:
    """Text that Markdown shows as written, also inside a table cell. Code between backticks stays code."""
    flat = " ".join(str(text).split())
    return "".join(_code(words) if code else _escape(words) for code, words in coded(flat))


def _code(words: str) -> str:
    return "`" + words.replace("|", "\\|") + "`"


def _escape(words: str) -> str:
    safe = re.sub(r"([\\`*|\[\]])", r"\\\1", words).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", safe)


def _mark() -> str:
    return "<sup>a</sup>"


def _number(number: Number) -> str:
    return escape(number.text) + (_mark() if number.assumed else "")


def _text(pieces: list[Piece]) -> str:
    written = [piece if isinstance(piece, str) else piece.text for piece in pieces]
    if "`" in "".join(written):  # a code span may hold a number
        return escape("".join(written))
    parts = (_spaced(piece) if isinstance(piece, str) else _number(piece) for piece in pieces)
    return "".join(parts).strip()


def _spaced(text: str) -> str:
    """Escaped text that keeps the spaces at its ends."""
    before, after = " " * text.startswith((" ", "\n")), " " * text.endswith((" ", "\n"))
    return f"{before}{escape(text)}{after}" if text.strip() else " "


def _body(view: View, level: str) -> list[str]:
    lines: list[str] = []
    if view.findings:
        lines += ["", f"{level} Findings", ""]
        lines += [line for finding in view.top for line in _finding(finding)]
        if view.rest:
            lines += ["", f"{level}# Further findings", "", *(line for item in view.rest for line in _finding(item))]
    for section in view.sections:
        lines += ["", f"{level} {escape(section['heading'])}"]
        for pieces in view.section_pieces(section):
            lines += ["", _text(pieces)]
        for name in section["show"]:
            lines += _shown(view, name)
    for part in view.evidence:
        lines += ["", f"{level} Evidence, {escape(part.facts['tool'])}: {escape(part.title)}"]
        lines += ["", f"**{_text(part.decision)}**" if part.decision else ""]
        lines += _body(part, f"{level}#")
        if part.assumptions:
            lines += ["", f"{level}# Assumptions of {escape(part.facts['tool'])}", "", *_assumptions(part)]
        lines += ["", f"{level}# Ledger of {escape(part.facts['tool'])}", *_ledger(part)]
    return lines


def _finding(finding: FindingView) -> list[str]:
    cost = ", ".join(map(_number, finding.cost))
    head = f"- **{finding.verdict.upper()} {escape(finding.raw['code'])}** "
    head += escape(finding.raw["title"]) + (f" (costs {cost})" if cost else "")
    lines = [head + "  ", f"  {_text(finding.sentence)}"]
    if finding.threshold is not None:
        against = f"{_number(finding.value)} against " if finding.value else ""
        margin = f", {finding.margin}" if finding.margin else ""
        lines[-1] += f" ({against}limit {_number(finding.threshold)}{margin})"
    if finding.fix:
        lines[-1] += "  "
        lines.append(f"  *First action:* {_text(finding.fix)}")
    return lines


def _shown(view: View, name: str) -> list[str]:
    chart = view.chart(name)
    if chart is not None:
        data = view.table(str(chart["table"]))
        lines = ["", f"**Chart: {escape(chart['title'])}.** {escape(chart['alt'])}"]
        lines += ["", escape(chart["note"])] if chart["note"] else []
        return [*lines, *(_table(grid(view, data)) if data else [])]
    table = view.table(name)
    if table is None:
        return []
    laid = grid(view, table)
    return ["", f"**{escape(laid.title)}**" if laid.title else "", *_table(laid)]


def _table(laid: Grid) -> list[str]:
    if not laid.heads:
        return []
    heads = [escape(f"{head.title} ({head.unit})" if head.unit else head.title) for head in laid.heads]
    lines = ["", _row(heads), _row(["---:" if head.numeric else "---" for head in laid.heads])]
    for index, cells in enumerate(laid.rows):
        if index >= ROWS and index != laid.highlight:
            continue
        texts = [escape(cell.text) + (_mark() if cell.assumed else "") for cell in cells]
        if index == laid.highlight:
            texts = [f"**{text}**" if text else "" for text in texts]
            texts[0] += f" ({escape(laid.mark)})" if laid.mark else ""
        lines.append(_row(texts))
    if len(laid.rows) > ROWS:
        lines += ["", f"The first {ROWS} of {len(laid.rows)} rows."]
    return [*lines, "", escape(laid.note)] if laid.note else lines


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _assumptions(view: View) -> list[str]:
    rows = [
        [escape(number.label), _number(number), escape(" · ".join(filter(None, (number.note, number.source))))]
        for number in view.assumptions
    ]
    return [_row(["Assumed", "Value", "Why, and where from"]), _row(["---", "---:", "---"]), *map(_row, rows)]


def _numbers(view: View) -> list[str]:
    lines: list[str] = []
    for part in view.walk():
        if not part.numbers:
            continue
        lines += ["", f"### Evidence: {escape(part.title)}" if part.path else "", ""]
        lines += [_row(["Name", "Value", "Formula, or kind and source", "Numbers put in"]), _row(["---"] * 4)]
        lines += [_row(_derivation(part, number)) for members in part.groups.values() for number in members]
    return lines


def _derivation(view: View, number: Number) -> list[str]:
    name = _code(number.name) + (f" {escape(number.label)}" if number.titled else "")
    if number.formula:
        written = "".join(piece if isinstance(piece, str) else piece.text for piece in put_in(view, number))
        return [name, _number(number), _code(symbolic(number)), escape(written)]
    return [name, _number(number), escape(": ".join(filter(None, (number.kind, number.source)))), escape(number.note)]


def _ledger(view: View) -> list[str]:
    document = view.facts
    lines: list[str] = []
    if document["command"]:
        lines += ["", "How to reproduce:", "", *(f"    {line}" for line in str(document["command"]).splitlines())]
    if document["inputs"]:
        lines += ["", _row(["Input", "Bytes", "SHA-256"]), _row(["---", "---:", "---"])]
        lines += [_row([escape(i["path"]), f"{i['bytes']:,}", _code(i["sha256"])]) for i in document["inputs"]]
    lost = [f"- {escape(item)}" for item in document["lost"]]
    lines += ["", "Lost or skipped: nothing." if not lost else "Lost or skipped:", "", *lost]
    version, schema, tool = (escape(str(document[key])) for key in ("version", "schema", "tool"))
    return [*lines, "", f"ridgeline {version}, case schema {schema}, tool {tool}."]
