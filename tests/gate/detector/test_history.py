"""The log of looks: only added to, each line with the hash of the last."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.core.errors import InputError
from ridgeline.gate.detector.history import History, Seen, read_history

FIRST = Seen(
    "2026-05-04", "false-positive rate", "f1", "o", 0.02, 0.01, 0.01, 0.004, 0.02, 900, 800, 0.03, 0.01, "SHIP"
)
SECOND = replace(FIRST, date="2026-05-11", field="f2", low=0.02, high=0.04, outcome="NO-SHIP")


def written(path: Path, *looks: Seen) -> History:
    history = History()
    with path.open("w") as stream:
        for look in looks:
            stream.write(history.line(look))
            history = history.after(look)
    return history


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    history = written(path, FIRST, SECOND)
    assert read_history(path) == history
    assert history.looks == (FIRST, SECOND)
    assert read_history(tmp_path / "none.jsonl") == read_history(None) == History()


def test_the_same_data_are_the_same_look(tmp_path: Path) -> None:
    history = written(tmp_path / "log.jsonl", FIRST, SECOND)
    again = replace(FIRST, date="2026-06-01", margin=0.5)
    assert history.line(again) == ""
    assert history.after(again) is history
    assert history.number(again) == 1
    assert history.number(replace(FIRST, field="f3")) == 3
    assert history.number(replace(FIRST, field="f3", metric="miss rate")) == 1


def test_alarms() -> None:
    assert (FIRST.alarm, FIRST.rose) == (False, True)
    assert SECOND.alarm


def test_a_look_is_not_dated_back(tmp_path: Path) -> None:
    history = written(tmp_path / "log.jsonl", SECOND)
    with pytest.raises(InputError, match="not before the last look's, got '2026-05-04 after 2026-05-11'"):
        history.line(FIRST)


def changed(lines: list[str]) -> list[str]:
    return [lines[0].replace("0.02", "0.03"), *lines[1:]]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (lambda lines: lines[1:], "the hash of the line before"),
        (changed, "the hash of the line before"),
        (lambda lines: [lines[0], "{"], "a look of this gate"),
        (lambda lines: [lines[0], "[1]"], "a look of this gate"),
        (lambda lines: [lines[0].replace('"n_field": 900', '"n_field": NaN')], "a look of finite numbers"),
        (lambda lines: [lines[0].replace("2026-05-04", "May 4")], "a look of this gate"),
        (lambda lines: [json.dumps({"before": "0"})], "a look of this gate"),
    ],
)
def test_a_log_that_was_changed_is_refused(tmp_path: Path, lines, says: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "log.jsonl"
    written(path, FIRST, SECOND)
    path.write_text("\n".join(lines(path.read_text().splitlines())) + "\n")
    with pytest.raises(InputError, match=says):
        read_history(path)
