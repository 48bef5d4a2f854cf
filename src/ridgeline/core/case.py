"""The one document: everything a run of a tool knows, as one versioned JSON file.

How the format may change: a new field gets a default and old readers ignore it; the meaning of a name
never moves; a removal raises ``SCHEMA``, and one golden file per version stays readable in the tests.
NaN and infinity do not occur: what is not known is absent, or a finding with verdict ``unknown``.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ridgeline.core import format as formats
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.finding import Finding, by_cost
from ridgeline.core.formula import FormulaError
from ridgeline.core.quantity import Quantity

SCHEMA = 1
Json = dict[str, Any]


@dataclass(frozen=True)
class InputFile:
    """A file that was read: its path as the user gave it, SHA-256 and size in bytes."""

    path: str
    sha256: str
    size: int

    @classmethod
    def of(cls, path: str | Path, content: bytes | None = None) -> "InputFile":
        """Hash a file, or the content that was read from that place."""
        data = Path(path).read_bytes() if content is None else content
        return cls(str(path), hashlib.sha256(data).hexdigest(), len(data))


@dataclass(frozen=True)
class Column:
    """One column: key, what people read, unit (as in `Quantity`; empty for text), and its meaning."""

    name: str
    title: str
    unit: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of plain values or quantities. ``highlight`` is the row that matters, said in words in ``mark``."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    highlight: int | None = None
    mark: str = ""
    note: str = ""


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite spec with its message, alt text, and the table that holds its data."""

    title: str
    alt: str
    spec: Json
    table: str
    note: str = ""


@dataclass(frozen=True)
class Section:
    """Prose under a heading. Paragraphs may hold ``{quantity.name}``; ``show`` names tables and charts in order."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    show: tuple[str, ...] = ()


@dataclass
class Case:
    """What a tool hands over. Build it with the ``add_*`` methods; ``to_json`` is the published form.

    ``decision`` is one sentence with the verdict and its numbers, ``because`` what it rests on and what would
    change it; both may hold ``{quantity.name}``.
    """

    tool: str
    title: str
    decision: str = ""
    command: str = ""
    inputs: list[InputFile] = field(default_factory=list)
    quantities: dict[str, Quantity] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    charts: dict[str, Chart] = field(default_factory=dict)
    sections: list[Section] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    evidence: list[Json] = field(default_factory=list)
    because: str = ""

    def add(self, *quantities: Quantity) -> None:
        """Add quantities with everything they rest on. One name may mean one number only."""
        from numpy import array_equal

        for quantity in quantities:
            for item in quantity.walk():
                known = self.quantities.setdefault(item.name, item)
                if known is not item and not (known.unit == item.unit and array_equal(known.value, item.value)):
                    raise FormulaError(f"two quantities are named {item.name}: {known.value!r} and {item.value!r}")

    def add_findings(self, findings: Iterable[Finding]) -> None:
        """Add findings and the quantities they cite, dearest first."""
        self.findings = by_cost([*self.findings, *findings])
        for finding in self.findings:
            self.add(*finding.quantities)

    def add_table(self, name: str, table: Table) -> None:
        """Add a table and the quantities in its cells."""
        assert all(len(row) == len(table.columns) for row in table.rows), name
        self.tables[name] = table
        self.add(*(cell for row in table.rows for cell in row if isinstance(cell, Quantity)))

    def text(self, template: str) -> str:
        """A template with its ``{quantity.name}`` places written out."""
        return formats.fill(template, lambda name, digits: formats.show(self.find(name), digits))

    def find(self, name: str) -> Quantity:
        """A quantity by name, or an `InputError` with the close matches."""
        if name not in self.quantities:
            hint = did_you_mean(name, self.quantities, "run `ridgeline why CASE` for the list of names")
            raise InputError.expected("a quantity of this case", name, where="NAME", hint=hint)
        return self.quantities[name]

    @property
    def assumptions(self) -> list[Quantity]:
        """The assumed leaves: the Assumptions section writes itself."""
        return [q for q in self.quantities.values() if q.kind == "assumed"]

    def to_json(self) -> Json:
        """The published document: plain JSON types only."""
        return {
            "schema": SCHEMA,
            "tool": self.tool,
            "version": tool_version(),
            "title": self.title,
            "decision": self.text(self.decision),
            "decision_template": self.decision,
            "because": self.text(self.because),
            "because_template": self.because,
            "command": self.command,
            "inputs": [{"path": i.path, "sha256": i.sha256, "bytes": i.size} for i in self.inputs],
            "quantities": {name: _quantity_json(q) for name, q in sorted(self.quantities.items())},
            "findings": [self._finding_json(f) for f in self.findings],
            "tables": {name: _table_json(t) for name, t in self.tables.items()},
            "charts": {name: vars(c) for name, c in self.charts.items()},
            "sections": [self._section_json(s) for s in self.sections],
            "lost": self.lost,
            "evidence": self.evidence,
        }

    def dumps(self) -> str:
        """The document as text, refusing NaN and infinity."""
        return dumps(self.to_json())

    def _finding_json(self, finding: Finding) -> Json:
        return {
            "code": finding.code,
            "title": finding.title,
            "verdict": str(finding.verdict),
            "sentence": self.text(finding.sentence),
            "template": finding.sentence,
            "value": finding.value.name if finding.value else None,
            "threshold": finding.threshold.name if finding.threshold else None,
            "margin": finding.margin,
            "cost": {name: q.name for name, q in finding.cost.figures.items()},
            "cites": [q.name for q in finding.cites],
            "fix": self.text(finding.fix),
            "fix_template": finding.fix,
        }

    def _section_json(self, section: Section) -> Json:
        return {
            "heading": section.heading,
            "paragraphs": [self.text(p) for p in section.paragraphs],
            "templates": list(section.paragraphs),
            "show": list(section.show),
        }


def dumps(document: Json) -> str:
    """A case document as the text of its file, refusing NaN and infinity."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def tool_version() -> str:
    """The installed version of this package."""
    try:
        return version("ridgeline")
    except PackageNotFoundError:
        return "0+unknown"


def _quantity_json(quantity: Quantity) -> Json:
    low_high = quantity.interval()
    result: Json = {
        "value": _plain(quantity),
        "unit": quantity.unit,
        "kind": quantity.kind,
        "formula": quantity.formula,
        "inputs": {symbol: item.name for symbol, item in quantity.inputs.items()},
        "source": vars(quantity.source) if quantity.source else None,
        "label": quantity.label,
        "note": quantity.note,
        "text": formats.show(quantity),
    }
    if low_high:
        result["interval"] = list(low_high)
    return result


def _plain(quantity: Quantity) -> int | float:
    from numpy import median

    if quantity.axis == "candidate":
        raise FormulaError(f"{quantity.name} is an array of candidates: put one of them into the case with at()")
    value = float(median(quantity.value)) if quantity.axis == "draw" else quantity.value
    assert isinstance(value, int | float)
    if not math.isfinite(value):
        raise FormulaError(f"{quantity.name} is {value}: an unknown is left out of a case, never written as NaN")
    return value


def _table_json(table: Table) -> Json:
    def cell(value: Any) -> Any:
        return {"q": value.name} if isinstance(value, Quantity) else value

    return {
        "title": table.title,
        "columns": [vars(c) for c in table.columns],
        "rows": [[cell(value) for value in row] for row in table.rows],
        "highlight": table.highlight,
        "mark": table.mark,
        "note": table.note,
    }


def _all_have(items: Iterable[Any], *keys: str) -> bool:
    return all(isinstance(item, dict) and all(key in item for key in keys) for item in items)


_REQUIRED: Mapping[str, Callable[[Any], bool]] = {
    "tool": lambda v: isinstance(v, str),
    "quantities": lambda v: isinstance(v, dict) and _all_have(v.values(), "value", "unit", "kind"),
    "findings": lambda v: isinstance(v, list) and _all_have(v, "code", "verdict", "sentence"),
}


def load(path: str | Path) -> Json:
    """Read a Case file as its plain document, checked. Other rooms read Cases in this form.

    Raises `InputError` for a missing, truncated or foreign file, or one from a newer schema.
    """
    where = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
        document = json.loads(text, parse_constant=_no_constant)
    except OSError as error:
        raise InputError.expected("a readable case file", error.strerror, where=where) from error
    except (ValueError, RecursionError) as error:
        raise InputError.expected("a whole JSON document", str(error), where=where, hint="is it cut short?") from error
    if not isinstance(document, dict) or not isinstance(document.get("schema"), int):
        raise InputError.expected("a Ridgeline case with a schema number", type(document).__name__, where=where)
    if document["schema"] > SCHEMA:
        raise InputError.expected(
            f"schema {SCHEMA} or older", document["schema"], where=where, hint="upgrade ridgeline"
        )
    for key, fits in _REQUIRED.items():
        if not fits(document.get(key)):
            raise InputError.expected(f"the field {key!r} of a case", document.get(key), where=f"{where}: $.{key}")
    return document


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} in a case")
