"""The laws that there are, by slug, and the page that lists them."""

from functools import lru_cache

from ridgeline.core import plugins
from ridgeline.core.case import Case, Column, Section, Table
from ridgeline.core.catalog import law as published
from ridgeline.core.catalog import laws as all_published
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.forecast.form import Form


@lru_cache(maxsize=1)
def forms() -> dict[str, Form]:
    """Every law by slug: the folder's and those of the entry-point group ``ridgeline.form``.

    Raises `InputError` where two share a slug.
    """
    found: dict[str, Form] = {}
    for item in plugins.load("ridgeline.forecast.laws", Form, kind="form"):  # type: ignore[type-abstract]
        if found.setdefault(item.slug, item) is not item:
            raise InputError.expected("one law per slug", item.slug, where="ridgeline.forecast.laws")
    return found


def form(slug: str) -> Form:
    """A law by slug, or an `InputError` with the close matches."""
    known = forms()
    if slug not in known:
        hint = did_you_mean(slug, known, "run `ridgeline forecast laws` for the list")
        raise InputError.expected("a law", slug, where="--law", hint=hint)
    return known[slug]


def laws_case(slug: str = "", *, command: str = "") -> Case:
    """The laws as a case: one table of all, or one law with its constants, validity and what its source leaves open."""
    chosen = [form(slug)] if slug else list(forms().values())
    case = Case("forecast laws", chosen[0].title if slug else f"{len(chosen)} laws", command=command)
    if not slug:
        case.add_table("laws", _list(chosen))
        case.add_table("laws.valid", _valid(chosen))
        case.sections = [Section("Laws that can be fitted", (), ("laws", "laws.valid"))]
        return case
    law = chosen[0]
    case.decision, case.because = law.text, law.valid
    case.add_table("law.constants", _constants(law))
    reads = f"It predicts {law.predicts} and reads {', '.join(law.inputs)}."
    said = (reads, f"Valid for: {law.valid}", f"Source: {law.source.title}, {law.source.where}.")
    case.sections = [Section("Constants", said, ("law.constants",))]
    if law.ambiguous:
        case.sections.append(Section("What its source leaves open", (law.ambiguous,)))
    fitted = _published(law)
    if fitted.rows:
        case.add_table("law.published", fitted)
        case.sections.append(Section("Published constants", (), ("law.published",)))
    return case


def _list(found: list[Form]) -> Table:
    columns = (Column("slug", "Law"), Column("predicts", "Predicts"), Column("inputs", "Reads"))
    rows = tuple((law.slug, law.predicts, ", ".join(law.inputs)) for law in found)
    note = (
        "`ridgeline forecast laws NAME` shows one: its formula, its constants, where it stops being valid, and what "
        "its source leaves open. `ridgeline forecast` takes those that read N and D."
    )
    return Table("Laws", columns, rows, note=note)


def _valid(found: list[Form]) -> Table:
    columns = (Column("slug", "Law"), Column("formula", "Formula"), Column("valid", "Valid for"))
    rows = tuple((law.slug, law.text, law.valid) for law in found)
    return Table("Where they hold", columns, rows)


def _constants(law: Form) -> Table:
    columns = (Column("symbol", "Symbol"), Column("meaning", "Meaning"), Column("low", "At least"),
               Column("high", "At most"), Column("scale", "Fitted by its"))  # fmt: skip
    rows = tuple(
        (item.symbol, item.meaning, _bound(item.low), _bound(item.high), "logarithm" if item.log else "value")
        for item in law.parameters
    )
    return Table("Fitted constants", columns, rows)


def _published(law: Form) -> Table:
    columns = (Column("law", "Law"), Column("constants", "Constants"), Column("source", "Source"))
    rows = []
    for name in all_published():
        item = published(name)
        if item.kind == law.kind:
            said = ", ".join(f"{symbol} {float(value.value):g}" for symbol, value in item.constants.items())
            rows.append((item.name, said, item.source.title))
    return Table("Published constants of this form", columns, tuple(rows))


def _bound(value: float) -> str:
    return f"{value:.3g}".replace("e+", "e")
