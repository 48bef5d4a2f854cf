"""Positions are recomputed from the text; the question is no place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.gate.canary.needles import answered, estimated_tokens, is_found, placed, places, question_start


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("a 123 b", "123", [2]),
        ("1234 123 0123 123", "123", [5, 14]),
        ("x_12 12-x 12.", "12", [5, 10]),
        ("密码12是", "密码", [0]),
        ("nothing", "12", []),
        ("nothing", "", []),
        ("12", "12", [0]),
    ],
)
def test_places_are_whole_words(text: str, value: str, found: list[int]) -> None:
    assert places(text, value) == found


@given(st.lists(st.sampled_from(["ab", "a", "b", "12", "1"]), max_size=12), st.sampled_from(["ab", "a", "12", "1"]))
def test_places_agree_with_splitting(words: list[str], value: str) -> None:
    assert len(places(" ".join(words), value)) == words.count(value)


@pytest.mark.parametrize(
    ("answer", "hit"),
    [("It is 1234.", True), ("it is 12345", False), ("ABcd", False), ("the ABC-1 one", True), ("", False)],
)
def test_an_answer_holds_the_whole_value(answer: str, hit: bool) -> None:
    assert is_found("1234" if "12" in answer else "abc-1", answer) is hit


QUESTION = "What are the numbers for a and b mentioned in the text? The numbers are"


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (f"Some text. Is it so? It is.\n{QUESTION}", QUESTION),
        (f"Some text. Is it so? It is.\n\n{QUESTION}\n", QUESTION + "\n"),
        (f"One line only. The number is 7. {QUESTION}", QUESTION),
        ("Text without any mark.\nName the number of a.", "Name the number of a."),
        ("Why? " + "word " * 600 + "\nName the number of a.", "Name the number of a."),
    ],
)
def test_the_question_is_the_last_line_or_sentence(text: str, question: str) -> None:
    assert text[question_start(text) :] == question


def test_every_needle_has_its_own_position() -> None:
    body = "x" * 100 + " 11 " + "y" * 196 + " 22 " + "z" * 96
    found = placed("c", f"{body}\nWhich number, 33 or another?", ["11", "22", "33", "22x"], 1000)
    assert [(n.id, n.value, n.start) for n in found.needles] == [("n0", "11", 101), ("n1", "22", 301)]
    assert [n.position for n in found.needles] == [round(s / len(found.prompt) * 1000) for s in (101, 301)]
    assert [round(n.depth, 4) for n in found.needles] == [round(s / 401, 4) for s in (101, 301)]
    assert [(u.value, u.times) for u in found.unplaced] == [("33", 0), ("22x", 0)]


def test_values_that_repeat_are_listed() -> None:
    found = placed("c", "a 11 b 11 c 22.\nWhich?", ["11", "22", "33", "33"], 10)
    assert [(u.value, u.times) for u in found.unplaced] == [("11", 2), ("33", 2), ("33", 2)]
    assert [n.value for n in found.needles] == ["22"]


def test_estimated_tokens() -> None:
    assert [estimated_tokens("x" * n, 0.25) for n in (0, 1, 4, 5, 400)] == [1, 1, 1, 2, 100]


KEYS = [("tezo fido", "111"), ("bime repa", "222")]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("tezo fido: 111\nbime repa: 222", [True, True]),
        ("tezo fido: 222\nbime repa: 111", [False, False]),
        ("tezo fido: 222, bime repa: 111", [False, False]),
        ("222 is that of tezo fido, 111 that of bime repa", [False, False]),
        ("111 is that of tezo fido, 222 that of bime repa", [True, True]),
        ("The codes of tezo fido, bime repa are 111 and 222", [True, True]),
        ("111\n222", [True, True]),
        ("TEZO FIDO - 111", [True, False]),
        ("bime repa: 111", [False, False]),
        ("| tezo fido | 111 |\n| bime repa | 999 |", [True, False]),
        ("", [False, False]),
    ],
)
def test_a_value_beside_the_key_of_another_needle_is_luck(answer: str, found: list[bool]) -> None:
    assert answered(answer, KEYS) == found


def test_without_keys_a_value_is_found_wherever_it_stands() -> None:
    assert answered("bime repa: 111", [("", "111")]) == [True]
