"""Rows of needles from the probe, from RULER and from a table."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.gate.canary.simulated import at_rate, canary, run

from ridgeline.core.errors import InputError
from ridgeline.gate.canary.generate import Recipe
from ridgeline.gate.canary.results import column, read_run
from ridgeline.gate.canary.sets import CanarySet, read_set
from ridgeline.gate.evidence.reader import Wanted


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> tuple[CanarySet, Path]:
    return canary(tmp_path_factory.mktemp("set"), Recipe((700,), 6, 3))


def test_positions_are_those_of_the_set_and_errors_stay(held: tuple[CanarySet, Path], tmp_path: Path) -> None:
    first = next(iter(held[0].contexts))
    path = run(held[0], tmp_path / "r.jsonl", at_rate(1.0), failed=frozenset({first}))
    for found in (read_run(path), read_run(path, held[0])):
        assert len(found.samples) == 18
        assert int(found.samples.errors.sum()) == 3
        assert np.isnan(found.samples.scores["found"]).sum() == 3
        wanted = [n.position for item in held[0].contexts.values() for n in item.needles]
        assert column(found.samples, "position").tolist() == wanted
        assert found.samples.settings["canary set"] == held[0].sha256


def test_results_of_another_set_are_refused(held: tuple[CanarySet, Path], tmp_path: Path) -> None:
    other, _ = canary(tmp_path, Recipe((700,), 6, 3, seed=1))
    path = run(held[0], tmp_path / "r.jsonl", at_rate(1.0))
    with pytest.raises(InputError, match="results of the set"):
        read_run(path, other)
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text(path.read_text() + run(other, tmp_path / "o.jsonl", at_rate(1.0)).read_text().replace("700-", "x"))
    with pytest.raises(InputError, match="results of one canary set"):
        read_run(mixed)


def test_two_answers_of_a_context_are_refused(held: tuple[CanarySet, Path], tmp_path: Path) -> None:
    path = run(held[0], tmp_path / "r.jsonl", at_rate(1.0))
    text = path.read_text()
    path.write_text(text + text.splitlines()[0] + "\n")
    with pytest.raises(InputError, match="one answer a context"):
        read_run(path)


def test_contexts_without_a_result_are_counted(held: tuple[CanarySet, Path], tmp_path: Path) -> None:
    path = run(held[0], tmp_path / "r.jsonl", at_rate(1.0))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    lost = read_run(path, held[0]).samples.lost
    assert [(loss.count, "without a result" in loss.what) for loss in lost] == [(2, True)]


def test_a_needle_without_its_place_is_refused(held: tuple[CanarySet, Path], tmp_path: Path) -> None:
    path = run(held[0], tmp_path / "r.jsonl", at_rate(1.0))
    path.write_text(path.read_text().replace('"position"', '"at"'))
    with pytest.raises(InputError, match="a needle with id, value, position and depth"):
        read_run(path)
    assert len(read_run(path, held[0]).samples) == 18


FILL = "The grass is green. The sky is blue. " * 20


def ruler(index: int, values: list[str], pred: Any, **more: Any) -> dict[str, Any]:
    """A row in RULER's form: the position it names is that of the first needle alone."""
    needles = [f"One of the numbers for k{j} is: {value}. " for j, value in enumerate(values)]
    body = "".join(FILL + text for text in needles) + FILL
    text = f"Memorize the numbers.\n{body}\nWhat are all the numbers for k0 and k1? The numbers are"
    first = text.index(values[0]) // 4
    row = {"index": index, "input": text, "outputs": values, "length": len(text) // 4, "pred": pred}
    return {**row, "token_position_answer": first, **more}


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_ruler_names_one_position_and_all_are_recomputed(tmp_path: Path) -> None:
    rows = [ruler(i, [f"{i}111", f"{i}222", f"{i}333"], f"{i}111 and {i}333.") for i in range(1, 4)]
    found = read_run(lines(tmp_path / "niah.jsonl", rows)).samples
    assert found.scores["found"].tolist() == [1.0, 0.0, 1.0] * 3
    position = column(found, "position").reshape(3, 3)
    assert np.abs(position[:, 0] - rows[0]["token_position_answer"]).max() <= 1
    assert (np.diff(position, axis=1) > 150).all()
    truth = [
        [row["input"].index(value) / len(row["input"]) * row["length"] for value in row["outputs"]] for row in rows
    ]
    assert np.abs(position - np.array(truth)).max() <= 1


def test_ruler_substrings_twice_and_never(tmp_path: Path) -> None:
    rows = [ruler(1, ["7111", "7222"], "71110 7222"), ruler(2, ["8111", "8222"], "8111 8222")]
    rows[0]["outputs"].append("blue")
    rows[1]["outputs"].append("nowhere")
    found = read_run(lines(tmp_path / "p.jsonl", rows))
    assert found.samples.scores["found"].tolist() == [0.0, 1.0, 1.0, 1.0]
    assert [(u.value, u.times > 1, u.times) for u in found.unplaced][1] == ("nowhere", False, 0)
    assert found.unplaced[0].times == 60


def test_ruler_predictions_beside_their_data(tmp_path: Path) -> None:
    rows = [ruler(i, [f"{i}111", f"{i}222"], f"{i}222") for i in (1, 2)]
    data = lines(tmp_path / "data.jsonl", [{k: v for k, v in row.items() if k != "pred"} for row in rows])
    bare = lines(tmp_path / "bare.jsonl", [{k: row[k] for k in ("index", "outputs", "pred")} for row in rows])
    with pytest.raises(InputError, match="the input of a prediction") as caught:
        read_run(bare)
    assert "--set" in caught.value.hint
    assert read_run(bare, read_set(data)).samples.scores["found"].tolist() == [0.0, 1.0] * 2


def test_ruler_errors_and_repeats(tmp_path: Path) -> None:
    row = ruler(1, ["7111", "7222"], None)
    assert read_run(lines(tmp_path / "a.jsonl", [row])).samples.errors.tolist() == [True, True]
    with pytest.raises(InputError, match="one result a context"):
        read_run(lines(tmp_path / "b.jsonl", [row, {**row, "index": 2}]))
    with pytest.raises(InputError, match="needles that can be placed"):
        read_run(lines(tmp_path / "c.jsonl", [ruler(1, ["nowhere"], "x") | {"input": "Nothing.\nWhat?"}]))


def test_a_table_with_declared_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,doc,tok,length,ok\na1,a,10,100,1\na2,a,90,100,0\nb1,b,50,200,1\n", encoding="utf-8")
    wanted = Wanted({"cluster": "doc", "position": "tok", "found": "ok"})
    found = read_run(path, wanted=wanted).samples
    assert found.scores["found"].tolist() == [1.0, 0.0, 1.0]
    assert column(found, "depth").tolist() == [0.1, 0.9, 0.25]
    assert found.labels["context"].tolist() == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,position,length,hit\na,1,10,1\n", "a column for the context"),
        ("id,context,position,length,tries\na,x,1,10,1\n", "a column of hits"),
        ("id,context,length,hit\na,x,10,1\n", "position in tokens"),
        ("id,context,position,hit\na,x,10,1\n", "length in tokens"),
        ("id,context,position,length,hit\na,x,20,10,1\n", "positions inside the context"),
        ("id,context,position,length,hit\na,x,2,10,0.5\n", "zeros and ones of hit"),
        ("id,context,position,length,hit\na,x,near,10,1\n", "numbers in the column position"),
    ],
)
def test_tables_that_cannot_be_judged(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_run(path)


def test_one_text_under_several_ids_is_refused(held: tuple[CanarySet, Path], tmp_path: Path) -> None:
    first = json.loads(run(held[0], tmp_path / "r.jsonl", at_rate(1.0)).read_text().splitlines()[0])
    again = tmp_path / "again.jsonl"
    again.write_text("".join(json.dumps({**first, "id": f"c{i}"}) + "\n" for i in range(3)))
    with pytest.raises(InputError, match="text of its own"):
        read_run(again)
    row = json.loads(held[1].read_text().splitlines()[0])
    again.write_text("".join(json.dumps({**row, "id": f"c{i}"}) + "\n" for i in range(2)))
    with pytest.raises(InputError, match="text of its own"):
        read_set(again)


def test_errors_alone_are_no_run(held: tuple[CanarySet, Path], tmp_path: Path) -> None:
    path = run(held[0], tmp_path / "r.jsonl", at_rate(1.0), failed=frozenset(held[0].contexts))
    with pytest.raises(InputError, match="6 errors"):
        read_run(path)
