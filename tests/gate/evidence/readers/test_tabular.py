"""Tables: columns by role, and the values that people's files hold."""

import json
from pathlib import Path

import polars as pl
import pytest
from tests.gate.evidence.logs import lines, zipped

from ridgeline.core.errors import InputError
from ridgeline.gate.evidence.reader import Wanted, read


def csv(folder: Path, text: str) -> Path:
    path = folder / "t.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_are_never_paired_by_their_order(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which example a row is") as caught:
        read(csv(tmp_path, "score\n1\n0\n"))
    assert "never paired by their order" in caught.value.hint


def test_several_columns_as_id_and_a_declared_slice_under_both_names(tmp_path: Path) -> None:
    path = csv(tmp_path, "topic,row,score\na,0,1\na,1,0\nb,0,1\n")
    found = read(path, Wanted({"id": "topic+row", "slice": "topic"}))
    assert found.keys.tolist() == ["a|0", "a|1", "b|0"]
    assert found.labels["slice"].tolist() == found.labels["topic"].tolist() == ["a", "a", "b"]
    assert list(found.scores) == ["score"]


@pytest.mark.parametrize("cell", ["NaN", "inf", "-inf", "nan"])
def test_nan_scores_are_refused_with_their_row(cell: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"score, row 2"):
        read(csv(tmp_path, f"id,score\na,1\nb,{cell}\n"))


def test_python_repr_values_and_mixed_types(tmp_path: Path) -> None:
    path = csv(tmp_path, 'id,score\na,"[0.5]"\nb,True\nc,C\nd,-0.033\n')
    assert read(path).scores["score"].tolist() == [0.5, 1.0, 1.0, -0.033]
    mixed = lines(tmp_path / "t.jsonl", [{"id": 1, "score": 1}, {"id": 2, "score": "0.5"}, {"id": 3, "score": True}])
    assert read(mixed).scores["score"].tolist() == [1.0, 0.5, 1.0]


def test_a_score_that_is_no_number_is_refused_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="row 2"):
        read(csv(tmp_path, "id,score\na,1\nb,maybe\n"))


def test_duplicate_headers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="different names"):
        read(csv(tmp_path, "id,score,score\na,1,0\n"))


def test_an_id_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="id in every row"):
        read(csv(tmp_path, "id,score\na,1\n,0\n"))


def test_gzip_whole_and_cut_off(tmp_path: Path) -> None:
    rows = "".join(f"{n * 7919 % 1000003},{n % 2}\n" for n in range(3000))
    path = zipped(csv(tmp_path, "id,score\n" + rows))
    assert len(read(path)) == 3000
    path.write_bytes(path.read_bytes()[:8000])
    found = read(path)
    assert 0 < len(found) < 3000
    assert any("gzip" in loss.what for loss in found.lost)


def test_a_last_line_that_is_cut_off_is_left_out_and_said(tmp_path: Path) -> None:
    found = read(csv(tmp_path, "id,slice,score\na,x,1\nb,x,0\nc,"))
    assert len(found) == 2
    assert [loss.what for loss in found.lost] == ["last line that is cut off"]
    assert len(read(csv(tmp_path, "id,slice,score\na,x,1\nb,x,0"))) == 2


def test_json_lines_with_nan_are_refused_and_with_damage_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": 1, "score": 1.0}\n{"id": 2, "score": NaN}\n', encoding="utf-8")
    with pytest.raises(InputError, match="finite"):
        read(path)
    path.write_text('{"id": 1, "score": 1.0}\n{"id": 2, "sco', encoding="utf-8")
    found = read(path)
    assert found.scores["score"].tolist() == [1.0]
    assert found.lost[0].count == 1


def test_parquet_and_nested_columns(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [1, 2], "acc": [True, False], "tags": [["a"], ["b", "c"]]})
    frame.write_parquet(tmp_path / "t.parquet")
    found = read(tmp_path / "t.parquet")
    assert found.scores["acc"].tolist() == [1.0, 0.0]
    assert found.labels["tags"].tolist() == ["['a']", "['b', 'c']"]


@pytest.mark.parametrize("cell", ["true", "timeout", "1"])
def test_errors_are_marked(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [{"id": 1, "score": 1, "error": None}, {"id": 2, "score": None, "error": cell}]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert read(path).errors.tolist() == [False, True]


def test_an_unknown_declared_column_gives_the_close_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="column for slice") as caught:
        read(csv(tmp_path, "id,subject,score\na,x,1\n"), Wanted({"slice": "subjct"}))
    assert "subject" in caught.value.hint


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "rows"), [("routellm_mmlu_correct.csv.gz", 14042), ("routellm_gsm8k_correct.csv.gz", 1319)]
)
def test_public_router_results(name: str, rows: int, data_dir: Path) -> None:
    key = "slice+row" if "mmlu" in name else "row"
    found = read(data_dir / "gates" / name, Wanted({"id": key, "score": "gpt-4-1106-preview"}, ("score",)))
    assert len(set(found.keys.tolist())) == rows
    assert set(found.scores["score"].tolist()) == {0.0, 1.0}


@pytest.mark.data
def test_public_multihop_questions(data_dir: Path) -> None:
    found = read(data_dir / "gates" / "multihop_gold_69.jsonl")
    assert len(found) == 69
    assert found.scores["hops"].tolist().count(2.0) == 59


def test_a_loss_by_another_name_is_still_a_loss(tmp_path: Path) -> None:
    found = read(csv(tmp_path, "id,log_loss\na,0.5\nb,0.7\n"), Wanted({"score": "log_loss"}, ("score",)))
    assert found.lower_is_better("score")
