"""Traces from files: AgentDojo's two meanings of security, tau-bench, and what is refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.errors import InputError
from ridgeline.gate.traces.trace import by_pair, read_traces, text_of

CALL = {"role": "assistant", "content": "Next.", "tool_calls": [{"function": "read", "args": {}}]}


def run(task: str, **more: Any) -> dict[str, Any]:
    return {"suite_name": "s", "user_task_id": task, "messages": [CALL], "utility": True, "error": None, **more}


def written(folder: Path, *rows: Any, name: str = "runs.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_security_is_read_for_injected_runs_that_did_not_fail(tmp_path: Path) -> None:
    found = read_traces(written(
        tmp_path,
        run("a", security=True),  # constant True without an injection
        run("b", security=True, injection_task_id="i"),
        run("c", security=False, injection_task_id="i"),
        run("d", security=True, utility=False, injection_task_id="i", error="context length"),
    ))  # fmt: skip
    assert [row.executed for row in found.rows] == [None, True, False, None]
    assert [row.injected for row in found.rows] == [False, True, True, True]
    assert [row.utility for row in found.rows] == [1.0, 1.0, 1.0, None]
    assert found.rows[3].failed == "context length"


def test_a_folder_of_runs_and_a_damaged_file(tmp_path: Path) -> None:
    for task in ("a", "b"):
        (tmp_path / f"{task}.json").write_text(json.dumps(run(task)))
    (tmp_path / "c.json").write_text("not json")
    found = read_traces(tmp_path)
    assert [row.pair for row in found.rows] == ["s/a", "s/b"]
    assert [loss.count for loss in found.lost] == [1]


def test_tau_bench_has_gold_actions(tmp_path: Path) -> None:
    asked = {"actions": [{"name": "book", "kwargs": {"a": 1}}]}
    item = {"task_id": 3, "trial": 1, "reward": 1.0, "info": {"task": asked}, "traj": [CALL]}
    path = tmp_path / "traj.json.gz"
    path.write_bytes(gzip.compress(json.dumps([item, "x"]).encode()))
    found = read_traces(path)
    assert found.rows[0].key == "3/1"
    assert found.rows[0].gold is not None
    assert found.rows[0].gold[0].name == "book"
    assert found.rows[0].utility == 1.0
    assert [loss.what for loss in found.lost] == ["records without messages"]


def test_variants_of_a_pair_stay_together(tmp_path: Path) -> None:
    rows = [
        {"id": "x", "pair_id": p, "rationale_variant": v, "messages": [CALL]} for v in ("none", "benign") for p in "ab"
    ]
    found = read_traces(written(tmp_path, *rows))
    assert [[row.variant for row in group] for group in by_pair(found.rows)] == [["none", "benign"]] * 2


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([run("a"), run("a")], "twice"),
        ([{"id": "x"}], "record with messages"),
        ([run("a", pipeline_name="p"), run("b", pipeline_name="q")], "p, q"),
        ([run("a", utility=[1, 2])], "utility"),
        ([run("a", security="maybe", injection_task_id="i")], "security"),
    ],
)
def test_bad_files_are_refused_in_one_sentence(tmp_path: Path, rows: list[Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_traces(written(tmp_path, *rows))


def test_no_such_file_and_no_json(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_traces(tmp_path / "none")
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(InputError, match="JSON"):
        read_traces(tmp_path / "a.txt")


def test_text_of_blocks() -> None:
    assert text_of({"content": [{"type": "text", "content": "a"}, {"type": "text", "text": "b"}]}) == "a\nb"
    assert text_of({"content": None}) == ""
