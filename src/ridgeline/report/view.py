"""A Case document as the renderers read it: names resolved, order decided, nothing formatted for one medium.

Renderers get the plain dict (``Case.to_json()`` or ``core.case.load``) and never a live `Case`. Fields that
an older document lacks read as empty.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ridgeline.core import format as formats
from ridgeline.core.case import Json

TOP_FINDINGS = 5
_WORST_FIRST = ("fail", "unknown", "warn", "pass")
COSTS = ("dollars", "chip_hours", "mfu_points", "seconds")


@dataclass(frozen=True)
class Number:
    """A quantity of a document. ``text`` is how it is written here, ``anchor`` its place on a page."""

    name: str
    anchor: str
    text: str
    entry: Json

    @property
    def kind(self) -> str:
        """specified, published, measured, assumed or derived."""
        return str(self.entry.get("kind", ""))

    @property
    def assumed(self) -> bool:
        """Whether this is an assumed leaf."""
        return self.kind == "assumed"

    @property
    def formula(self) -> str:
        """The formula text, empty for a leaf."""
        return str(self.entry.get("formula") or "")

    @property
    def label(self) -> str:
        """What people read; the name where there is no label."""
        return str(self.entry.get("label") or self.name)

    @property
    def titled(self) -> bool:
        """Whether there is a label beside the name."""
        return self.label != self.name

    @property
    def note(self) -> str:
        """The remark that goes with the figure, if any."""
        return str(self.entry.get("note") or "")

    @property
    def value(self) -> float:
        """The value in its own unit; the median where there are draws."""
        return float(self.entry["value"])

    @property
    def source(self) -> str:
        """The source of a leaf in one line: title, where in it, day read."""
        source = self.entry.get("source") or {}
        parts = [source.get("title", ""), source.get("where", "")]
        if source.get("read_on"):
            parts.append(f"read {source['read_on']}")
        return ", ".join(str(part) for part in parts if part)

    @property
    def url(self) -> str:
        """The address of the source, only where it is a web address."""
        address = str((self.entry.get("source") or {}).get("url") or "")
        return address if address.startswith(("https://", "http://")) else ""

    @property
    def exact(self) -> str:
        """The value with all its digits and its unit, for copying."""
        unit = self.entry.get("unit", "")
        return f"{self.entry['value']!r}{'' if unit in ('', '1') else f' {unit}'}"


Piece = str | Number
_DOCUMENT = {"tool": "", "version": "unknown", "schema": "unknown", "command": "", "inputs": (), "lost": ()}
_SECTION = {"heading": "", "show": ()}
_CHART = {"title": "", "alt": "", "table": "", "note": "", "spec": {}}
_FINDING = {"code": "", "title": ""}


@dataclass(frozen=True)
class FindingView:
    """A finding with its numbers resolved."""

    raw: Json
    sentence: list[Piece]
    fix: list[Piece]
    value: Number | None
    threshold: Number | None
    cost: list[Number]

    @property
    def verdict(self) -> str:
        """pass, warn, fail or unknown; anything else reads as unknown."""
        verdict = str(self.raw.get("verdict"))
        return verdict if verdict in _WORST_FIRST else "unknown"

    @property
    def margin(self) -> str:
        """How far inside or outside the limit, in words."""
        margin = self.raw.get("margin")
        if margin is None or self.value is None or self.threshold is None:
            return ""
        if margin < -1 and self.threshold.value > 0:
            return f"{formats.significant(1 - margin, 2)} times the limit"
        return f"{formats.significant(abs(100 * margin), 2)}% {'inside' if margin >= 0 else 'outside'} the limit"


@dataclass(frozen=True)
class View:
    """One document, and where it stands: ``path`` is () for the case itself, (0,) for its first evidence."""

    document: Json
    path: tuple[int, ...] = ()

    @cached_property
    def facts(self) -> Json:
        """The document with what it lacks as empty."""
        return {**_DOCUMENT, **self.document}

    @cached_property
    def prefix(self) -> str:
        """What keeps the anchors of nested documents apart."""
        return "".join(f"e{index}-" for index in self.path)

    @property
    def title(self) -> str:
        """The document's title, or its tool."""
        return str(self.document.get("title") or self.document.get("tool") or "Case")

    @cached_property
    def numbers(self) -> dict[str, Number]:
        """Every quantity by name."""
        quantities = self.document.get("quantities") or {}
        return {name: self._number(name, entry) for name, entry in quantities.items()}

    def _number(self, name: str, entry: Json) -> Number:
        text = str(entry.get("text") or formats.shown(entry))
        return Number(name, anchor(self.prefix + "q-" + name), text, entry)

    def number(self, name: str | None, digits: int = 3) -> Number | None:
        """A quantity written with that many digits, or None where the document has no such name."""
        known = self.numbers.get(name or "")
        if known is None or digits == 3:
            return known
        return replace(known, text=formats.shown(known.entry, digits))

    def pieces(self, template: str | None, written: str = "") -> list[Piece]:
        """A template as text and numbers in turn; the text as written where there is no template."""
        source = template or written
        result: list[Piece] = []
        at = 0
        for match in formats.PLACEHOLDER.finditer(source):
            number = self.number(match.group(1), int(match.group(2) or 3))
            if number is not None:
                result += [source[at : match.start()], number]
                at = match.end()
        result.append(source[at:])
        return [piece for piece in result if piece != ""]

    @cached_property
    def because(self) -> list[Piece]:
        """What the decision rests on and what would change it."""
        return self.pieces(self.document.get("because_template"), str(self.document.get("because") or ""))

    @cached_property
    def decision(self) -> list[Piece]:
        """The decision sentence."""
        return self.pieces(self.document.get("decision_template"), str(self.document.get("decision") or ""))

    @cached_property
    def findings(self) -> list[FindingView]:
        """Every finding in the document's order: dearest first, passes last."""
        return [self._finding({**_FINDING, **raw}) for raw in self.document.get("findings") or []]

    def _finding(self, raw: Json) -> FindingView:
        costs = ((name, self.number((raw.get("cost") or {}).get(name))) for name in COSTS)
        return FindingView(
            raw=raw,
            sentence=self.pieces(raw.get("template"), str(raw.get("sentence") or "")),
            fix=self.pieces(raw.get("fix_template"), str(raw.get("fix") or "")),
            value=self.number(raw.get("value")),
            threshold=self.number(raw.get("threshold")),
            cost=[_points(number) if name == "mfu_points" else number for name, number in costs if number is not None],
        )

    @property
    def top(self) -> list[FindingView]:
        """The findings that are shown first: at most five that did not pass, or passes where all did."""
        open_ones = [finding for finding in self.findings if finding.verdict != "pass"]
        return (open_ones or self.findings)[:TOP_FINDINGS]

    @property
    def rest(self) -> list[FindingView]:
        """The findings behind the fold."""
        return [finding for finding in self.findings if finding not in self.top]

    @property
    def verdict(self) -> str:
        """The worst verdict of the findings; empty where nothing was checked. ``unknown`` never reads as pass."""
        present = {finding.verdict for finding in self.findings}
        return next((verdict for verdict in _WORST_FIRST if verdict in present), "")

    @property
    def tally(self) -> list[tuple[str, int]]:
        """How many checks came out how, worst first; only what occurs."""
        return tally([finding.verdict for finding in self.findings])

    @cached_property
    def assumptions(self) -> list[Number]:
        """The assumed leaves."""
        return [number for number in self.numbers.values() if number.assumed]

    @cached_property
    def groups(self) -> dict[str, list[Number]]:
        """The quantities by the first part of their name."""
        result: dict[str, list[Number]] = {}
        for name in sorted(self.numbers):
            result.setdefault(name.partition(".")[0], []).append(self.numbers[name])
        return result

    @cached_property
    def evidence(self) -> list["View"]:
        """The nested case documents."""
        nested = self.document.get("evidence") or []
        return [View(item, (*self.path, index)) for index, item in enumerate(nested) if isinstance(item, dict)]

    def walk(self) -> Iterator["View"]:
        """This document and all nested ones."""
        yield self
        for nested in self.evidence:
            yield from nested.walk()

    @cached_property
    def sections(self) -> list[Json]:
        """The sections; tables and charts that no section shows stand in one more, so that nothing is hidden."""
        sections = [{**_SECTION, **section} for section in self.document.get("sections") or []]
        charts = self.document.get("charts") or {}
        shown = {name for section in sections for name in section["show"]}
        behind = {chart.get("table") for chart in charts.values()}
        rest = [name for name in charts if name not in shown]
        rest += [name for name in self.document.get("tables") or {} if name not in shown | behind]
        if rest:
            sections.append({"heading": "More tables and charts" if sections else "Figures", "show": rest})
        return sections

    def section_pieces(self, section: Json) -> list[list[Piece]]:
        """The paragraphs of a section."""
        written = section.get("paragraphs") or []
        templates = section.get("templates") or written
        return [self.pieces(template) for template in templates]

    def table(self, name: str) -> Json | None:
        """A table by name."""
        found = (self.document.get("tables") or {}).get(name)
        return found if isinstance(found, dict) else None

    def chart(self, name: str) -> Json | None:
        """A chart by name."""
        found = (self.document.get("charts") or {}).get(name)
        return {**_CHART, **found} if isinstance(found, dict) else None

    def cell(self, value: Any) -> Any:
        """A table cell: the `Number` it names, or the plain value; an unresolved name is None."""
        return self.number(value["q"]) if isinstance(value, dict) and "q" in value else value


def anchor(name: str) -> str:
    """A name as an id that is safe in an attribute and in an address."""
    return re.sub(r"[^A-Za-z0-9_.\-]", lambda match: f"_{ord(match.group()):x}_", name)


def tally(verdicts: list[str]) -> list[tuple[str, int]]:
    """How often each verdict occurs, worst first."""
    return [(verdict, verdicts.count(verdict)) for verdict in _WORST_FIRST if verdict in verdicts]


def _points(number: Number) -> Number:
    """A loss of MFU in points: percent of the peak, in the convention that the quantity's label names."""
    if number.entry.get("unit") not in ("%", "1"):
        return number
    points = number.value * (1 if number.entry["unit"] == "%" else 100)
    return replace(number, text=f"{formats.significant(points)} MFU points")


def coded(text: str) -> list[tuple[bool, str]]:
    """A text cut at its backticks: (whether it is code, the words)."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # an unpaired backtick is a character like any other
        return [(False, text)]
    return [(index % 2 == 1, part) for index, part in enumerate(parts) if part]


def plain(pieces: list[Piece]) -> str:
    """Pieces as plain text."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)
