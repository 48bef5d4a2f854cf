"""A canary set: JSON lines of prompts with their needles, this project's or RULER's, told by a hash of its content."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.gate.canary.needles import Context, Needle, estimated_tokens, placed, tokens_per_character
from ridgeline.gate.evidence.files import records


@dataclass(frozen=True)
class CanarySet:
    """Contexts by their id; ``sha256`` covers ids, prompts and values, in any order of the lines."""

    contexts: Mapping[str, Context]
    sha256: str
    file: InputFile
    lost: tuple[Loss, ...] = ()

    @property
    def longest(self) -> int:
        """Tokens of the longest context."""
        return max(item.length for item in self.contexts.values())


def hash_of(contexts: Sequence[Context]) -> str:
    """The hash of a set, by content and not by order."""
    parts = sorted(
        [item.id, hashlib.sha256(item.prompt.encode("utf-8", "surrogatepass")).hexdigest(), *_values(item)]
        for item in contexts
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _values(item: Context) -> list[str]:
    return sorted([needle.value for needle in item.needles] + [gone.value for gone in item.unplaced])


def read_set(path: Path) -> CanarySet:
    """The canary set of a file. Raises `InputError` for no context, one without a prompt, or two of one id or text."""
    held = records(path)
    contexts: dict[str, Context] = {}
    texts: dict[str, str] = {}
    for number, row in zip(held.lines, held.rows, strict=True):
        item = context_of(row, f"{path}, line {number}")
        if item.id in contexts:
            hint = "an id is what results are found by; give every context its own"
            raise InputError.expected("one context an id", item.id, where=f"{path}, line {number}", hint=hint)
        if item.prompt in texts:
            hint = "a text that is asked twice is one context"
            raise InputError.expected("a text of its own in every context", f"that of {texts[item.prompt]!r}",
                                      where=f"{path}, line {number}", hint=hint)  # fmt: skip
        contexts[item.id], texts[item.prompt] = item, item.id
    return CanarySet(contexts, hash_of(list(contexts.values())), held.file, held.lost)


def context_of(row: Mapping[str, Any], where: str) -> Context:
    """A context of this project (``prompt``, ``needles``) or of RULER (``input``, ``outputs``).

    Raises `InputError` for a row without text or needles.
    """
    ruler = "input" in row
    text, needles = (row.get("input"), row.get("outputs")) if ruler else (row.get("prompt"), row.get("needles"))
    if not isinstance(text, str) or not text.strip():
        raise InputError.expected("a prompt", text, where=where, hint="the field prompt, or input in RULER's form")
    if not isinstance(needles, list) or not needles:
        raise InputError.expected("a list of needles", needles, where=where, hint="needles, or outputs in RULER's form")
    name = str(row.get("index" if ruler else "id", ""))
    if not name:
        raise InputError.expected("an id", "none", where=where)
    prompt = text if not ruler else text + str(row.get("answer_prefix") or "")
    return _placed(name, prompt, needles, row, where)


def _placed(name: str, prompt: str, needles: list[Any], row: Mapping[str, Any], where: str) -> Context:
    length = row.get("length")
    tokens = length if isinstance(length, int) and length > 0 else estimated_tokens(prompt, tokens_per_character())
    if not all(isinstance(item, Mapping) for item in needles):
        return placed(name, prompt, [str(item) for item in needles], tokens)
    values = [str(item.get("value", "")) for item in needles]
    if not all(values):
        raise InputError.expected("a value of every needle", "an empty one", where=where)
    ids = [str(item.get("id", f"n{index}")) for index, item in enumerate(needles)]
    keys = {value: str(item.get("key", "")) for value, item in zip(values, needles, strict=True)}
    found = placed(name, prompt, values, tokens, ids)
    return replace(found, needles=tuple(replace(item, key=keys[item.value]) for item in found.needles))


def where_of(needle: Needle) -> dict[str, float]:
    """Where a needle stands, as files say it."""
    return {"start": needle.start, "position": needle.position, "depth": round(needle.depth, 6)}


def line_of(context: Context, **more: Any) -> str:
    """One line of a set's file."""
    needles = [{"id": item.id, "key": item.key, "value": item.value, **where_of(item)} for item in context.needles]
    row = {"id": context.id, "length": context.length, **more, "needles": needles, "prompt": context.prompt}
    return json.dumps(row, ensure_ascii=False) + "\n"
