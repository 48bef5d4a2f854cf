"""Answers as SQuAD compares them."""

import pytest

from ridgeline.gate.statistics.answers import exact_match, normal, token_f1


@pytest.mark.parametrize(
    ("answer", "gold", "exact", "f1"),
    [
        ("The Yale  Herald.", ["yale herald"], 1.0, 1.0),
        ("Yale", ["Yale Herald"], 0.0, 2 / 3),
        ("in Prince County, Canada", ["Prince County"], 0.0, 2 / 3),
        ("Geneva", ["Zurich", "Geneva"], 1.0, 1.0),
        ("", ["Geneva"], 0.0, 0.0),
        ("the", ["a"], 1.0, 1.0),
        ("no no no", ["no"], 0.0, 0.5),
        ("x", [], 0.0, 0.0),
    ],
)
def test_matches(answer: str, gold: list[str], exact: float, f1: float) -> None:
    assert exact_match(answer, gold) == exact
    assert token_f1(answer, gold) == pytest.approx(f1)


def test_articles_inside_words_stay() -> None:
    assert normal("An anthem of Athens") == "anthem of athens"
