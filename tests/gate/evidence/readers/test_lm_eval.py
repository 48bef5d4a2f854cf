"""lm-evaluation-harness logs and the traps that users met."""

from pathlib import Path

import numpy as np
import pytest
from tests.gate.evidence.logs import TIME, choice_row, lines, lm_eval, lm_eval_row, results

from ridgeline.core.errors import InputError
from ridgeline.gate.evidence.pairing import pair
from ridgeline.gate.evidence.reader import Wanted, read

LATER = "2026-02-02T03-04-05.678901"


def test_two_filters_per_document_are_refused_and_listed(tmp_path: Path) -> None:
    rows = [lm_eval_row(n, v, filter_=f) for n in range(3) for f, v in (("strict", 0.0), ("flexible", 1.0))]
    path = lines(tmp_path / f"samples_task_{TIME}.jsonl", rows)
    with pytest.raises(InputError, match="one filter") as caught:
        read(path)
    assert "flexible" in caught.value.hint
    assert "strict" in caught.value.hint
    assert read(path, Wanted(filter="strict")).scores["exact_match"].tolist() == [0.0] * 3
    assert read(path, Wanted({"filter": "flexible"})).scores["exact_match"].tolist() == [1.0] * 3
    with pytest.raises(InputError, match="filter of these files"):
        read(path, Wanted(filter="strct"))


def test_the_newest_file_of_each_task_and_a_results_file_for_its_own_time(tmp_path: Path) -> None:
    lm_eval(tmp_path, [0.0, 0.0])
    lines(tmp_path / f"samples_other_{TIME}.jsonl", [lm_eval_row(9, 1.0)])
    lines(tmp_path / f"samples_task_{LATER}.jsonl", [lm_eval_row(n, 1.0) for n in range(2)])
    results(tmp_path / f"results_{LATER}.json", 2)
    newest = read(tmp_path)
    assert newest.scores["exact_match"].tolist() == [1.0, 1.0, 1.0]
    assert any("older" in loss.what and loss.count == 1 for loss in newest.lost)
    assert set(newest.labels["task"].tolist()) == {"task", "other"}
    assert read(tmp_path / f"results_{TIME}.json").scores["exact_match"].tolist() == [1.0, 0.0, 0.0]


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    for model in ("a", "b"):
        (tmp_path / model).mkdir()
        lm_eval(tmp_path / model, [1.0])
    with pytest.raises(InputError, match="one run") as caught:
        read(tmp_path)
    assert caught.value.hint == "a, b"


def test_settings_of_the_results_file(tmp_path: Path) -> None:
    found = read(lm_eval(tmp_path, [1.0, 0.0])).settings
    assert found["n_shot"] == "5"
    assert found["chat_template_sha"] == "c0ffee"
    assert found["samples_effective"] == "2"
    assert found["random_seed"] == "0"
    assert found["limit"] == "none"


def test_settings_that_differ_between_tasks_carry_the_task(tmp_path: Path) -> None:
    lm_eval(tmp_path, [1.0])
    lines(tmp_path / f"samples_other_{TIME}.jsonl", [lm_eval_row(9, 1.0)])
    found = read(tmp_path)
    assert found.settings["n_shot of task"] == "5"
    assert found.settings["n_shot of other"] == "none"
    (tmp_path / "one").mkdir()
    one = read(lm_eval(tmp_path / "one", [1.0]))
    assert {item.name for item in pair(one, found).differences} >= {"n_shot of other"}


def test_documents_that_only_the_results_file_counts_are_said(tmp_path: Path) -> None:
    lm_eval(tmp_path, [1.0, 0.0])
    results(tmp_path / f"results_{TIME}.json", 100)
    assert [loss.count for loss in read(tmp_path).lost] == [98]


def test_no_results_file_is_said(tmp_path: Path) -> None:
    path = lines(tmp_path / f"samples_task_{TIME}.jsonl", [lm_eval_row(0, 1.0)])
    found = read(path)
    assert not found.settings
    assert "results file" in found.lost[0].what


def test_wrong_doc_ids_of_unsorted_samples_do_not_matter(tmp_path: Path) -> None:
    """Issue 4089: the id of another document is logged; the hashes are right."""
    right = [1.0, 0.0, 1.0, 0.0]
    base = read(lines(tmp_path / f"samples_a_{TIME}.jsonl", [lm_eval_row(n, v) for n, v in enumerate(right)]))
    rows = [lm_eval_row(n, v) | {"doc_id": 3 - n} for n, v in enumerate(right)]
    (tmp_path / "b").mkdir()
    cand = read(lines(tmp_path / "b" / f"samples_a_{TIME}.jsonl", rows[::-1]))
    left, other, _ = pair(base, cand).scores("exact_match")
    assert np.array_equal(left, other)


def test_repeats_of_a_document_are_told_by_occurrence_and_share_a_document(tmp_path: Path) -> None:
    path = lines(tmp_path / f"samples_task_{TIME}.jsonl", [lm_eval_row(0, 1.0), lm_eval_row(0, 0.0)])
    found = read(path)
    assert len(set(found.keys.tolist())) == 2
    assert len(set(found.labels["document"].tolist())) == 1


def test_multiple_choice_gets_a_log_loss_and_a_confidence(tmp_path: Path) -> None:
    rows = [choice_row(n, [-1.0, -2.0, -3.0], target=str(n % 3)) for n in range(6)]
    found = read(lines(tmp_path / f"samples_task_{TIME}.jsonl", rows))
    assert set(found.scores) == {"acc", "log_loss", "confidence", "log_loss_norm", "confidence_norm"}
    assert found.scores["log_loss"][1] == pytest.approx(found.scores["log_loss"][0] + 1.0)


def test_nan_logits_are_refused_with_their_document(tmp_path: Path) -> None:
    rows = [choice_row(0, [-1.0, -2.0]), choice_row(7, [float("nan"), -2.0])]
    path = lines(tmp_path / f"samples_task_{TIME}.jsonl", rows)
    with pytest.raises(InputError, match="doc_id 7"):
        read(path)


def test_nan_scores_are_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / f"samples_task_{TIME}.jsonl", [lm_eval_row(0, float("nan"))])
    with pytest.raises(InputError, match="finite score"):
        read(path)


def test_a_metric_that_is_no_single_number_is_said_and_refused_when_asked_for(tmp_path: Path) -> None:
    row = lm_eval_row(0, 1.0) | {"metrics": ["exact_match", "f1"], "f1": [1, 0]}
    path = lines(tmp_path / f"samples_task_{TIME}.jsonl", [row])
    found = read(path)
    assert list(found.scores) == ["exact_match"]
    assert any("f1" in loss.what for loss in found.lost)
    with pytest.raises(InputError, match="one score"):
        read(path, Wanted(metrics=("f1",)))


def test_values_in_a_list_of_one_and_rows_without_a_metrics_list(tmp_path: Path) -> None:
    row = {k: v for k, v in lm_eval_row(0, 1.0).items() if k != "metrics"} | {"exact_match": [1.0]}
    path = lines(tmp_path / f"samples_task_{TIME}.jsonl", [row])
    assert read(path).scores["exact_match"].tolist() == [1.0]


def test_one_metric_by_another_name(tmp_path: Path) -> None:
    found = read(lm_eval(tmp_path, [1.0, 0.0]), Wanted({"score": "exact_match", "slice": "subject"}, ("score",)))
    assert found.scores["score"].tolist() == [1.0, 0.0]
    assert found.labels["slice"].tolist() == ["a", "b"]


@pytest.mark.data
def test_public_baseline_against_candidate(data_dir: Path) -> None:
    folder = data_dir / "gates" / "lm_eval_pyfade"
    base = read(folder / "results_2025-09-09T13-31-53.431753.json")
    cand = read(folder / "results_2025-09-09T13-42-42.857006.json")
    pairs = pair(base, cand)
    left, right, _ = pairs.scores("exact_match")
    assert left.tolist() == [1.0, 0.0, 0.0]
    assert right.tolist() == [1.0, 0.0, 1.0]
    assert pairs.prompts_differ == 0
    assert pairs.identical is False
    assert pairs.baseline.settings["model_name"] != pairs.candidate.settings["model_name"]
    assert [loss.count for loss in base.lost] == [97]


@pytest.mark.data
def test_public_subjects(data_dir: Path) -> None:
    folder = data_dir / "gates" / "lm_eval_pyfade" / "eval_mmlu_pro_plus"
    runs = [read(folder / f"results_2025-10-14T{time}.json") for time in ("14-44-39.372006", "15-11-56.507865")]
    pairs = pair(*runs)
    assert len(pairs) == 9
    assert set(pairs.baseline.labels["task"].tolist()) == {
        f"mmlu_pro_plus_{s}" for s in ("chemistry", "health", "psychology")
    }
    assert pairs.unmatched == 0
    assert pairs.prompts_differ == 0


@pytest.mark.data
def test_a_public_log_at_the_boundary(data_dir: Path) -> None:
    """All wrong: the harness logs a standard error of 0.0, which says that nothing is uncertain."""
    found = read(data_dir / "gates" / "lm_eval_olot")
    assert found.scores["exact_match"].tolist() == [0.0] * 3
    assert found.settings["samples_effective"] == "1319"
    assert [loss.count for loss in found.lost] == [1316]


def test_a_metric_of_which_the_harness_says_that_less_is_better(tmp_path: Path) -> None:
    row = lm_eval_row(0, 1.0) | {"metrics": ["toxicity"], "toxicity": 0.25}
    path = lines(tmp_path / f"samples_task_{TIME}.jsonl", [row])
    results(tmp_path / f"results_{TIME}.json", 1, higher_is_better={"task": {"toxicity": False}})
    assert read(path).lower_is_better("toxicity")
