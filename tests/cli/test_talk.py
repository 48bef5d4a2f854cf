"""Handing a case over: card or document, a file beside it, and the exit code of its findings."""

from pathlib import Path

import pytest
import typer

from ridgeline.cli import _talk
from ridgeline.core.case import Case, Column, Table, load
from ridgeline.core.finding import Finding, Verdict
from ridgeline.core.quantity import given


def case_with(*verdicts: Verdict) -> Case:
    case = Case("plan", "A plan")
    case.add_findings(Finding("P901", "t", verdict, "s", "f") for verdict in verdicts)
    return case


@pytest.mark.parametrize("verdicts", [(), (Verdict.PASS,), (Verdict.WARN, Verdict.UNKNOWN)])
def test_no_failed_finding_is_exit_zero(verdicts: tuple[Verdict, ...], capsys: pytest.CaptureFixture[str]) -> None:
    _talk.hand_over(case_with(*verdicts), lambda case: case.title, as_json=False)
    assert capsys.readouterr().out == "A plan\n"


@pytest.mark.parametrize("as_json", [True, False])
def test_a_failed_finding_is_exit_one_after_the_output(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as stop:
        _talk.hand_over(case_with(Verdict.PASS, Verdict.FAIL), lambda case: case.title, as_json=as_json)
    assert stop.value.exit_code == 1
    assert "A plan" in capsys.readouterr().out


def test_output_is_the_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "case.json"
    _talk.hand_over(case_with(), lambda case: "card", as_json=True, output=target)
    out, err = capsys.readouterr()
    assert target.read_text() == out
    assert load(target)["title"] == "A plan"
    assert str(target) in err


def test_card_lines_up_and_marks_in_words() -> None:
    columns = (Column("what", "What"), Column("size", "Size", "param"))
    rows = (("small", given("a", 1.25e9, "param")), ("largest one", given("b", 20e9, "param")))
    case = Case("model", "Two", "two models")
    case.add_table("sizes", Table("Sizes", columns, rows, 1, "chosen", "a note"))
    lines = _talk.sheet(case).splitlines()
    assert lines[0] == "Two: two models"
    assert lines[2] == "Sizes"
    assert [line.rstrip() for line in lines[3:]] == [
        "What             Size",
        "             B params",
        "small             1.2",
        "largest one      20.0  <- chosen",
        "a note",
    ]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_reader_that_goes_away_loses_the_card_and_not_the_report(
    as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", gone)
    with pytest.raises(BrokenPipeError):
        _talk.report(case_with(), tmp_path, "case", as_json=as_json)
    assert (tmp_path / "case.json").read_text().startswith("{")
    assert "</html>" in (tmp_path / "case.html").read_text()
