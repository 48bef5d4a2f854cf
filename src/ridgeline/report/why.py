"""``ridgeline why CASE [NAME]``: where a number comes from, as text."""

import textwrap

from ridgeline.core import format as formats
from ridgeline.core.case import Json
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.report.derivation import inputs, put_in, symbolic
from ridgeline.report.view import Number, View, plain

WIDTH = 80


def tree(document: Json, name: str = "") -> str:
    """The derivation of one number, or without a name the list of all. Raises `InputError` for an unknown name.

    A number that several formulas share is derived once and referred to afterwards. Names of nested evidence
    are found too; the case's own come first.
    """
    if not name:
        return _names(View(document))
    for view in View(document).walk():
        if name in view.numbers:
            lines = [f"evidence: {view.title}", ""] if view.path else []
            _branch(view, view.numbers[name], _Place("", "", ""), lines, set())
            return formats.printable("\n".join(line.rstrip() for line in lines)) + "\n"
    known = [item for view in View(document).walk() for item in view.numbers]
    hint = did_you_mean(name, known, "run `ridgeline why CASE` for the list of names")
    raise InputError.expected("a quantity of this case", name, where="NAME", hint=hint)


class _Place:
    """Where a line stands: the symbol it explains, the lead of its first line and of those below."""

    def __init__(self, symbol: str, first: str, below: str) -> None:
        self.symbol = symbol
        self.first = first
        self.below = below


def _branch(view: View, number: Number, place: _Place, lines: list[str], done: set[str]) -> None:
    symbol = f"{place.symbol}: " if place.symbol and place.symbol != number.name else ""
    mark = " (assumed)" if number.assumed else ""
    head = f"{symbol}{number.name} = {number.text}{mark}"
    again = number.name in done and bool(number.formula)
    _say(lines, head + (", derived above" if again else ""), place.first, place.below)
    if again:
        return
    done.add(number.name)
    known = inputs(view, number)
    rail = place.below + ("│ " if known else "  ")
    if number.titled:
        _say(lines, number.label, rail)
    if number.formula:
        _say(lines, symbolic(number), rail)
        _say(lines, "= " + plain(put_in(view, number)), rail)
    else:
        _say(lines, ": ".join(filter(None, (number.kind, number.source))), rail)
        _say(lines, number.url, rail, wrap=False)
    _say(lines, number.note, rail)
    for index, (name, item) in enumerate(known.items()):
        last = index == len(known) - 1
        step = _Place(name, place.below + ("└─ " if last else "├─ "), place.below + ("   " if last else "│  "))
        _branch(view, item, step, lines, done)


def _say(lines: list[str], text: str, first: str, below: str = "", *, wrap: bool = True) -> None:
    """Add a text behind its lead, wrapped; deep trees keep forty columns for their words."""
    if not text:
        return
    rest = (below or first) + "  "
    width = max(WIDTH, len(rest) + 40)
    if not wrap:
        lines.append(first + text)
        return
    writer = textwrap.TextWrapper(width, first, rest, break_long_words=False, break_on_hyphens=False)
    lines += writer.wrap(text)


def _names(view: View) -> str:
    lines: list[str] = []
    for part in view.walk():
        if part.path:
            lines += ["", f"evidence: {part.title}"]
        for group, members in part.groups.items():
            lines += ["", group] if lines else [group]
            size = max(len(number.name) for number in members)
            for number in members:
                _say(lines, f"{number.name:<{size}}  {number.text}{' (assumed)' if number.assumed else ''}", "  ")
    return "\n".join(line.rstrip() for line in lines) + "\n" if lines else "This case has no numbers.\n"
