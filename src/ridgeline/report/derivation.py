"""How a formula is written for people: with its symbols, and with the numbers put in."""

import re
from collections.abc import Iterator
from dataclasses import replace

from ridgeline.core import format as formats
from ridgeline.report.view import Number, Piece, View

_TOKEN = re.compile(r"\d+\.?\d*(?:[eE][+-]?\d+)?|[A-Za-z_]\w*|\*\*|[<>=!]=|\S")
_SPACED = {"*": " × ", "/": " / ", "+": " + ", "<": " < ", ">": " > ", "<=": " ≤ ", ">=": " ≥ ",
           "==": " = ", "!=": " ≠ ", "%": " mod ", ",": ", "}  # fmt: skip


def inputs(view: View, number: Number) -> dict[str, Number]:
    """The inputs of a quantity by the symbol that its formula uses; names the document lacks are left out."""
    names = (number.entry.get("inputs") or {}).items()
    return {symbol: found for symbol, name in names if (found := view.number(name)) is not None}


def symbolic(number: Number) -> str:
    """The formula with typographic operators: ``6 × N × D``."""
    return "".join(_tokens(number.formula))


def put_in(view: View, number: Number) -> list[Piece]:
    """The formula with the numbers put in for the symbols, as text and numbers in turn."""
    known = inputs(view, number)
    tokens = list(_tokens(number.formula))
    result: list[Piece] = []
    for index, token in enumerate(tokens):
        if token not in known:
            result.append(token)
            continue
        powered = "^" in tokens[max(0, index - 1) : index + 2]
        item = middle(known[token])
        bare = not item.text.startswith("-") and not (powered and " " in item.text)
        result += [item] if bare else ["(", item, ")"]
    return result


def _tokens(formula: str) -> Iterator[str]:
    previous = ""
    for token in _TOKEN.findall(formula):
        yield _written(token, previous)
        previous = token


def _written(token: str, previous: str) -> str:
    if token == "**":
        return "^"
    if token == "-":
        return " − " if previous and (previous[-1].isalnum() or previous[-1] in ")_") else "−"
    return _SPACED.get(token, token)


def middle(number: Number) -> Number:
    """A number without its interval: how it stands inside a formula."""
    if not number.entry.get("interval"):
        return number
    return replace(number, text=formats.value(number.value, number.entry["unit"]))
