"""RULER, openai/evals, promptfoo, RouterArena, llama.cpp: what is particular to each."""

import json
from pathlib import Path

import pytest
from tests.gate.evidence.logs import lines, llamacpp, openai_evals, promptfoo, promptfoo_row, ruler

from ridgeline.core.errors import InputError
from ridgeline.gate.evidence.reader import Wanted, read
from ridgeline.gate.evidence.readers.llamacpp import aggregate


def test_ruler_needs_every_needle_and_shows_the_share(tmp_path: Path) -> None:
    found = read(ruler(tmp_path, [1.0, 0.0]))
    assert found.scores["found"].tolist() == [1.0, 0.0]
    assert found.scores["found_share"].tolist() == [1.0, 0.5]
    assert found.labels["length"].tolist() == ["4096", "4096"]


def test_ruler_without_a_prediction_is_a_failed_row(tmp_path: Path) -> None:
    rows = [{"index": 0, "input": "a 1", "outputs": ["1"], "pred": "1"}, {"index": 1, "input": "b 2", "outputs": ["2"]}]
    assert read(lines(tmp_path / "niah.jsonl", rows)).errors.tolist() == [False, True]


def test_openai_evals_without_a_final_report_did_not_finish(tmp_path: Path) -> None:
    path = openai_evals(tmp_path, [1.0, 0.0])
    text = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(text[:-1]), encoding="utf-8")
    found = read(path)
    assert found.settings["model"] == "['m']"
    assert "did not finish" in found.lost[0].what


def test_openai_evals_keeps_an_error_without_a_match(tmp_path: Path) -> None:
    path = openai_evals(tmp_path, [1.0])
    error = {"run_id": "r", "event_id": 9, "sample_id": "e.7", "type": "error", "data": {"message": "timeout"}}
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{json.dumps(error)}", encoding="utf-8")
    assert read(path).errors.tolist() == [False, True]


def test_promptfoo_of_two_providers_is_two_runs(tmp_path: Path) -> None:
    rows = [promptfoo_row(0, 1.0), promptfoo_row(0, 0.0, provider={"id": "other"})]
    path = lines(tmp_path / "r.jsonl", rows)
    with pytest.raises(InputError, match="one provider"):
        read(path)
    assert read(path, Wanted(filter="other")).scores["score"].tolist() == [0.0]


def test_promptfoo_tells_an_error_from_a_wrong_answer(tmp_path: Path) -> None:
    rows = [
        promptfoo_row(0, 0.0, error="Expected output to contain", failureReason=1),
        promptfoo_row(1, 0.0, error="rate limit", failureReason=2),
        promptfoo_row(2, 0.0, error="rate limit", response=None),
    ]
    assert read(lines(tmp_path / "r.jsonl", rows)).errors.tolist() == [False, True, True]


def test_promptfoo_repeats_share_a_cluster(tmp_path: Path) -> None:
    found = read(lines(tmp_path / "r.jsonl", [promptfoo_row(0, 1.0), promptfoo_row(0, 0.0)]))
    assert len(set(found.keys.tolist())) == 2
    assert len(set(found.labels["cluster"].tolist())) == 1


def test_promptfoo_document(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in promptfoo(tmp_path, [1.0, 0.0]).read_text(encoding="utf-8").splitlines()]
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"evalId": "e", "results": {"version": 3, "results": rows}}, indent=1), encoding="utf-8")
    assert read(path).scores["score"].tolist() == [1.0, 0.0]


def test_routerarena_python_repr_and_negative_scores_are_kept_and_listed(tmp_path: Path) -> None:
    rows = [
        {"global_index": f"WMT19_{n}", "evaluation_result": str({"score": value, "ground_truth": None})}
        for n, value in enumerate([0.5, -0.033, 1.0])
    ]
    found = read(lines(tmp_path / "m.jsonl", rows))
    assert found.scores["score"].tolist() == [0.5, -0.033, 1.0]
    assert [(loss.count, loss.where) for loss in found.lost] == [(1, "m.jsonl, first WMT19_1")]
    assert set(found.labels["dataset"].tolist()) == {"WMT19"}


def test_routerarena_what_is_no_python_value_is_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / "m.jsonl", [{"global_index": "A_1", "evaluation_result": "{'score': __import__('os')}"}])
    with pytest.raises(InputError, match="line 1"):
        read(path)


def test_routerarena_a_question_without_an_answer_failed(tmp_path: Path) -> None:
    rows = [{"global_index": f"A_{n}", "evaluation_result": v, "success": v is not None}
            for n, v in enumerate(["{'score': 1}", None])]  # fmt: skip
    assert read(lines(tmp_path / "m.jsonl", rows)).errors.tolist() == [False, True]


def test_llamacpp_block_as_an_aggregate(tmp_path: Path) -> None:
    found = aggregate(llamacpp(tmp_path, []))
    assert found.ln_ppl_ratio == 0.004
    assert found.se == 0.0005
    assert found.mean_kld == 0.0055
    assert found.quantiles == {"100%": 1.5, "99.9%": 0.2, "50%": 0.002}
    assert found.same_top == pytest.approx(0.965)
    assert found.lost == ()


def test_llamacpp_nan_is_a_broken_run_and_a_short_block_says_what_is_missing(tmp_path: Path) -> None:
    path = llamacpp(tmp_path, [])
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("0.004000", "nan"), encoding="utf-8")
    with pytest.raises(InputError, match="finite figure"):
        aggregate(path)
    path.write_text(text[: text.index("====== KL")], encoding="utf-8")
    assert len(aggregate(path).lost) == 3
