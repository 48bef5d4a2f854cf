"""``ridgeline drill``: make, answer, grade."""

from pathlib import Path
from typing import Any

import pytest

from ridgeline.trace.drills.grade import read_truth


def test_make_answer_and_grade(ridgeline: Any, tmp_path: Path) -> None:
    folder = tmp_path / "drill"
    made = ridgeline("drill", "new", "--seed", "3", "--cause", "input", "-o", folder)
    assert made.code == 0
    assert "answers.toml" in made.out
    answers = folder / "answers.toml"
    empty = ridgeline("drill", "grade", answers)
    assert empty.code == 1
    assert "0 of 1 causes found" in empty.out
    (cause,) = read_truth(folder).planted
    answers.write_text(f'[[cause]]\ncode = "T101"\nseconds = {cause.seconds * 1.01:.6f}\n', encoding="utf-8")
    done = ridgeline("drill", "grade", answers, "--json")
    assert done.code == 0
    assert done.json["causes"][0]["close"] is True
    assert done.json["false"] == []


def test_the_incident(ridgeline: Any, tmp_path: Path) -> None:
    folder = tmp_path / "incident"
    done = ridgeline("drill", "new", "--incident", "-o", folder, "--json")
    assert done.code == 0
    assert done.json["answers"] == str(folder / "answers.toml")
    assert len(list((folder / "traces").iterdir())) == 8


@pytest.mark.parametrize(
    "arguments",
    [("drill", "new", "--incident", "--cause", "input"), ("drill", "new", "--cause", "nothing"),
     ("drill", "grade", "missing/answers.toml"), ("drill", "new", "--seed", "-1")],
)  # fmt: skip
def test_bad_input(ridgeline: Any, tmp_path: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = ridgeline(*arguments)
    assert (done.code, done.out) == (2, "")
    assert list(tmp_path.iterdir()) == []
