"""Inspect logs: archives, documents, epochs, errors, fields and runs that did not finish."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.gate.evidence.logs import inspect_, inspect_header, inspect_sample, inspect_zip
from tests.gate.evidence.test_files import archive

from ridgeline.core.errors import InputError, MissingExtraError
from ridgeline.gate.evidence.pairing import pair
from ridgeline.gate.evidence.reader import Wanted, read


def written(folder: Path, samples: list[dict[str, Any]], **more: Any) -> Path:
    path = folder / "log.json"
    path.write_text(json.dumps(inspect_header(len(samples), **more) | {"samples": samples}), encoding="utf-8")
    return path


@pytest.mark.parametrize(("value", "number"), [("C", 1.0), ("I", 0.0), ("P", 0.5), ("N", 0.0), (True, 1.0), (0.3, 0.3)])
def test_values_of_a_scorer(value: Any, number: float, tmp_path: Path) -> None:
    assert read(written(tmp_path, [inspect_sample(0, value)])).scores["match"].tolist() == [number]


def test_epochs_are_a_cluster_and_no_mean(tmp_path: Path) -> None:
    samples = [inspect_sample(n, "CI"[e % 2], epoch=e) for n in range(2) for e in (1, 2, 3)]
    found = read(inspect_zip(tmp_path / "log.eval", samples, inspect_header(2)))
    assert len(found) == 6
    assert set(found.labels["cluster"].tolist()) == {"0", "1"}
    assert len(set(found.keys.tolist())) == 6


def test_an_archive_in_zstd(tmp_path: Path) -> None:
    files = {
        "header.json": inspect_header(2),
        **{f"samples/{n}_epoch_1.json": inspect_sample(n, "C") for n in range(2)},
    }
    path = tmp_path / "log.eval"
    path.write_bytes(archive({name: json.dumps(value).encode() for name, value in files.items()}, 93))
    assert read(path).scores["match"].tolist() == [1.0, 1.0]


def test_zstd_without_the_decoder_says_which_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(archive({"header.json": json.dumps(inspect_header(0)).encode()}, 93))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match="zstandard"):
        read(path)


def test_an_unfinished_run_is_read_as_far_as_it_goes_and_said(tmp_path: Path) -> None:
    whole = inspect_zip(tmp_path / "log.eval", [inspect_sample(0, "C")])
    assert [loss.what for loss in read(whole).lost] == ["run that is not finished: status started"]
    short = inspect_zip(tmp_path / "short.eval", [inspect_sample(0, "C")], inspect_header(4, status="error"))
    assert [loss.count for loss in read(short).lost] == [1, 3]


def test_error_samples_stay_as_errors(tmp_path: Path) -> None:
    broken = inspect_sample(1, "C", error={"message": "timeout"}) | {"scores": {}}
    found = read(inspect_zip(tmp_path / "log.eval", [inspect_sample(0, "C"), broken], inspect_header(2)))
    assert found.errors.tolist() == [False, True]
    pairs = pair(found, found)
    assert pairs.scores("match", "wrong")[0].tolist() == [1.0, 0.0]
    assert pairs.scores("match", "drop")[0].tolist() == [1.0]


def test_a_dict_score_needs_its_field(tmp_path: Path) -> None:
    path = written(tmp_path, [inspect_sample(n, {"form": 1.0, "content": n / 2}) for n in range(2)])
    with pytest.raises(InputError, match="several fields") as caught:
        read(path)
    assert "match.content" in caught.value.hint
    assert read(path, Wanted(metrics=("match.content",))).scores["match.content"].tolist() == [0.0, 0.5]


def test_a_list_score_needs_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, [inspect_sample(0, [0.25, 0.75])])
    assert read(path, Wanted({"score": "match.1"}, ("score",))).scores["score"].tolist() == [0.75]


def test_a_scorer_with_fields_beside_a_plain_one_is_said(tmp_path: Path) -> None:
    sample = inspect_sample(0, "C")
    sample["scores"]["judge"] = {"value": {"a": 1, "b": 0}}
    found = read(written(tmp_path, [sample]))
    assert list(found.scores) == ["match"]
    assert "judge (a, b)" in found.lost[0].what


def test_text_that_is_no_value_is_refused(tmp_path: Path) -> None:
    """A scorer that wrote "nan" poisoned the accuracy of its users."""
    with pytest.raises(InputError, match="sample 1"):
        read(written(tmp_path, [inspect_sample(0, "C"), inspect_sample(1, "nan")]))


def test_message_identifiers_do_not_tell_examples_apart(tmp_path: Path) -> None:
    def sample(name: str) -> dict[str, Any]:
        return inspect_sample(0, "C") | {"input": [{"id": name, "role": "user", "content": "q"}]}

    runs = []
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        runs.append(read(written(tmp_path / name, [sample(name)])))
    assert len(pair(*runs)) == 1


def test_attachments_are_put_back(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    inner = read(
        written(tmp_path, [inspect_sample(0, "C") | {"input": "attachment://h", "attachments": {"h": "long"}}])
    )
    plain = read(written(tmp_path / "b", [inspect_sample(0, "C") | {"input": "long"}]))
    assert inner.keys.tolist() == plain.keys.tolist()


def test_ids_may_be_numbers_or_text(tmp_path: Path) -> None:
    found = read(written(tmp_path, [inspect_sample(0, "C"), inspect_sample(1, "I") | {"id": "one"}]))
    assert found.labels["cluster"].tolist() == ["0", "one"]


def test_version_3_with_a_message_pool(tmp_path: Path) -> None:
    sample = inspect_sample(0, "C") | {"message_pool": [{"role": "user", "content": "q0"}]}
    assert len(read(written(tmp_path, [sample], version=3))) == 1


def test_prompts_that_differ_are_seen(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    base = read(inspect_(tmp_path, [1.0, 0.0]))
    other = [inspect_sample(n, "C") for n in range(2)]
    other[0]["messages"][0]["content"] = "another template"
    assert pair(base, read(written(tmp_path / "b", other))).prompts_differ == 1


SCORED = {
    "2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval": (10, "match"),
    "2025-05-12T20-28-26-04-00_security-guide.json": (3, "model_graded_fact"),
    "log_formats.eval": (1, "match"),
    "log_formats.json": (1, "match"),
    "log_message_deduplication.eval": (1, "closeness_log"),
    "log_streaming.eval": (4, "match"),
    "mmlu-summary-choices.eval": (1, "choice"),
}
UNSCORED = {"2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval": 10, "log_tool_call_error.json": 1}


@pytest.mark.data
def test_all_public_logs(data_dir: Path) -> None:
    folder = data_dir / "gates" / "inspect_logs"
    assert {p.name for p in folder.iterdir()} - {"LICENSE"} == {*SCORED, *UNSCORED}
    for name, (n, metric) in SCORED.items():
        found = read(folder / name)
        assert (len(found), list(found.scores), found.lost) == (n, [metric], ()), name
    for name, n in UNSCORED.items():
        found = read(folder / name)
        assert (len(found), dict(found.scores)) == (n, {}), name
        assert "never scored" in found.lost[-1].what


@pytest.mark.data
def test_an_unscored_public_log_pairs_with_nothing(data_dir: Path) -> None:
    folder = data_dir / "gates" / "inspect_logs"
    unscored, scored = read(folder / next(iter(UNSCORED))), read(folder / next(iter(SCORED)))
    with pytest.raises(InputError, match="metric in both runs"):
        pair(unscored, scored)


@pytest.mark.data
def test_public_epochs_are_two_clusters(data_dir: Path) -> None:
    found = read(data_dir / "gates" / "inspect_logs" / "log_streaming.eval")
    assert sorted(found.labels["cluster"].tolist()) == ["1", "1", "2", "2"]
