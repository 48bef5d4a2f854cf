"""``ridgeline gate multihop`` from the command line."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def words(repo: Path, tmp_path: Path) -> tuple[Any, ...]:
    folder = repo / "examples" / "gates" / "multihop"
    return ("gate", "multihop", "--gold", folder / "gold.jsonl", "--baseline", folder / "mixed.jsonl", "--candidate",
            folder / "one-hop.jsonl", "-o", tmp_path)  # fmt: skip


def test_the_one_hop_retriever_does_not_ship(ridgeline: Any, words: tuple[Any, ...]) -> None:
    done = ridgeline(*words)
    assert done.code == 1
    assert "NO-SHIP: all-evidence recall@5" in done.out
    assert "With 90 questions" in done.out


def test_by_mrr_it_would(ridgeline: Any, words: tuple[Any, ...]) -> None:
    done = ridgeline(*words, "--metric", "MRR")
    assert done.code == 0
    assert "SHIP: MRR" in done.out


@pytest.mark.parametrize(
    ("more", "says"),
    [(("-k", "0"), "Expected k of at least 1"), (("--metric", "recall"), "Expected a metric of both runs"),
     (("--slices", "topic"), "topic")],
)  # fmt: skip
def test_refused_in_one_sentence(ridgeline: Any, words: tuple[Any, ...], more: tuple[str, ...], says: str) -> None:
    done = ridgeline(*words, *more)
    assert done.code == 2
    assert says in done.err
