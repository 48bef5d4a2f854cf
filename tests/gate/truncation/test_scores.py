"""Scores by history length from long and wide tables, matched by id; what is refused and what is left out."""

from pathlib import Path

import numpy as np
import pytest

from ridgeline.core.errors import InputError
from ridgeline.gate.truncation.scores import read_scores

LONG = """id,user,label,length,score,history
a,u,1,64,0.2,100
b,u,0,64,0.1,100
b,u,0,256,0.4,100
a,u,1,256,0.8,100
"""
WIDE = "id,user,label,history,score_64,score_256\na,u,1,100,0.2,0.8\nb,u,0,100,0.1,0.4\n"


def table(folder: Path, said: str) -> Path:
    (folder / "s.csv").write_text(said)
    return folder / "s.csv"


@pytest.mark.parametrize("said", [LONG, WIDE], ids=["long", "wide"])
def test_both_forms_say_the_same(tmp_path: Path, said: str) -> None:
    found = read_scores(table(tmp_path, said))
    assert found.metric == "auc"
    assert found.lengths == [64, 256]
    order = np.argsort(found.keys)
    assert found.keys[order].tolist() == ["a", "b"]
    assert found.at[64][order].tolist() == [0.2, 0.1]
    assert found.at[256][order].tolist() == [0.8, 0.4]
    assert found.labels is not None
    assert found.history is not None
    assert found.labels[order].tolist() == [1, 0]
    assert found.history.tolist() == [100, 100]


def test_losses_need_no_label(tmp_path: Path) -> None:
    found = read_scores(table(tmp_path, "id,loss_64,loss_256\na,0.5,0.4\nb,0.6,0.7\n"))
    assert found.metric == "loss"
    assert found.labels is None
    assert found.users is None


def test_declared_columns(tmp_path: Path) -> None:
    file = table(tmp_path, "row,who,y,p_64,p_256\na,u,1,0.2,0.8\nb,v,0,0.1,0.4\n")
    found = read_scores(file, "auc", {"id": "row", "user": "who", "label": "y", "score": "p"})
    assert found.at[256].tolist() == [0.8, 0.4]
    assert found.users is not None
    assert found.users.tolist() == ["u", "v"]


@pytest.mark.parametrize("said", [
    LONG + "c,u,1,64,0.3,100\n",
    LONG + "c,u,1,64,0.3,100\nc,u,1,256,,100\n",
    WIDE + "c,u,1,100,0.3,\n",
])  # fmt: skip
def test_an_example_without_every_length_is_left_out_and_counted(tmp_path: Path, said: str) -> None:
    found = read_scores(table(tmp_path, said))
    assert sorted(found.keys.tolist()) == ["a", "b"]
    assert [(item.count, item.what) for item in found.lost] == [
        (1, "examples without a score at every length, left out")
    ]


@pytest.mark.parametrize(("said", "words"), [
    (LONG + "a,u,1,64,0.9,100\n", "each id once at length 64, got \"'a' twice\""),
    (WIDE + "a,u,1,100,0.2,0.8\n", "each id once"),
    (WIDE + ",u,1,100,0.2,0.8\n", "an id in every row"),
    (LONG.replace("a,u,1,256", "a,u,0,256"), "one label of an example"),
    (LONG.replace("0.8,100", "0.8,90"), "one history of an example"),
    (LONG.replace("0.8", "nan"), "finite numbers"),
    (LONG.replace("b,u,0", "b,u,2"), "labels of 0 or 1"),
    (LONG.replace(",64,", ",-64,"), "history lengths above zero"),
    (WIDE.replace("100", "-1"), "histories of zero events"),
    (WIDE.replace("id,", "nr,"), "which example a row is"),
    (WIDE.replace("label,", "kind,"), "labels for AUC"),
    ("id,label\na,1\n", "scores for auc"),
    ("id,label,length,score\na,1,64,0.3\nb,0,256,0.1\n", "with a score at every length"),
    ("id,label,score_64,score_256\n", "at least one row"),
    ("id,label,score_64,score_256\na,1,x,0.2\n", "a number, got 'x'"),
])  # fmt: skip
def test_refused(tmp_path: Path, said: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_scores(table(tmp_path, said))


def test_refused_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="auc or loss"):
        read_scores(table(tmp_path, WIDE), "ndcg")
    with pytest.raises(InputError, match="did you mean"):
        read_scores(table(tmp_path, WIDE), "", {"usr": "user"})
    with pytest.raises(InputError, match="a column for user"):
        read_scores(table(tmp_path, WIDE), "", {"user": "who"})
    with pytest.raises(InputError, match="no such file"):
        read_scores(tmp_path / "none.csv")
