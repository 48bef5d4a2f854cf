"""Where the needles of a prompt stand, recomputed from its text, and whether an answer holds one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ridgeline.core.catalog import constant

TAIL = 2000  # characters; the question at the end of a prompt is shorter
_ENDS = (". ", "! ", "? ")


@dataclass(frozen=True)
class Needle:
    """A value hidden in a prompt. ``start`` counts characters, ``position`` tokens, both from the prompt's start.

    ``depth`` is the share of the text before the question that stands before the needle.
    """

    id: str
    value: str
    start: int
    position: int
    depth: float
    key: str = ""


@dataclass(frozen=True)
class Unplaced:
    """A value that stands ``times`` in the text of a context: never or more than once, so that it has no position."""

    context: str
    value: str
    times: int


@dataclass(frozen=True)
class Context:
    """A prompt with its needles in order; ``length`` is in tokens, the question included."""

    id: str
    prompt: str
    length: int
    needles: tuple[Needle, ...]
    unplaced: tuple[Unplaced, ...] = ()


def tokens_per_character() -> float:
    """The house's estimate for text whose tokens nobody counted."""
    return float(constant("gate.canary.tokens").base)


def estimated_tokens(text: str, per_character: float) -> int:
    """The tokens of a text by its characters, rounded up and at least one."""
    return max(1, -int(-len(text) * per_character // 1))


def question_start(text: str) -> int:
    """Where the last question of a prompt begins, which may repeat what the needles say.

    It is the line with the last question mark, or the last line where no question mark stands near the end. Where that
    line is the whole prompt, its last sentence.
    """
    body = text.rstrip()
    end = body.rfind("?")
    if end < 0 or len(body) - end > TAIL:
        end = len(body) - 1
    line = body.rfind("\n", 0, max(end, 0)) + 1
    if end - line <= TAIL and line:
        return line
    sentence = max(body.rfind(mark, line, max(end - 1, line)) for mark in _ENDS)
    return max(line, sentence + 2) if sentence >= 0 else line or len(body)


def places(text: str, value: str) -> list[int]:
    """Every place where ``value`` stands as a word of its own."""
    found, at = [], text.find(value)
    while at >= 0 and value:
        end = at + len(value)
        if not (_joins(text[at - 1 : at], value[0]) or _joins(value[-1], text[end : end + 1])):
            found.append(at)
        at = text.find(value, at + 1)
    return found


def _joins(left: str, right: str) -> bool:
    """Whether two characters belong to one word of letters and digits; scripts without spaces have no such words."""
    return all(c.isascii() and (c.isalnum() or c == "_") for c in (left, right)) if left and right else False


def is_found(value: str, answer: str) -> bool:
    """Whether an answer holds the value as a word of its own, in upper or lower case."""
    return bool(places(answer.lower(), value.lower()))


def answered(answer: str, asked: Sequence[tuple[str, str]]) -> list[bool]:
    """Whether an answer holds each of some (key, value) pairs; a value beside the key of another needle is not found.

    Where keys and values take turns in a line they belong together; in another line that names keys its own must be
    among them. A line that names no key counts whole.
    """
    lines = answer.lower().splitlines()
    return [any(_bound(line, key.lower(), value.lower(), asked) for line in lines) for key, value in asked]


def _bound(line: str, key: str, value: str, asked: Sequence[tuple[str, str]]) -> bool:
    at = places(line, value)
    if not at or not key:
        return bool(at)
    named = {start: name.lower() for name, _ in asked if name for start in places(line, name.lower())}
    if not named:
        return True
    if key not in named.values():
        return False
    values = {start for _, other in asked for start in places(line, other.lower())}
    order = sorted([*named, *values])
    turns = [start in named for start in order]
    if len(order) % 2 or any(one == other for one, other in pairwise(turns)):
        return True
    step = -1 if turns[0] else 1  # the key stands before its value, or after it
    return any(named[order[order.index(start) + step]] == key for start in at)


def placed(name: str, prompt: str, values: list[str], length: int, ids: list[str] | None = None) -> Context:
    """The context of a prompt with every needle's position recomputed from the text before the question.

    A position in tokens is the character's share of the prompt times ``length``.
    """
    end = question_start(prompt)
    body, needles, unplaced = prompt[:end], [], []
    for index, value in enumerate(values):
        at = places(body, value)
        if len(at) != 1 or values.count(value) > 1:
            unplaced.append(Unplaced(name, value, len(at) if values.count(value) == 1 else values.count(value)))
            continue
        position = round(at[0] / max(len(prompt), 1) * length)
        label = ids[index] if ids else f"n{index}"
        needles.append(Needle(label, value, at[0], position, at[0] / max(end, 1)))
    return Context(name, prompt, length, tuple(needles), tuple(unplaced))
