"""The words of a command line, and where a report may not go."""

from pathlib import Path

import pytest

from ridgeline.cli import _report
from ridgeline.core.case import Case, InputFile
from ridgeline.core.errors import InputError


def test_words_are_what_was_typed() -> None:
    said = _report.words([
        ("", "a model"), ("--rate", 4.0), ("--metric", ["a", "b"]), ("--irreversible", True), ("--github", False),
        ("--slices", ""), ("--spec", None), ("--law", ()),
    ])  # fmt: skip
    assert said == "'a model' --rate 4.0 --metric a --metric b --irreversible"


@pytest.mark.parametrize("place", ["", "case.json"])
def test_an_input_is_not_written_over(tmp_path: Path, place: str) -> None:
    file = tmp_path / (place or "card.json")
    file.write_text("{}", encoding="utf-8")
    case = Case("test", "a case")
    case.inputs = [InputFile.of(file)]
    with pytest.raises(InputError, match="beside the inputs"):
        _report.keep_inputs(case, tmp_path / place, "card")
    _report.keep_inputs(case, tmp_path / "elsewhere", "card")
