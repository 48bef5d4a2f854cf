"""Answers against the truth."""

import gzip
from pathlib import Path

import pytest

from ridgeline.core.errors import InputError
from ridgeline.trace.drills.generate import Planted, drill
from ridgeline.trace.drills.grade import Answer, Truth, card, grade, read_answers, read_truth
from ridgeline.trace.drills.job import job_of, small
from ridgeline.trace.drills.render import ANSWERS, TRUTH, write

TRUTH_ = Truth(7, 0.2, (Planted("launch", "late launches", ("T102", "T208"), 0.010),
                        Planted("heat", "a hot chip", ("T402",), 0.020)))  # fmt: skip


def test_found_missed_false_and_off() -> None:
    found = grade(TRUTH_, [Answer("T208", 0.0104), Answer("T103", 0.005)])
    launch, heat = found.causes
    assert launch.close
    assert launch.error == pytest.approx(0.04)
    assert heat.answer is None
    assert not heat.close
    assert [answer.code for answer in found.false] == ["T103"]
    assert (found.found, found.right) == (1, False)
    text = card(found)
    assert "1 of 2 causes found, 1 false" in text
    assert "missed  T402" in text
    assert "false   T103" in text


def test_the_exact_code_goes_first_and_seconds_count() -> None:
    found = grade(TRUTH_, [Answer("T208", 0.001), Answer("T102", 0.010), Answer("T402", 0.0212)])
    assert found.causes[0].answer == Answer("T102", 0.010)
    assert not found.causes[1].close
    assert [answer.code for answer in found.false] == ["T208"]
    assert "(+6%)" in card(found)


def test_all_right() -> None:
    assert grade(TRUTH_, [Answer("T102", 0.010), Answer("T402", 0.0195)]).right


def test_answers_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "answers.toml"
    file.write_text(ANSWERS, encoding="utf-8")
    assert read_answers(file) == []
    file.write_text('[[cause]]\ncode = "T101"\nseconds = 0.010\n', encoding="utf-8")
    assert read_answers(file) == [Answer("T101", 0.010)]


@pytest.mark.parametrize(
    "text",
    [
        '[[cause]]\ncode = "T1"\nseconds = 1.0\n',
        '[[cause]]\ncode = "T101"\nseconds = -1.0\n',
        '[[cause]]\ncode = "T101"\nseconds = nan\n',
        '[[cause]]\ncode = "T101"\n',
        '[[cause]]\ncode = "T101"\nseconds = 1.0\nwho = "me"\n',
        '[[cause]]\ncode = "T101"\nseconds = 1.0\n[[cause]]\ncode = "T101"\nseconds = 1.0\n',
        "cause = 3\n",
        "not toml",
    ],
)
def test_bad_answers_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "answers.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_answers(file)
    assert "answers.toml" in str(caught.value)


def test_the_truth_comes_back(tmp_path: Path) -> None:
    made = drill(3, ["input"], job=small(job_of(3)))
    assert read_truth(write(made, tmp_path / "d")).planted == made.planted


@pytest.mark.parametrize("content", [b"", b"no gzip", gzip.compress(b"{}"), gzip.compress(b'{"causes": 1}')])
def test_a_damaged_truth_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match="a drill"):
        read_truth(tmp_path)
    (tmp_path / "solution").mkdir()
    (tmp_path / TRUTH).write_bytes(content)
    with pytest.raises(InputError, match="a damaged file"):
        read_truth(tmp_path)
