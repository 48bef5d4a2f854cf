"""The set: as long as asked, every depth as often, needles that the corpus does not hold, the same for a seed."""

from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from tests.gate.canary.simulated import canary, corpus, prose

from ridgeline.core.errors import InputError
from ridgeline.gate.canary.generate import STRATA, Recipe, corpus_of, make, read_corpus, sentence
from ridgeline.gate.canary.sets import hash_of, line_of, read_set


def test_lengths_depths_and_needles(tmp_path: Path) -> None:
    made = make(corpus(tmp_path), Recipe((1000, 4000), 20, 10, seed=5))
    assert Counter(item.id.split("-")[0] for item in made.contexts) == {"1000": 20, "4000": 20}
    for item in made.contexts:
        asked = int(item.id.split("-")[0])
        assert 0.97 * asked <= item.length <= asked
        assert [int(n.depth * STRATA) for n in item.needles] == list(range(STRATA))
        assert all(item.prompt[n.start :].startswith(n.value) for n in item.needles)
        assert all(item.prompt.count(sentence(n.key, n.value)) == 1 for n in item.needles)
        assert all(n.key in item.prompt.rpartition("\n")[2] for n in item.needles)
        assert item.unplaced == ()
    values = [n.value for item in made.contexts for n in item.needles]
    assert len(set(values)) == len(values)


@pytest.mark.parametrize("needles", [1, 2, 3, 4, 5, 7])
def test_fewer_needles_fill_every_depth_in_turn(needles: int, tmp_path: Path) -> None:
    made = make(corpus(tmp_path), Recipe((1000,), 10, needles))
    depths = Counter(int(n.depth * STRATA) for item in made.contexts for n in item.needles)
    assert {len(item.needles) for item in made.contexts} == {needles}
    assert depths == dict.fromkeys(range(STRATA), needles)


def test_needles_stand_between_sentences(tmp_path: Path) -> None:
    made = make(corpus(tmp_path), Recipe((2000,), 10, 5))
    before = [
        item.prompt[: item.prompt.index(sentence(n.key, n.value))] for item in made.contexts for n in item.needles
    ]
    assert sum(text.rstrip()[-1] in ".?!" for text in before) >= 0.95 * len(before)


def test_a_corpus_without_sentences_or_spaces_works() -> None:
    made = make(corpus_of(["字" * 8000]), Recipe((1000,), 3, 10))
    assert all(len(item.needles) == 10 and not item.unplaced for item in made.contexts)


def test_the_same_for_a_seed_and_another_for_another(tmp_path: Path) -> None:
    held, recipe = corpus(tmp_path), Recipe((800,), 4, 4, 7)
    assert make(held, recipe) == make(held, recipe)
    assert hash_of(make(held, recipe).contexts) != hash_of(make(held, replace(recipe, seed=8)).contexts)


def test_a_needle_that_the_corpus_holds_is_drawn_again_and_counted() -> None:
    text = prose(40_000)
    recipe = Recipe((1000,), 3, 4)
    first = make(corpus_of([text]), recipe)
    assert first.again == 0
    taken = [first.contexts[0].needles[0].value, first.contexts[2].needles[1].key.split()[0]]
    again = make(corpus_of([text, f"They said {taken[0]} and {taken[1].upper()}."]), recipe)
    assert again.again == 2
    said = " ".join(f"{n.key} {n.value}" for item in again.contexts for n in item.needles)
    assert not any(word in said.split() for word in taken)


def test_a_corpus_that_holds_every_value_is_refused() -> None:
    held = corpus_of([prose(40_000)])
    syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    every = frozenset("".join(parts) for parts in product(syllables, repeat=3))
    with pytest.raises(InputError, match="a corpus without the needles"):
        make(replace(held, words=every), Recipe((1000,), 1, 1))


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        (Recipe((1000,), 0), "at least one"),
        (Recipe((1000,), 1, 0), "at least one"),
        (Recipe((1000,), 1, 11), "at most 10 needles"),
        (Recipe((), 1), "lengths"),
        (Recipe((1000, 1000), 1), "each once"),
        (Recipe((1000,), 1, per_character=-1.0), "tokens a character"),
        (Recipe((1000,), 1, per_character=0.0), "tokens a character"),
        (Recipe((100,), 1, 10), "mostly haystack"),
        (Recipe((100_000,), 1), "a corpus of"),
    ],
)
def test_recipes_that_cannot_be_made(recipe: Recipe, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make(corpus_of([prose(40_000)]), recipe)


def test_tokens_per_character_stretch_the_text(tmp_path: Path) -> None:
    held = corpus(tmp_path)
    short, long = (make(held, Recipe((2000,), 1, 2, per_character=rate)).contexts[0] for rate in (0.5, 0.25))
    assert abs(len(long.prompt) - 2 * len(short.prompt)) < 300
    assert all(1900 < item.length <= 2000 for item in (short, long))


def test_folders_are_read_in_order_and_damage_is_counted(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("Second text.", encoding="utf-8")
    (tmp_path / "a.md").write_bytes(b"First \xff text.")
    (tmp_path / "c.bin").write_bytes(b"not read")
    found = read_corpus([tmp_path])
    assert found.text == "First \ufffd text.\n\nSecond text."
    assert [Path(item.path).name for item in found.files] == ["a.md", "b.txt"]
    assert [loss.count for loss in found.lost] == [1]


@pytest.mark.parametrize("text", ["", " \n\n "])
def test_an_empty_corpus_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="a corpus with text"):
        read_corpus([tmp_path])
    with pytest.raises(InputError, match="no such path"):
        read_corpus([tmp_path / "none"])


def test_a_set_is_read_as_written_in_any_order(tmp_path: Path) -> None:
    held, path = canary(tmp_path, Recipe((900,), 5, 3))
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "turned.jsonl").write_text("".join(reversed(lines)), encoding="utf-8")
    turned = read_set(tmp_path / "turned.jsonl")
    assert turned.sha256 == held.sha256
    assert turned.contexts == held.contexts
    assert held.longest <= 900
    (tmp_path / "more.jsonl").write_text("".join([*lines, line_of(next(iter(held.contexts.values())))]))
    with pytest.raises(InputError, match="one context an id"):
        read_set(tmp_path / "more.jsonl")
    (tmp_path / "less.jsonl").write_text("".join(lines[:-1]), encoding="utf-8")
    assert read_set(tmp_path / "less.jsonl").sha256 != held.sha256


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "a", "prompt": "", "needles": [{"value": "1"}]}', "a prompt"),
        ('{"id": "a", "prompt": "x"}', "a list of needles"),
        ('{"id": "a", "prompt": "x", "needles": []}', "a list of needles"),
        ('{"prompt": "x", "needles": [{"value": "1"}]}', "an id"),
        ('{"id": "a", "prompt": "x", "needles": [{"key": "1"}]}', "a value of every needle"),
        ('{"index": 1, "input": "x"}', "a list of needles"),
    ],
)
def test_rows_that_are_no_context(line: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_set(tmp_path / "s.jsonl")
