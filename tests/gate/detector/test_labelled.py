"""Labelled decisions from a file: what is read, what is refused, and what stays in the denominator."""

from pathlib import Path

import pytest

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.gate.detector.labelled import NAMELESS, Labelled, read_labelled, rows_at
from ridgeline.gate.registration.plan import Plan


def read(tmp_path: Path, text: str, suffix: str = "", **keys: object) -> Labelled:
    path = tmp_path / "sample.csv"
    path.write_text(text)
    return read_labelled(f"{path}{suffix}", build(Plan, {"gate": "ood", **keys}))


ROWS = "id,label,decision,site\na,1,1,x\nb,0,0,x\nc,0,1,y\nd,1,0,\n"


def test_rates_and_their_rows(tmp_path: Path) -> None:
    found = read(tmp_path, ROWS, slices="site")
    assert found.right.tolist() == [True, True, False, False]
    assert found.metrics["specificity"].tolist() == [False, True, True, False]
    assert found.names() == [NAMELESS, "x", "y"]
    assert rows_at(found, "specificity", "y").tolist() == [False, False, True, False]


def test_a_score_has_its_threshold(tmp_path: Path) -> None:
    rows = "id,truth,risk\na,yes,0.9\nb,no,0.8\nc,no,0.79\n"
    found = read(tmp_path, rows, "#risk>=0.8")
    assert found.right.tolist() == [True, False, True]
    same = read(tmp_path, rows, columns={"decision": "risk>=0.8", "label": "truth"})
    assert same.right.tolist() == found.right.tolist()


def test_correctness_alone(tmp_path: Path) -> None:
    found = read(tmp_path, "id,correct\na,1\nb,0\n")
    assert found.positive is None
    assert list(found.metrics) == ["accuracy"]


FAILED = "id,label,decision,error\na,1,1,\nb,1,,timeout\nc,0,,timeout\nd,0,0,\n"


def test_failed_rows_are_wrong_unless_dropped(tmp_path: Path) -> None:
    wrong, dropped = read(tmp_path, FAILED), read(tmp_path, FAILED, on_error="drop")
    assert wrong.right.tolist() == [True, False, False, True]
    assert dropped.right.tolist() == [True, True]
    assert [(loss.count, "wrong" in loss.what, "left out" in loss.what) for loss in (*wrong.lost, *dropped.lost)] == [
        (2, True, False),
        (2, False, True),
    ]
    with pytest.raises(InputError, match=r"Expected a decision in every row, got 'none in 2 rows'"):
        read(tmp_path, FAILED, on_error="refuse")


def test_rows_without_a_label_are_counted(tmp_path: Path) -> None:
    found = read(tmp_path, "id,label,decision\na,1,1\nb,,1\nc,0,0\n")
    assert len(found) == 2
    assert [(loss.count, loss.what) for loss in found.lost] == [(1, "rows without a label, which count for no rate")]


@pytest.mark.parametrize(
    ("text", "suffix", "says"),
    [
        ("id,label,decision\na,1,1\na,0,0\n", "", "one row an example, got \"1 row more, first 'a'\""),
        ("id,label,decision\na,2,1\nb,0,0\n", "", "0 or 1 in label, got '2 in row 1'"),
        ("id,label,risk\na,1,0.7\nb,0,0.2\n", "#risk", "0 or 1 in risk, got '0.7 in row 1'"),
        ("id,label,risk\na,1,NaN\nb,0,0.2\n", "#risk>=0.5", "finite scores"),
        ("id,label,risk\na,1,0.7\nb,0,0.2\n", "#risk>=e.", "a threshold such as risk>=0.8"),
        ("id,label,risk\na,1,0.7\nb,0,0.2\n", "#rsik>=0.5", "a column of the file, got 'rsik'"),
        ("id,label,risk\na,1,0.7\nb,0,0.2\n", "", "a column of a decision"),
        ("id,risk\na,0.7\nb,0.2\n", "", "a column of a label"),
        ("id,label,decision\na,,1\nb,,0\n", "", "Expected"),
    ],
)
def test_refused_in_one_sentence(tmp_path: Path, text: str, suffix: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text, suffix)
    assert says in str(caught.value)
    assert str(caught.value).startswith("Expected ")


def test_an_unknown_slice_names_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="site"):
        read(tmp_path, ROWS, slices="sight")
