"""One figure in TOML: what it may say, and how it is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core import figures
from ridgeline.core.errors import InputError
from ridgeline.core.figures import Context
from ridgeline.core.parse import ABSURD
from ridgeline.core.quantity import Source

SHEET = Source("sheet", "p. 1", "2026-01-02", "https://example.org")
CATALOG = Context({"s": SHEET})


def test_a_full_figure_with_one_that_disagrees() -> None:
    entry = {"value": 2.0, "unit": "B", "kind": "published", "source": "s", "where": "p. 9", "reason": "newer",
             "disagree": [{"value": 3.0, "source": "s", "note": "old"}]}  # fmt: skip
    quantity, others = figures.figure(entry, "a.b", "B", "$.b", CATALOG)
    assert (quantity.name, quantity.value, quantity.source) == (
        "a.b",
        2.0,
        Source("sheet", "p. 9", "2026-01-02", SHEET.url),
    )
    assert [(item.value, item.chosen, item.reason, item.source) for item in others] == [(3.0, 2.0, "newer", SHEET)]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"value": 1, "kind": "published"}, r"Expected a source .* at \$\.b\.source"),
        ({"value": 1, "source": "s"}, r"Expected one of specified, .* got None, at \$\.b\.kind"),
        ({"kind": "assumed"}, r"Expected a positive number, got None, at \$\.b"),
        ({"value": 1, "kind": "assumed", "disagree": [{"value": 0}]}, r"\$\.b\.disagree\[0\]"),
    ],
)
def test_figures_that_are_refused(entry: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        figures.figure(entry, "a.b", "B", "$.b", CATALOG)


@given(st.floats(min_value=1e-30, max_value=ABSURD))
def test_a_bare_number_of_ones_own_file_is_specified(value: float) -> None:
    own = Context({}, Source("given by the user", "f.toml"), "specified")
    quantity, others = figures.figure(value, "a.b", "B", "$.b", own)
    assert (quantity.value, quantity.unit, quantity.kind, others) == (value, "B", "specified", ())


@given(st.one_of(st.floats(max_value=0), st.integers(min_value=10 * int(ABSURD)), st.text(), st.booleans(), st.none()))
def test_what_is_no_positive_number(value: object) -> None:
    with pytest.raises(InputError, match="Expected a positive number"):
        figures.number(value, "$.b")


def test_a_negative_constant_may_be_allowed() -> None:
    assert figures.number(-0.2, "$.b", positive=False) == -0.2


@pytest.mark.parametrize("content", [b"a = ", b"\xff\xfe", b"a = " + b"9" * 5000, b"a = 1\na = 2"])
def test_files_that_are_not_toml(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "f.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match="Expected valid TOML"):
        figures.read(path)


def test_sources_need_a_title() -> None:
    with pytest.raises(InputError, match=r"\$\.sources\.x\.title"):
        figures.sources({"sources": {"x": {"url": "u"}}})
