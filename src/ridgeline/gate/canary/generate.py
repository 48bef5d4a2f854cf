"""A canary set drawn from a corpus that the user names: the same for the same corpus, recipe and seed.

A context is a piece of the corpus with sentences hidden at boundaries of its own sentences, one for each depth stratum
in turn, and a question for all of them at the end. Tokens are estimated as characters times a stated rate.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from pathlib import Path

import numpy as np
from numpy.random import Generator, SeedSequence

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.gate.canary.needles import Context, estimated_tokens, placed, tokens_per_character

STRATA = 10
SUFFIXES = (".txt", ".md", ".rst")
OPENING = "Below is a text in which access codes are hidden. Remember every one of them.\n\n"
_BOUNDARY = re.compile(r"(?<=[.!?])\s+|\n+")
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_SYLLABLES, _DIGITS = 3, 7
_INSIDE = 0.8  # of a stratum, so that what moves to a sentence's boundary stays in it
_TRIES = 100
RATES = (0.01, 16)  # tokens of a character that a tokenizer can have


@dataclass(frozen=True)
class Recipe:
    """``lengths`` in tokens, ``contexts`` of each, ``needles`` in each context, ``per_character`` tokens."""

    lengths: tuple[int, ...]
    contexts: int = 100
    needles: int = STRATA
    seed: int = 0
    per_character: float | None = None

    @property
    def rate(self) -> float:
        """Tokens a character: as given, or the house's estimate."""
        return tokens_per_character() if self.per_character is None else self.per_character


@dataclass(frozen=True)
class Corpus:
    """The text of all files, where its sentences begin, and its words in lower case."""

    text: str
    starts: Sequence[int]
    words: frozenset[str]
    files: tuple[InputFile, ...]
    lost: tuple[Loss, ...] = ()


@dataclass(frozen=True)
class Made:
    """``again`` counts needles that were drawn again because the corpus or the set held their words already."""

    contexts: tuple[Context, ...]
    again: int


def read_corpus(paths: Iterable[Path]) -> Corpus:
    """Text files, and those of folders (.txt, .md, .rst) in the order of their names.

    Raises `InputError` for a path that is not there and a corpus without text.
    """
    texts, files, lost = [], [], []
    for path in paths:
        if not path.exists():
            raise InputError.expected("a text file or a folder", "no such path", where=str(path))
        inside = sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
        for file in inside if path.is_dir() else [path]:
            raw = file.read_bytes()
            files.append(InputFile.of(file, raw))
            text = raw.decode("utf-8", "replace")
            if "\ufffd" in text:
                lost.append(
                    Loss("bytes that are no UTF-8, read as a replacement mark", text.count("\ufffd"), str(file))
                )
            texts.append(text.replace("\r\n", "\n").strip())
    return corpus_of(texts, tuple(files), tuple(lost))


def corpus_of(texts: Iterable[str], files: tuple[InputFile, ...] = (), lost: tuple[Loss, ...] = ()) -> Corpus:
    """The corpus of some texts. Raises `InputError` where none has any."""
    text = "\n\n".join(item for item in texts if item.strip())
    if not text:
        hint = f"folders are searched for {', '.join(SUFFIXES)}"
        raise InputError.expected("a corpus with text", f"{len(files)} files without any", where="CORPUS", hint=hint)
    starts = [0, *(match.end() for match in _BOUNDARY.finditer(text))]
    words = frozenset(re.findall(r"\w+", text.lower()))
    return Corpus(text, starts, words, files, lost)


def make(corpus: Corpus, recipe: Recipe) -> Made:
    """The contexts of a recipe. Raises `InputError` for a corpus or a context that is too short."""
    _check(recipe)
    words, cuts, spots = (np.random.default_rng(item) for item in SeedSequence(recipe.seed).spawn(3))
    drawn = _Drawn(corpus.words, words)
    contexts = []
    for length in recipe.lengths:
        for index in range(recipe.contexts):
            strata = _strata(index, recipe.needles)
            said = [drawn.needle() for _ in strata]
            contexts.append(_context(corpus, recipe, f"{length}-{index:04d}", length, said, (strata, cuts, spots)))
    return Made(tuple(contexts), drawn.again)


def _check(recipe: Recipe) -> None:
    for name, value in (("--contexts", recipe.contexts), ("--needles", recipe.needles)):
        if value < 1:
            raise InputError.expected("at least one", value, where=name)
    if recipe.needles > STRATA:
        hint = "more contexts instead: each fills every depth"
        raise InputError.expected(f"at most {STRATA} needles a context, one a depth", recipe.needles, where="--needles",
                                  hint=hint)  # fmt: skip
    if not recipe.lengths or len(set(recipe.lengths)) < len(recipe.lengths):
        raise InputError.expected("lengths, each once", recipe.lengths, where="--length")
    if not RATES[0] <= recipe.rate <= RATES[1]:
        hint = "English prose has about 0.25, other scripts one or more"
        expected = f"{RATES[0]} to {RATES[1]} tokens a character"
        raise InputError.expected(expected, recipe.rate, where="--tokens-per-char", hint=hint)


def _strata(index: int, needles: int) -> list[int]:
    """The depth strata of a context: evenly apart, and each stratum as often as any other over the contexts."""
    return sorted({(index + k * STRATA // needles) % STRATA for k in range(needles)})


class _Drawn:
    """Keys and values that neither the corpus nor another needle holds."""

    def __init__(self, taken: frozenset[str], rng: Generator) -> None:
        self._taken, self._rng, self._own, self.again = taken, rng, set[str](), 0

    def needle(self) -> tuple[str, str]:
        """A key of two words, and a number of seven digits."""
        for _ in range(_TRIES):
            first, second, value = self._word(), self._word(), str(self._rng.integers(10 ** (_DIGITS - 1), 10**_DIGITS))
            if not {first, second, value} & (self._taken | self._own):
                self._own |= {first, second, value}
                return f"{first} {second}", value
            self.again += 1
        hint = "a corpus of prose; this one holds nearly every number and word"
        raise InputError.expected(
            "a corpus without the needles", f"{_TRIES} draws that it holds", where="CORPUS", hint=hint
        )

    def _word(self) -> str:
        at = self._rng.integers(len(_CONSONANTS), size=_SYLLABLES), self._rng.integers(len(_VOWELS), size=_SYLLABLES)
        return "".join(chain.from_iterable((_CONSONANTS[c], _VOWELS[v]) for c, v in zip(*at, strict=True)))


def sentence(key: str, value: str) -> str:
    """What is hidden."""
    return f"The access code of {key} is {value}."


def question(keys: Sequence[str]) -> str:
    """What is asked at the end."""
    return f"What are the access codes of {', '.join(keys)}? Answer with one line for each, as NAME: CODE."


def _context(corpus: Corpus, recipe: Recipe, name: str, length: int, said: list[tuple[str, str]],
             drawn: tuple[list[int], Generator, Generator]) -> Context:  # fmt: skip
    strata, cuts, spots = drawn
    hidden = [f"{sentence(key, value)} " for key, value in said]
    order = spots.permutation(len(said)).tolist()  # a question in the order of the text is easier
    end = "\n\n" + question([said[index][0] for index in order])
    room = int(length / recipe.rate) - len(OPENING) - len(end) - sum(map(len, hidden))
    if room < sum(map(len, hidden)):
        got = f"{length:,} tokens, of which {len(said)} needles and their question take most"
        hint = "longer contexts, or fewer --needles"
        raise InputError.expected("a context that is mostly haystack", got, where="--length", hint=hint)
    hay = _piece(corpus, room, cuts)
    body = _hidden(hay, hidden, strata, spots)
    prompt = OPENING + body + end
    tokens = estimated_tokens(prompt, recipe.rate)
    found = placed(name, prompt, [value for _, value in said], tokens, [f"n{index}" for index in range(len(said))])
    keys = {value: key for key, value in said}
    return replace(found, needles=tuple(replace(item, key=keys[item.value]) for item in found.needles))


def _piece(corpus: Corpus, room: int, rng: Generator) -> str:
    """So many characters of the corpus, from the start of a sentence. Raises `InputError` for a shorter corpus."""
    last = len(corpus.text) - room
    if last < 0:
        hint = "more text, or shorter --length; a corpus is never repeated, which would repeat its facts"
        got = f"{len(corpus.text):,} characters"
        raise InputError.expected(f"a corpus of {room:,} characters or more", got, where="CORPUS", hint=hint)
    known = bisect_right(corpus.starts, last)
    start = corpus.starts[int(rng.integers(known))]
    return corpus.text[start : start + room]


def _hidden(hay: str, hidden: Sequence[str], strata: Sequence[int], rng: Generator) -> str:
    """The hay with every sentence in its stratum of what comes before the question, where one of its own begins."""
    total = len(OPENING) + len(hay) + sum(map(len, hidden))
    before = [0, *accumulate(map(len, hidden))]
    bounds = [match.end() for match in _BOUNDARY.finditer(hay)]
    pieces, at = [], 0
    for text, stratum, ahead in zip(hidden, strata, before[:-1], strict=True):
        lead = len(OPENING) + ahead + text.rindex(" ", 0, -1) + 1  # a needle stands where its value does
        low, high = (int(edge / STRATA * total) - lead for edge in (stratum, stratum + 1))
        share = (1 - _INSIDE) / 2 + _INSIDE * float(rng.random())
        place = _boundary(hay, bounds, int(low + share * (high - low)), (max(low + 1, at, 0), min(high, len(hay))))
        pieces += [hay[at:place], text]
        at = place
    return "".join([*pieces, hay[at:]]).rstrip()


def _boundary(hay: str, bounds: Sequence[int], wanted: int, inside: tuple[int, int]) -> int:
    """The sentence's start nearest to the place that is wanted, inside its stratum; else a space, else the place."""
    low, high = inside
    wanted = max(low, min(wanted, high))
    near = bisect_left(bounds, wanted)
    close = [b for b in bounds[max(0, near - 1) : near + 1] if low <= b < high]
    if close:
        return min(close, key=lambda place: abs(place - wanted))
    space = hay.rfind(" ", low, wanted)
    return space + 1 if space >= 0 else wanted
