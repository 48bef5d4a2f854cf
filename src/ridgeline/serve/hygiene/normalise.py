"""Fixes as functions on a prompt: what would be sent if one cause of difference were gone.

A fix touches only the kinds of parts in which the cause was found, so that text which happens to hold a time elsewhere
keeps its own bytes. Removing a value (a time, an identifier) stands for moving it behind everything that is shared.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import msgspec

from ridgeline.serve.hygiene.patterns import without_identifiers, without_times
from ridgeline.serve.hygiene.request import Part

CAUSES = {  # in the order in which they are applied
    "version": "differing versions of the system prompt or the tools",
    "timestamp": "a time or date",
    "identifier": "a request, session or user id",
    "counter": "a counter or random number",
    "content": "a short text of one user early in the prompt",
    "json_keys": "JSON keys in changing order",
    "whitespace": "white space",
    "tool_order": "tools in changing order",
    "order": "static text behind text that changes",
}
MOST_SLOTS = 16
_MEMORY_BYTES = 8 << 20  # of changed parts kept
_CONTEXT = 24
_WIDEST = 200
_SPACE = re.compile(rb"\s+")
_BREAK = re.compile(rb"(\n\s*\n)")
Parts = Sequence[Part]


@dataclass(frozen=True)
class Slot:
    """A place that holds a changing value: the bytes before it (never empty) and after it."""

    kind: str
    before: bytes
    after: bytes

    def pattern(self) -> "re.Pattern[bytes]":
        """The value between its neighbours."""
        end = re.escape(self.after) if self.after else rb"(?=\n|$)"
        return re.compile(rb"(%s)[^\n]{0,%d}?(%s)" % (re.escape(self.before), _WIDEST, end))


@dataclass(frozen=True, eq=False)
class Fix:
    """One cause removed. ``kinds``: the parts it was found in; ``slots`` of values without a form of their own;
    ``static``: hashes of the segments that most prompts share; ``standing``: the parts of one version, for all.
    """

    cause: str
    kinds: frozenset[str]
    slots: tuple[Slot, ...] = ()
    static: frozenset[int] = field(default_factory=frozenset)
    standing: tuple[Part, ...] = ()
    _done: dict[Part, Part] = field(default_factory=dict, repr=False)
    _held: list[int] = field(default_factory=lambda: [0], repr=False)

    def apply(self, parts: Parts) -> list[Part]:
        """The parts without the cause."""
        return _APPLY[self.cause](self, parts)

    def once(self, part: Part, change: "Callable[[Fix, Part], bytes]") -> Part:
        """A changed part; those met lately are not worked out again, for conversations send theirs on every turn."""
        done = self._done.get(part)
        if done is None:
            if self._held[0] > _MEMORY_BYTES:
                self._done.clear()
                self._held[0] = 0
            done = self._done[part] = Part(part.kind, change(self, part))
            self._held[0] += 2 * len(part.text)
        return done


def apply(fixes: Iterable[Fix], parts: Parts) -> list[Part]:
    """Several fixes together, in the order of `CAUSES`."""
    result = list(parts)
    for fix in sorted(fixes, key=lambda item: list(CAUSES).index(item.cause)):
        result = fix.apply(result)
    return result


def sorted_json(text: bytes) -> bytes:
    """A JSON document with its keys sorted at every level; any other text as it is."""
    if text[:1] not in (b"{", b"["):
        return text
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="sorted")
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text


def collapsed(text: bytes) -> bytes:
    """Runs of white space as one blank, none at the ends."""
    return _SPACE.sub(b" ", text).strip()


def sorted_tools(parts: Parts) -> list[Part]:
    """Neighbouring tools in the order of their bytes."""
    result: list[Part] = []
    for kind, run in groupby(parts, key=lambda part: part.kind):
        members = list(run)
        result += sorted(members) if kind == "tools" else members
    return result


def segments(part: Part) -> list[bytes]:
    """A part cut at its empty lines, or at its lines where it has no empty one; joined they are the part again."""
    pieces = _BREAK.split(part.text)
    if len(pieces) == 1:
        return part.text.splitlines(keepends=True)
    return [piece for i in range(0, len(pieces), 2) if (piece := b"".join(pieces[i : i + 2]))]


def _each(change: Callable[[Fix, Part], bytes]) -> Callable[[Fix, Parts], list[Part]]:
    def fixed(fix: Fix, parts: Parts) -> list[Part]:
        return [fix.once(part, change) if part.kind in fix.kinds else part for part in parts]

    return fixed


def _fill(fix: Fix, part: Part) -> bytes:
    text = part.text
    for slot in fix.slots:
        if slot.kind == part.kind and slot.before in text:
            text = slot.pattern().sub(rb"\1\2", text, count=1)
    return text


def _one_version(fix: Fix, parts: Parts) -> list[Part]:
    head = [part for part in parts if part.kind in fix.kinds]
    if not head:
        return list(parts)
    rest = [part for part in parts if part.kind not in fix.kinds]
    return [*fix.standing, *rest]


def _static_first(fix: Fix, parts: Parts) -> list[Part]:
    """Segments that most prompts share, then the rest; history keeps its order behind them."""
    shared: list[Part] = []
    rest: list[Part] = []
    for part in parts:
        if part.kind not in fix.kinds:
            rest.append(part)
            continue
        pieces = segments(part)
        steady = [not piece.strip() or hash(piece.strip()) in fix.static for piece in pieces]
        if all(steady):
            shared.append(part)
            continue
        for keep, into in ((True, shared), (False, rest)):
            chosen = [piece for piece, static in zip(pieces, steady, strict=True) if static is keep]
            if chosen:
                into.append(Part(part.kind, b"".join(chosen)))
    return shared + rest


_APPLY: dict[str, Callable[[Fix, Parts], list[Part]]] = {
    "version": _one_version,
    "timestamp": _each(lambda _, part: without_times(part.text)),
    "identifier": _each(lambda _, part: without_identifiers(part.text)),
    "counter": _each(_fill),
    "content": _each(_fill),
    "json_keys": _each(lambda _, part: sorted_json(part.text)),
    "whitespace": _each(lambda _, part: collapsed(part.text)),
    "tool_order": lambda _, parts: sorted_tools(parts),
    "order": _static_first,
}


def slot_of(kind: str, text: bytes, start: int, end: int) -> Slot | None:
    """The slot around ``text[start:end]``, or None where nothing on its line stands before it."""
    line = text.rfind(b"\n", 0, start) + 1
    before = text[max(line, start - _CONTEXT) : start]
    after = text[end : end + 8].partition(b"\n")[0]
    return Slot(kind, before, after) if before.strip() else None
