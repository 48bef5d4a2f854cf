"""Matching: the same call on several ranks."""

from typing import Any

import numpy as np
import pytest
from tests.trace.synthetic import Table

from ridgeline.trace.events import NONE, Kind
from ridgeline.trace.matching import match, paired


def ids(*found: np.ndarray[Any, np.dtype[np.int64]]) -> list[list[int]]:
    return [item.tolist() for item in found]


def sequence(text: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([ord(letter) for letter in text], dtype=np.int64)


def unnumbered(*texts: str) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    return [np.full(len(text), NONE, dtype=np.int64) for text in texts]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("abc", "abc"), [[0, 1, 2], [0, 1, 2]]),
        (("xxabc", "abc"), [[NONE, NONE, 2, 3, 4], [2, 3, 4]]),  # one profile began later
        (("abcxx", "abc"), [[0, 1, 2, NONE, NONE], [0, 1, 2]]),  # or ended earlier
        (("aaaa", "aa"), [[NONE, NONE, 2, 3], [2, 3]]),  # a tie: the ends coincide
        (("abc", "abd"), [[0, 1, NONE], [0, 1, NONE]]),
        (("abc", "xyz"), [[NONE] * 3, [NONE] * 3]),
        (("abc", "abc", "bc"), [[0, 1, 2], [0, 1, 2], [1, 2]]),
    ],
)
def test_matching_by_order(texts: tuple[str, ...], expected: list[list[int]]) -> None:
    assert ids(*match([sequence(text) for text in texts], unnumbered(*texts))) == expected


def test_sequence_numbers_beat_order() -> None:
    numbers = [np.array([5, 6, 6, 7]), np.array([6, 6, 7, 8])]
    one, two = match([sequence("abbc"), sequence("bbca")], numbers)
    assert one.tolist()[1:] == two.tolist()[:3]
    assert (one[0], two[3]) == (NONE, NONE)
    assert len(set(one.tolist()[1:])) == 3


def test_other_signatures_are_no_match_whatever_the_place() -> None:
    """Half of the calls agree at a shift of one, none without."""
    one, two = match([sequence("abab"), sequence("baba")], unnumbered("abab", "baba"))
    shared = set(one.tolist()) & set(two.tolist()) - {NONE}
    assert len(shared) == 3


def test_a_rank_without_calls() -> None:
    assert ids(*match([sequence(""), sequence("")], unnumbered("", ""))) == [[], []]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("s1 d1 s1 d1", ["s1d1", "s1d1"]),
        ("s1 s2 d2 d1", ["s2d2", "s1d1"]),  # in flight together
        ("d1 s1 d1 s2", ["d1d1", "s1d1", "s2s2"]),  # halves that the profile has cut off
        ("s1 s2", ["s1s1", "s2s2"]),
        ("x s1 x d1", ["xx", "xx", "s1d1"]),
        ("", []),
    ],
)
def test_starts_and_dones_are_one_call(written: str, expected: list[str]) -> None:
    table, names = Table(), written.split()
    for i, name in enumerate(names):
        phase = {"s": "start", "d": "done"}.get(name[0])
        meta = {"phase": phase, "call": name[1]} if phase else None
        table.work(name, 10 * i, 5, kind=Kind.COMM, meta=meta)
    events = table.build()
    opened, closed = paired(events, np.arange(len(events)))
    assert [events.name_of(i) + events.name_of(j) for i, j in zip(opened, closed, strict=True)] == expected
