"""Where two prompts part, whether they agree again, and what stands between: the cause of a lost prefix."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ridgeline.serve.hygiene import patterns
from ridgeline.serve.hygiene.normalise import Fix, Slot, apply, collapsed, slot_of, sorted_json, sorted_tools
from ridgeline.serve.hygiene.request import HEADERS, Part

LEAST_SHARED_BYTES = 256  # agreement after the difference; less is two prompts that part for good
ROUNDS = 10  # causes that may stack up in one pair
_RESUME_BYTES = 24  # equal bytes that count as agreeing again
_SPAN_BYTES = 4096  # a longer difference is a different text
_SHORT_BYTES = 80
_PROBES = 48
_FREE, _HISTORY = ("content", "order", "counter"), ("user", "assistant", "tool")


@dataclass(frozen=True)
class Cause:
    """Why two prompts part. ``at``: bytes of the prompt before the first difference; ``before``, ``first``, ``second``:
    the text before it and what each prompt has there; ``slot`` for a value without a form of its own.
    """

    name: str
    kind: str
    at: int
    before: bytes
    first: bytes
    second: bytes
    slot: Slot | None = None

    @property
    def fix(self) -> Fix:
        """The fix that this pair alone calls for."""
        return Fix(self.name, frozenset({self.kind}), (self.slot,) if self.slot else ())


def common_prefix(a: bytes, b: bytes) -> int:
    """How many leading bytes two texts share."""
    size = min(len(a), len(b))
    if a[:size] == b[:size]:
        return size
    for start in range(0, size, 1 << 16):
        one, two = (np.frombuffer(text, np.uint8)[start : min(size, start + (1 << 16))] for text in (a, b))
        differs = one != two
        if differs.any():
            return start + int(differs.argmax())
    return size


def causes(a: Sequence[Part], b: Sequence[Part], *, same: bool = True) -> list[Cause]:
    """Every cause for which two prompts part although they agree again, in the order met.

    After each the fix is applied to both, so that the next one shows. Empty where they part for good: another question,
    or one that only goes on. ``same`` says that both are of one conversation: of two, messages with other dates or ids
    are other questions.
    """
    found: list[Cause] = []
    one, two = list(a), list(b)
    for _ in range(ROUNDS):
        cause = _first(one, two, _FREE if same else (*_FREE, "timestamp", "identifier"))
        if cause is None or any((cause.name, cause.kind, cause.slot) == (c.name, c.kind, c.slot) for c in found):
            break
        found.append(cause)
        if cause.name in ("version", "order"):
            break
        one, two = (apply([cause.fix], parts) for parts in (one, two))
    return found


def _first(a: list[Part], b: list[Part], free: Sequence[str]) -> Cause | None:
    index = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    if index is None or a[index].kind != b[index].kind:
        return None
    kind, one, two = a[index].kind, a[index].text, b[index].text
    later = Counter(a[index + 1 :]) & Counter(b[index + 1 :])
    behind = sum(len(part.text) * count for part, count in later.items())
    at = sum(len(HEADERS[part.kind]) + len(part.text) + 1 for part in a[:index]) + len(HEADERS[kind])
    split = common_prefix(one, two)
    here = Cause(
        "", kind, at + split, one[max(0, split - 40) : split], one[split : split + 48], two[split : split + 48]
    )
    if kind == "tools" and (name := _tools(a, b)):
        return _named(here, name)
    inside = _agreement(one, two, split)
    if behind + inside < LEAST_SHARED_BYTES:
        return None
    cause = _in_part(here, one, two, split)
    if cause is not None and cause.name in free and kind in _HISTORY and inside < LEAST_SHARED_BYTES:
        return None  # another turn of another conversation
    return cause


def _named(cause: Cause, name: str, **changes: object) -> Cause:
    values = {**vars(cause), "name": name, **changes}
    return Cause(**values)


def _tools(a: list[Part], b: list[Part]) -> str:
    """Whether two lists of tools differ only in order, or have other members."""
    one, two = ([part for part in parts if part.kind == "tools"] for parts in (a, b))
    if sorted(one) == sorted(two):
        return "tool_order"
    steady = [sorted_tools([Part(p.kind, sorted_json(p.text)) for p in parts]) for parts in (one, two)]
    if steady[0] == steady[1]:
        return "json_keys"
    names = [sorted(part.text[:64] for part in parts) for parts in (one, two)]
    return "version" if len(one) != len(two) or names[0] != names[1] else ""


def _in_part(here: Cause, one: bytes, two: bytes, split: int) -> Cause | None:
    keyed = sorted_json(one), sorted_json(two)
    if keyed != (one, two) and (keyed[0] == keyed[1] or common_prefix(*keyed) > split + _RESUME_BYTES):
        return _named(here, "json_keys")
    if collapsed(one) == collapsed(two):
        return _named(here, "whitespace")
    for name in patterns.FORMS:
        mine, other = (patterns.covering(name, text, split) for text in (one, two))
        if mine is None or other is None:
            continue
        (start, end), (begin, stop) = mine, other
        shown = {"before": one[max(0, start - 40) : start], "first": one[start:end], "second": two[begin:stop]}
        if name != "counter":
            return _named(here, name, **shown)
        slot = slot_of(here.kind, one, start, end)
        return _named(here, name, slot=slot, **shown) if slot else None
    return _text(here, one, two, split)


def _text(here: Cause, one: bytes, two: bytes, split: int) -> Cause | None:
    start = _word_start(one, split)
    resumed = _resume(one, two, split)
    if resumed is not None:
        end, stop = resumed
        while end > start and stop > start and one[end - 1] == two[stop - 1] and one[end - 1 : end].isalnum():
            end, stop = end - 1, stop - 1  # a common end of two words belongs to both
        first, second = one[start:end], two[start:stop]
        short = max(len(first), len(second)) <= _SHORT_BYTES and b"\n" not in first + second
        slot = slot_of(here.kind, one, start, end) if short else None
        if slot is not None:
            return _named(
                here, "content", first=first, second=second, slot=slot, before=one[max(0, start - 40) : start]
            )
    similar = _agreement(one, two, split)
    if here.kind in ("system", "tools") and similar >= 0.5 * min(len(one), len(two)) - split:
        return _named(here, "version")
    return _named(here, "order")


def _word_start(text: bytes, at: int) -> int:
    while at > 0 and text[at - 1 : at].isalnum():
        at -= 1
    return at


def _resume(one: bytes, two: bytes, split: int) -> tuple[int, int] | None:
    """The ends of the shortest differing spans after which both texts agree for `_RESUME_BYTES`."""
    first, second = one[split : split + _SPAN_BYTES], two[split : split + _SPAN_BYTES]
    places: dict[bytes, int] = {}
    for i in range(len(first) - _RESUME_BYTES + 1):
        places.setdefault(first[i : i + _RESUME_BYTES], i)
    for j in range(len(second) - _RESUME_BYTES + 1):
        i = places.get(second[j : j + _RESUME_BYTES], -1)
        if i >= 0:
            return split + i, split + j
    tail = min(len(first), len(second), _RESUME_BYTES)
    same = next((n for n in range(tail, 0, -1) if one[-n:] == two[-n:]), 0)
    return (len(one) - same, len(two) - same) if max(len(one), len(two)) - split <= _SPAN_BYTES else None


def _agreement(one: bytes, two: bytes, split: int) -> int:
    """About how many bytes of ``two`` after the difference are in ``one`` too, from evenly spaced probes."""
    left = len(two) - split
    if left < _RESUME_BYTES:
        return 0
    rest = one[split:]
    step = max(1, (left - _RESUME_BYTES) // _PROBES)
    probes = range(split, len(two) - _RESUME_BYTES + 1, step)
    return left * sum(two[k : k + _RESUME_BYTES] in rest for k in probes) // len(probes)
