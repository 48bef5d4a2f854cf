"""The log of looks: only appended to, the same data twice is one look."""

import json
from pathlib import Path

import pytest

from ridgeline.core.errors import InputError
from ridgeline.gate.registration.looks import Look, data_hash, next_look, others, place_of, read_looks

FIRST = Look("rec", "2026-01-01T00:00:00Z", "d1", 100, "INCONCLUSIVE", "ridgeline gate precision")
SECOND = Look("rec", "2026-01-02T00:00:00Z", "d2", 200, "SHIP", "ridgeline gate precision")


def log(tmp_path: Path, *looks: Look) -> Path:
    file = tmp_path / "gate.registration.json.looks.jsonl"
    for look in looks:
        with file.open("a") as stream:
            stream.write(next_look(read_looks(file, "rec"), look))
    return file


def test_looks_are_chained(tmp_path: Path) -> None:
    found = read_looks(log(tmp_path, FIRST, SECOND), "rec")
    assert [look.n for look in found] == [100, 200]
    assert found[0].previous == ""
    assert len(found[1].previous) == 64


def test_the_same_data_is_no_new_look(tmp_path: Path) -> None:
    file = log(tmp_path, FIRST, FIRST)
    assert len(read_looks(file, "rec")) == 1
    assert others(read_looks(file, "rec"), "d1") == ""
    assert others(read_looks(file, "rec"), "d2") == "1 earlier look at other data, the last at n = 100 (INCONCLUSIVE)"


@pytest.mark.parametrize("fault", ["edit", "remove", "other", "damage"])
def test_a_changed_log_is_refused(tmp_path: Path, fault: str) -> None:
    file = log(tmp_path, FIRST, SECOND)
    lines = file.read_text().splitlines()
    if fault == "edit":
        lines[0] = json.dumps(json.loads(lines[0]) | {"n": 5000})
    elif fault == "remove":
        lines = lines[1:]
    elif fault == "damage":
        lines[1] = lines[1][:20]
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"line [12]"):
        read_looks(file, "another" if fault == "other" else "rec")


def test_no_log_is_no_look(tmp_path: Path) -> None:
    assert read_looks(place_of(tmp_path / "gate.registration.json"), "rec") == ()


def test_data_are_hashed_whatever_their_order() -> None:
    assert data_hash(["b", "a", "a"]) == data_hash(["a", "b"])
    assert data_hash(["a"]) != data_hash(["b"])
