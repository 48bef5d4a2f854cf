"""The card: 80 columns, the order of the report, nothing that needs colour."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from ridgeline.report import terminal

Document = dict[str, Any]


def test_card(document: Document, golden: Callable[[str, str], None]) -> None:
    golden("report-card.txt", terminal.card(document, 80, "out/memo.html", "out/memo.json"))


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider(document: Document, width: int) -> None:
    long = copy.deepcopy(document)
    long["findings"][0]["title"] = "a title that is much longer than any line of a card may be, " * 3
    long["tables"]["candidates"]["title"] = "a long title " * 12
    long["tables"]["candidates"]["rows"][0][0] = "a-model-with-a-very-long-name-that-nobody-would-type-by-hand" * 2
    for case in (document, long):
        lines = terminal.card(case, width, "memo.html", "memo.json").splitlines()
        assert max(map(len, lines)) <= width


def test_order(document: Document) -> None:
    text = terminal.card(document, 80, "memo.html", "memo.json")
    places = [
        text.index(part) for part in ("Train 30B", "checks:", "P031", "Candidates", "evidence, trace", "report  ")
    ]
    assert places == sorted(places)
    assert text.splitlines()[-1] == "why     ridgeline why memo.json optimum.params"


def test_passes_do_not_push_out_what_is_open(document: Document) -> None:
    text = terminal.card(document)
    assert "P040" not in text
    assert "in the report: 2 pass" in text


def test_no_escape_codes(document: Document) -> None:
    assert "\x1b" not in terminal.card(document)


def test_words_from_files_move_no_cursor(document: Document) -> None:
    hostile = copy.deepcopy(document)
    evil = "gemm\x1b[2J\x9b31m\u202e\r\x00"
    hostile["title"] = hostile["findings"][0]["title"] = hostile["because"] = evil
    hostile["because_template"] = ""
    hostile["tables"]["candidates"]["rows"][0][0] = evil
    text = terminal.card(hostile, 80, evil)
    assert text.count("gemm\ufffd[2J\ufffd31m\ufffd") >= 4
    assert not {"\x1b", "\x9b", "\u202e", "\r", "\x00"} & set(text)


def test_paint_changes_no_word(document: Document) -> None:
    text = terminal.card(document)
    painted = terminal.paint(text)
    assert painted.plain == text
    assert any("red" in str(span.style) for span in painted.spans)


def test_bars_for_names_and_one_number() -> None:
    columns = [{"name": "part", "title": "Part", "unit": ""}, {"name": "time", "title": "Time", "unit": "s"}]
    table = {"title": "Step", "columns": columns, "rows": [["compute", 4.0], ["host", 1.0], ["idle", 0.0]]}
    case = {"schema": 1, "tool": "x", "quantities": {}, "findings": [], "tables": {"step": table}}
    rows = terminal.card(case).splitlines()
    bars = {line.split()[0]: line.count("█") for line in rows if line.startswith(("compute", "host", "idle"))}
    assert bars == {"compute": 24, "host": 6, "idle": 0}


def test_an_empty_case_has_a_card() -> None:
    assert terminal.card({"schema": 1, "tool": "plan", "quantities": {}, "findings": []}) == "plan: plan\n"
