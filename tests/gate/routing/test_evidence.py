"""Scores of two models with a router's column; settings that are refused."""

import json
from pathlib import Path

import pytest

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.routing.evidence import refuse_same_data, routed, setting

ROWS = [f"q{i},{i % 2},1,{i / 10},{i},{2 * i + 1}" for i in range(10)]
HEAD = "id,weak,strong,sure,price_weak,price_strong"


def plan(**columns: str) -> Plan:
    return build(Plan, {"gate": "cascade", "columns": columns})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "routed.csv"
    path.write_text("\n".join([HEAD, *ROWS]) + "\n")
    return path


def test_one_table_holds_both(file: Path) -> None:
    found = routed(f"{file}#weak", f"{file}#strong", plan(confidence="sure", cost="price_weak:price_strong"))
    assert found.weak.tolist() == [0, 1] * 5
    assert found.strong.tolist() == [1] * 10
    assert found.signal is not None
    assert found.signal.tolist() == [i / 10 for i in range(10)]
    assert found.costs is not None
    assert found.costs[1].tolist() == [2 * i + 1 for i in range(10)]
    assert found.setting.kind == "confidence"


def test_two_files_are_paired_by_id(tmp_path: Path) -> None:
    for name, order in (("weak", range(10)), ("strong", range(9, -1, -1))):
        rows = [f"q{i},{i / 10},{i}" for i in order]
        (tmp_path / f"{name}.csv").write_text("id,score,difficulty\n" + "\n".join(rows) + "\n")
    found = routed(str(tmp_path / "weak.csv"), str(tmp_path / "strong.csv"), plan(router="difficulty", cost="1:9"))
    assert found.weak.tolist() == found.strong.tolist()
    assert found.metric == "score"
    assert found.signal is not None
    assert found.signal.tolist() == list(range(9, -1, -1))  # in the order of the strong model's file
    assert found.costs is not None
    assert found.costs[0].tolist() == [1.0] * 10


def test_router_arena_rows_with_python_values_and_negative_scores(tmp_path: Path) -> None:
    for name, low in (("weak", -0.033), ("strong", 0.8)):
        rows = [
            {"global_index": f"d_{i}", "evaluation_result": str({"score": low if i == 3 else 1.0})} for i in range(10)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = routed(str(tmp_path / "weak.jsonl"), str(tmp_path / "strong.jsonl"), plan(router="slice", slice="dataset"))
    assert found.weak[3] == -0.033
    assert [loss.what for loss in found.pairs.candidate.lost] == ["negative scores, kept as they are"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"router": "confidenc"}, "confidence"),
        ({"cost": "3"}, "weak and of the strong"),
        ({"threshold": "0.5"}, "chosen on"),
        ({"threshold": "half", "chosen_on": "x"}, "number"),
        ({"seed": "-1"}, "seed"),
    ],
)
def test_settings_that_are_refused(columns: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        setting(plan(**columns))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"router": "confidence"}, "confidence"),
        ({"cost": "nothing:1"}, "nothing"),
        ({"cost": "-1:1"}, "zero or more"),
        ({"cost": "0:0"}, "costs something"),
    ],
)
def test_columns_that_are_refused(file: Path, columns: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        routed(f"{file}#weak", f"{file}#strong", plan(**{"router": "slice", **columns}))


def test_a_gap_in_the_router_is_refused(file: Path) -> None:
    file.write_text(file.read_text().replace("q3,1,1,0.3", "q3,1,1,"))
    with pytest.raises(InputError, match=r"confidence in every row.*q3"):
        routed(f"{file}#weak", f"{file}#strong", plan(confidence="sure"))


def test_several_scores_must_be_named(file: Path) -> None:
    with pytest.raises(InputError, match="PATH#COLUMN"):
        routed(str(file), str(file), plan(router="slice"))


def test_a_threshold_from_the_same_file_or_the_same_examples_is_refused(file: Path, tmp_path: Path) -> None:
    def judged(path: Path) -> None:
        own = plan(confidence="sure", threshold="0.4", chosen_on=str(path))
        refuse_same_data(routed(f"{file}#weak", f"{file}#strong", own), own)

    with pytest.raises(InputError, match="the same file"):
        judged(file)
    other = tmp_path / "other.csv"
    other.write_text("id,x\nnew,1\nq4,1\n")
    with pytest.raises(InputError, match="1 example of these, first 'q4'"):
        judged(other)
    other.write_text("id,x\nnew,1\n")
    judged(other)
