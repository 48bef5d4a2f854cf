"""A sheet: whole tables, never wider than the terminal where words can be wrapped."""

from ridgeline.core.case import Case, Column, Section, Table
from ridgeline.core.quantity import given
from ridgeline.report import sheet


def made(text: str) -> Case:
    case = Case("devices", "Sheet", "one {x.size}")
    case.add(given("x.size", 3, "chip"))
    columns = (Column("key", "Key"), Column("size", "Size", "B"), Column("note", "Note"))
    case.add_table("t", Table("Sizes", columns, (("first", 80e9, text), ("second", 2e9, "short")), 1, "this one"))
    case.sections = [Section("Prose", (text,))]
    return case


def test_long_words_wrap_and_nothing_is_lost() -> None:
    text = " ".join(f"word{number}" for number in range(60))
    lines = sheet.render(made(text).to_json()).splitlines()
    assert max(map(len, lines)) <= sheet.WIDTH
    assert all("\n".join(lines).count(f"word{number}") >= 2 for number in range(60))


def test_a_table_that_fits_is_left_alone() -> None:
    out = sheet.render(made("short").to_json())
    assert "first     80  short" in out
    assert out.count("<- this one") == 1


def test_only_the_named_tables() -> None:
    case = made("short")
    case.add_table("other", Table("Unasked", (Column("key", "Key"),), (("a",),)))
    assert "Unasked" in sheet.render(case.to_json())
    assert "Unasked" not in sheet.render(case.to_json(), ("t",))


def test_the_first_column_stays_in_one_piece() -> None:
    case = Case("devices", "Sheet")
    columns = (Column("key", "Key"), Column("note", "Note"))
    case.add_table("t", Table("Long", columns, (("a name of five words", "x " * 100),)))
    assert "a name of five words  x" in sheet.render(case.to_json())
