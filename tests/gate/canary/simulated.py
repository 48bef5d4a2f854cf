"""Runs over a canary set without a server: what is found is decided by a function of the needle."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.random import Generator

from ridgeline.gate.canary.generate import Corpus, Recipe, make, read_corpus
from ridgeline.gate.canary.needles import Context, Needle
from ridgeline.gate.canary.probe import Answer, Endpoint, result_line
from ridgeline.gate.canary.sets import CanarySet, line_of, read_set

Found = Callable[[Context, Needle, Generator], bool]
WORDS = ["river", "stone", "window", "market", "letter", "garden", "winter", "engine", "paper", "harbour", "music"]


def prose(characters: int, seed: int = 0) -> str:
    """Sentences of a few words, one paragraph for every ten."""
    rng = np.random.default_rng(seed)
    said, size = [], 0
    while size < characters:
        words = [WORDS[i] for i in rng.integers(len(WORDS), size=int(rng.integers(4, 12)))]
        said.append(" ".join(words).capitalize() + ("." if rng.random() < 0.9 else "?"))
        size += len(said[-1]) + 1
    return "\n".join(" ".join(said[i : i + 10]) for i in range(0, len(said), 10))


def corpus(folder: Path, characters: int = 120_000) -> Corpus:
    file = folder / "corpus.txt"
    file.write_text(prose(characters), encoding="utf-8")
    return read_corpus([file])


def canary(folder: Path, recipe: Recipe) -> tuple[CanarySet, Path]:
    """A set of a recipe, written and read again."""
    made = make(corpus(folder, int(6 * max(recipe.lengths))), recipe)
    path = folder / "set.jsonl"
    path.write_text("".join(line_of(item) for item in made.contexts), encoding="utf-8")
    return read_set(path), path


def run(held: CanarySet, path: Path, found: Found, seed: int = 0, failed: frozenset[str] = frozenset()) -> Path:
    """Results of a run that finds what ``found`` says; contexts of ``failed`` are errors."""
    rng = np.random.default_rng(seed)
    endpoint = Endpoint("http://127.0.0.1:1/v1", path.stem)
    lines = []
    for item in held.contexts.values():
        hits = [f"{n.key}: {n.value}" for n in item.needles if found(item, n, rng)]
        answer = Answer(None, "HTTP 500") if item.id in failed else Answer("\n".join(hits), "", item.length, "stop")
        lines.append(result_line(item, held, endpoint, answer))
    path.write_text("".join(lines), encoding="utf-8")
    return path


def at_rate(rate: float) -> Found:
    return lambda _context, _needle, rng: bool(rng.random() < rate)
