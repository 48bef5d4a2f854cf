"""AgentDojo runs: what security means, and for which."""

import json
from pathlib import Path

import pytest
from tests.gate.evidence.logs import dojo_run, lines

from ridgeline.core.errors import InputError
from ridgeline.gate.evidence.pairing import pair
from ridgeline.gate.evidence.reader import Wanted, read


def test_error_rows_with_security_true_are_never_averaged(tmp_path: Path) -> None:
    rows = [dojo_run(0, True), dojo_run(1, False, error="context length", security=True)]
    found = read(lines(tmp_path / "runs.jsonl", rows))
    assert found.errors.tolist() == [False, True]
    pairs = pair(found, found)
    with pytest.raises(InputError, match="failed in either run"):
        pairs.scores("resisted", "wrong")
    assert pairs.scores("resisted", "drop")[0].tolist() == [1.0]
    renamed = read(tmp_path / "runs.jsonl", Wanted({"score": "resisted"}, ("score",)))
    with pytest.raises(InputError, match="failed in either run"):
        pair(renamed, renamed).scores("score", "wrong")
    assert pairs.scores("utility", "wrong")[0].tolist() == [1.0, 0.0]


def test_security_of_both_kinds_is_never_one_metric(tmp_path: Path) -> None:
    path = lines(tmp_path / "runs.jsonl", [dojo_run(0, True), dojo_run(1, True, injection=None, security=True)])
    found = read(path)
    assert list(found.scores) == ["utility"]
    assert "security is not read" in found.lost[0].what
    with pytest.raises(InputError, match="injected runs alone"):
        read(path, Wanted(metrics=("resisted",)))
    assert read(path, Wanted(filter="injected")).scores["resisted"].tolist() == [1.0]
    assert list(read(path, Wanted(filter="benign")).scores) == ["utility"]


def test_resisted_is_the_injection_not_executed(tmp_path: Path) -> None:
    rows = [dojo_run(0, True, security=True), dojo_run(1, True, security=False)]
    assert read(lines(tmp_path / "runs.jsonl", rows)).scores["resisted"].tolist() == [0.0, 1.0]


def test_a_folder_of_runs_one_of_them_damaged(tmp_path: Path) -> None:
    for number in range(3):
        path = tmp_path / "m" / "mail" / f"user_task_{number}" / "direct" / "injection_0.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(dojo_run(number, True)), encoding="utf-8")
    path.write_text("", encoding="utf-8")
    found = read(tmp_path)
    assert len(found) == 2
    assert found.labels["cluster"].tolist() == ["mail/user_task_0", "mail/user_task_1"]
    assert [loss.count for loss in found.lost] == [1]


def test_two_pipelines_are_two_runs(tmp_path: Path) -> None:
    path = lines(tmp_path / "runs.jsonl", [dojo_run(0, True), dojo_run(0, False) | {"pipeline_name": "other"}])
    with pytest.raises(InputError, match="one pipeline"):
        read(path)
    assert read(path, Wanted(filter="other")).scores["utility"].tolist() == [0.0]


@pytest.mark.data
def test_public_traces(data_dir: Path) -> None:
    found = read(data_dir / "gates" / "agentdojo_ground_truth_traces.jsonl.gz")
    assert len(found) == 132
    assert not found.scores
    assert found.labels["malicious"].tolist().count("True") == 35


@pytest.mark.data
def test_public_rationale_pairs_differ_in_nothing_that_is_done(data_dir: Path) -> None:
    found = read(data_dir / "gates" / "agentdojo_rationale_pairs.jsonl.gz")
    assert len(found) == 396
    assert found.outputs is not None
    by_trace: dict[tuple[str, ...], set[str]] = {}
    names = ("suite", "user_task", "injection")
    for row, said in enumerate(found.outputs.tolist()):
        by_trace.setdefault(tuple(found.labels[name][row] for name in names), set()).add(said)
    assert len(by_trace) == 132
    assert {len(hashes) for hashes in by_trace.values()} == {1}
