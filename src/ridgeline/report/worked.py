"""Quantities as the rows of a worked page: what, formula, the numbers put in, and the result in bold.

A row may carry its figure as somebody published it (``"293.1 GB"``): the result is then written in that unit and to
that many digits, so that the two can be compared character by character.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from ridgeline.core import format as formats
from ridgeline.core.case import Case
from ridgeline.core.quantity import Quantity
from ridgeline.report.derivation import put_in, symbolic
from ridgeline.report.view import View, plain

Row = Quantity | tuple[Quantity, str]
HEAD = "| what | formula | numbers put in | result |\n|---|---|---|---|"
_PUBLISHED = re.compile(r"(\$?)(\d[\d,]*)(?:\.(\d+))?(?:e(\d+))?(.*)")
_NOTHING_BEHIND = re.compile(r"(\.\d*?)0+(?!\d)")


def table(rows: Mapping[str, Row]) -> str:
    """A Markdown table with one line for each quantity, in the order given."""
    return "\n".join([HEAD, *(_line(what, row) for what, row in rows.items())])


def result(row: Row) -> str:
    """The result as it is written: like the published figure where there is one."""
    return as_published(*row) if isinstance(row, tuple) else formats.show(row)


def as_published(quantity: Quantity, text: str) -> str:
    """``text`` with its number replaced by the value: ``293.1 GB``, ``3.15e23 FLOP``, ``$60,480``, ``95.4%``, ``1.7``.

    Unit, digits and power of ten stay as they are. Raises `FormulaError` for a unit of other dimensions.
    """
    found = _PUBLISHED.fullmatch(text)
    assert found is not None, text
    dollar, _, places, power, rest = found.groups()
    unit = f"USD{rest}" if dollar else rest.strip()
    value = float(quantity.to(unit or quantity.unit)) / 10 ** int(power or 0)
    return f"{dollar}{value:,.{len(places or '')}f}" + (f"e{power}" if power else "") + rest


def _line(what: str, row: Row) -> str:
    quantity = row[0] if isinstance(row, tuple) else row
    if not quantity.formula:
        return f"| {what} | {quantity.kind} | {formats.show(quantity)} | **{result(row)}** |"
    case = Case("worked", what)
    bare = {symbol: replace(item, inputs={}) for symbol, item in quantity.inputs.items()}  # a row is one step
    case.add(replace(quantity, inputs=bare))
    view = View(case.to_json())
    for number in view.numbers.values():
        if number.kind != "derived":  # given to the last digit: 80, not 80.0
            number.entry["text"] = _short(number.text)
    view = View(view.document)
    number = view.numbers[quantity.name]
    return f"| {what} | `{symbolic(number)}` | `{plain(put_in(view, number))}` | **{result(row)}** |"


def _short(text: str) -> str:
    """Without zeros behind the point, except in a price."""
    return text if text.startswith("$") else _NOTHING_BEHIND.sub(lambda m: m.group(1).rstrip("."), text)
