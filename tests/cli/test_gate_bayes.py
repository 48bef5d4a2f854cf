"""``ridgeline gate bayes`` from the command line."""

from pathlib import Path
from typing import Any

import pytest

POINTS = ("--tpr", "0.9", "--fpr", "0.05", "--prevalence", "0.05,0.01")


def test_points_without_a_requirement(ridgeline: Any, tmp_path: Path) -> None:
    done = ridgeline("gate", "bayes", *POINTS, "-o", tmp_path)
    assert done.code == 4
    assert "48.65% at a prevalence of 5% and 15.38% at a prevalence of 1%" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--ppv", "90%"), 1),
        (("--ppv", "10%"), 4),
        (("--ppv", "10%", "--tpr", "180/200", "--fpr", "50/1000"), 0),
        (("--ppv", "90%", "--irreversible"), 1),
    ],
)
def test_exit_codes(ridgeline: Any, tmp_path: Path, more: tuple[str, ...], code: int) -> None:
    assert ridgeline("gate", "bayes", *POINTS, *more, "-o", tmp_path).code == code


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--tpr", "0.9", "--prevalence", "0.1"), "Expected --tpr and --fpr, or --detections"),
        ((*POINTS, "--detections", "x.csv"), "Expected --detections or rates"),
        (("--tpr", "0.9", "--fpr", "0.05"), "at least one prevalence"),
        (("--tpr", "0.9", "--fpr", "0.05", "--prevalence", "0"), "a prevalence between 0 and 1"),
        (("--tpr", "0.04", "--fpr", "0.05", "--prevalence", "0.1"), "a detector better than chance"),
        ((*POINTS, "--ppv", "1.5"), "a required precision between 0 and 1"),
        ((*POINTS, "--irreversible"), "Expected --ppv beside --irreversible"),
        ((*POINTS, "--stake", "cost=3"), "--stake"),
    ],
)
def test_refused_in_one_sentence(ridgeline: Any, words: tuple[str, ...], says: str) -> None:
    done = ridgeline("gate", "bayes", *words)
    assert done.code == 2
    assert says in done.err
    assert done.out == ""


def test_labelled_decisions(ridgeline: Any, repo: Path, tmp_path: Path) -> None:
    file = repo / "examples" / "gates" / "bayes" / "detections.csv"
    done = ridgeline("gate", "bayes", "--detections", file, "--prevalence", "0.5", "--ppv", "80%", "-o", tmp_path)
    assert done.code == 0
    assert "SHIP: prevalence 50%" in done.out
