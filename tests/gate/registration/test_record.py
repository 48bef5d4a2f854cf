"""A record is written once: what was changed since is found and named."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.registration.record import (
    Data,
    Record,
    Required,
    Seen,
    changes,
    dumps,
    hash_of_ids,
    other_data,
    place_of,
    read_record,
    seen_before,
    signed,
)

WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
PLAN = build(Plan, {"gate": "precision", "margins": {"code": "5%"}, "metrics": ["accuracy"], "variance": 0.04})
RECORD = Record(
    PLAN,
    WHEN,
    "1.2.3",
    (Data("a.csv", "file", "aa" * 32), Data("b.csv", "ids", "bb" * 32, 10)),
    (Required("overall", 0.01, 0.04, "assumed", 2474, 4200),),
)


def written(tmp_path: Path, **changed: Any) -> Path:
    """A record with parts that were edited: ``plan__margin`` is the key margin of the plan."""
    document = json.loads(dumps(RECORD))
    for name, value in changed.items():
        place, *path = name.split("__")
        target = document
        for step in (place, *path)[:-1]:
            target = target[int(step) if step.isdigit() else step]
        target[path[-1] if path else place] = value
    file = tmp_path / "gate.registration.json"
    file.write_text(json.dumps(document))
    return file


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read_record(written(tmp_path)) == replace(RECORD, sha256=signed(RECORD))


def test_the_hash_is_of_the_content() -> None:
    assert signed(RECORD) == signed(replace(RECORD))
    assert signed(replace(RECORD, registered=WHEN + timedelta(seconds=1))) != signed(RECORD)
    assert signed(replace(RECORD, registered=WHEN.astimezone(timezone(timedelta(hours=5))))) == signed(RECORD)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"plan__margin": 0.02}, "changes in plan.margin"),
        ({"plan__margins": {}}, "changes in plan.margins"),
        ({"plan__alpha": 0.2}, "changes in plan.alpha"),
        ({"plan__extra": 1}, "changes in plan.extra"),
        ({"registered": "2020-01-01T00:00:00Z"}, "changes in registered"),
        ({"data__0__sha256": "cc" * 32}, r"changes in data\[0\]"),
        ({"data": []}, r"changes in data\[0\], data\[1\]"),
        ({"required__0__n": 3}, r"changes in required\[0\]"),
        ({"sha256": "0" * 64}, "other hashes than its own"),
        ({"parts": None}, "changes in schema"),
    ],
)
def test_tampering_is_found_and_named(tmp_path: Path, changed: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        read_record(written(tmp_path, **changed))


def test_a_part_and_its_hash_changed_together(tmp_path: Path) -> None:
    document = json.loads(dumps(RECORD))
    other = json.loads(dumps(replace(RECORD, plan=PLAN.model_copy(update={"margin": 0.02}))))
    file = tmp_path / "gate.registration.json"
    file.write_text(json.dumps({**other, "sha256": document["sha256"]}))
    with pytest.raises(InputError, match="other hashes than its own"):
        read_record(file)


@pytest.mark.parametrize("text", ["[]", "{}", '{"plan": {}}', "{", '{"plan": {}, "sha256": 1, "schema": 2}'])
def test_other_documents_are_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"x\.json"):
        read_record(file)


def test_changes_name_both_values() -> None:
    used = PLAN.model_copy(update={"margin": 0.02, "note": "another", "columns": {"id": "x"}})
    assert [(item.key, item.registered, item.used) for item in changes(RECORD, used)] == [("margin", "0.01", "0.02")]
    assert changes(RECORD, PLAN) == ()


def test_ids_are_hashed_whatever_their_order() -> None:
    assert hash_of_ids(["a", "b", "c"]) == hash_of_ids(["c", "a", "b"])
    assert hash_of_ids(["a", "b"]) != hash_of_ids(["ab"])
    assert hash_of_ids(["a", "a"]) != hash_of_ids(["a"])


FILE = replace(RECORD, data=RECORD.data[:1])
IDS = replace(RECORD, data=RECORD.data[1:])


@pytest.mark.parametrize(
    ("record", "seen", "said"),
    [
        (FILE, Seen((("x/a.csv", "aa" * 32, None), ("c.csv", "11", None))), []),
        (FILE, Seen((("x/a.csv", "22" * 32, None),)), ["a.csv has changed since"]),
        (FILE, Seen((("c.csv", "22" * 32, None),)), ["a.csv was not read"]),
        (IDS, Seen((), ("bb" * 32, "bb" * 32)), []),
        (IDS, Seen((), ("bb" * 32, "cc" * 32)), ["1 run of 2 with other examples than those registered"]),
        (IDS, Seen(()), ["the ids of the runs are not known"]),
        (replace(RECORD, data=()), Seen((("c.csv", "1", None),)), []),
    ],
)
def test_other_data(record: Record, seen: Seen, said: list[str]) -> None:
    assert other_data(record, seen) == said


def test_results_that_were_there_before_the_plan() -> None:
    before, after = WHEN - timedelta(days=1), WHEN + timedelta(days=1)
    old, new = ("old.csv", "1", before), ("new.csv", "2", after)
    assert seen_before(RECORD, Seen((old, new))) == ""
    assert "such as old.csv" in seen_before(RECORD, Seen((old,)))
    assert seen_before(RECORD, Seen((("moved.csv", "3", None),))) == ""
    assert "registered with the plan" in seen_before(RECORD, Seen((("a.csv", "aa" * 32, after),)))


def test_the_record_stands_beside_the_spec() -> None:
    assert place_of(Path("x/gate.toml")) == Path("x/gate.registration.json")
