"""The list of laws: every form by its slug, and a page each."""

import pytest

from ridgeline.core.errors import InputError
from ridgeline.forecast.forms import form, forms, laws_case


def test_every_law_has_a_page_with_its_constants() -> None:
    for slug, law in forms().items():
        case = laws_case(slug)
        assert [row[0] for row in case.tables["law.constants"].rows] == list(law.symbols)
        assert case.decision == law.text
        case.dumps()


def test_the_list_has_every_law() -> None:
    table = laws_case().tables["laws"]
    assert [row[0] for row in table.rows] == list(forms())
    assert {"chinchilla", "coupled"} <= set(forms())


def test_what_a_source_leaves_open_is_said() -> None:
    open_ones = [slug for slug, law in forms().items() if law.ambiguous]
    assert open_ones
    for slug in open_ones:
        assert any(section.heading == "What its source leaves open" for section in laws_case(slug).sections)


def test_an_unknown_law_is_refused_with_the_close_ones() -> None:
    with pytest.raises(InputError, match="chinchilla"):
        form("chinchila")


def test_a_law_says_where_it_stops_being_valid() -> None:
    for slug, law in forms().items():
        assert any(law.valid in text for text in laws_case(slug).sections[0].paragraphs)
    assert [row[0] for row in laws_case().tables["laws.valid"].rows] == list(forms())
