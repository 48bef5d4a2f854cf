"""The memo as Markdown."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from ridgeline.report import markdown

Document = dict[str, Any]


def test_memo(document: Document, golden: Callable[[str, str], None]) -> None:
    golden("report-memo.md", markdown.render(document))


def test_every_number_is_in_the_appendix(document: Document) -> None:
    appendix = markdown.render(document).partition("## All numbers")[2]
    for name in [*document["quantities"], *document["evidence"][0]["quantities"]]:
        assert f"| `{name}`" in appendix


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a | b", r"a \| b"),
        ("<script>", "&lt;script&gt;"),
        ("two\nlines", "two lines"),
        ("set `a_b` to *", r"set `a_b` to \*"),
        ("params_total _x_", r"params_total \_x\_"),
        ("[link](x)", r"\[link\](x)"),
        ("an odd ` tick", r"an odd \` tick"),
    ],
)
def test_escape(text: str, escaped: str) -> None:
    assert markdown.escape(text) == escaped


def test_long_tables_are_cut_and_say_so() -> None:
    columns = [{"name": "n", "title": "N", "unit": ""}]
    table = {
        "title": "Many",
        "columns": columns,
        "rows": [[row] for row in range(100)],
        "highlight": 77,
        "mark": "worst",
    }
    case = {"schema": 1, "tool": "x", "quantities": {}, "findings": [], "tables": {"many": table}}
    text = markdown.render(case)
    assert "The first 40 of 100 rows." in text
    assert "| **77** (worst) |" in text
    assert "| 78 |" not in text


def test_rows_have_the_columns_of_their_header(document: Document) -> None:
    lines = markdown.render(document).splitlines()
    for above, line in pairwise(lines):
        if above.startswith("|") and line.startswith("|"):
            assert line.replace("\\|", "").count("|") == above.replace("\\|", "").count("|"), line
