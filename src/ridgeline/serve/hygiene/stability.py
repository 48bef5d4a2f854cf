"""How stable each piece of the prompt's head is over a log: what most requests share, and what changes."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ridgeline.serve.hygiene import patterns
from ridgeline.serve.hygiene.normalise import segments
from ridgeline.serve.hygiene.redact import redact
from ridgeline.serve.hygiene.request import Part, joined

MOST_SEGMENTS = 48
MOST_LABELS = 2000
STATIC = 0.5  # of the requests share a segment: it can stand in front of everything
_LABEL_BYTES = 32
_SPACES = re.compile(rb"\s+")


@dataclass(frozen=True)
class Segment:
    """A piece of the prompt's head: how many requests have it, the share of them with its commonest text, its size in
    bytes and its place in the prompt (both means).
    """

    label: str
    kind: str
    requests: int
    share: float
    size_bytes: float
    place: float


@dataclass
class _Seen:
    kind: str
    texts: Counter[int] = field(default_factory=Counter)
    count: int = 0
    size: int = 0
    place: int = 0


class Stability:
    """Collects a sample of requests; ``segments`` and ``static`` are what it found."""

    def __init__(self) -> None:
        self.sampled = 0
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._shared: Counter[int] = Counter()

    def add(self, parts: Iterable[Part]) -> None:
        """Count the head of one prompt: its tools, system prompt, and messages up to the first of the user."""
        self.sampled += 1
        parts = list(parts)
        pieces: list[tuple[str, str, bytes]] = []
        if tools := [part for part in parts if part.kind == "tools"]:
            pieces.append(("tools", f"{len(tools)} tools", joined(tools)))
        for part in _head(parts):
            for piece in segments(part):
                if len(pieces) < MOST_SEGMENTS:
                    pieces.append((part.kind, _label(part.kind, piece, len(pieces)), piece))
        for place, (kind, label, text) in enumerate(pieces):
            self._count(kind, label, text, place)
        for shared in {hash(piece.strip()) for kind, _, piece in pieces if kind != "tools" and piece.strip()}:
            if len(self._shared) < MOST_LABELS or shared in self._shared:
                self._shared[shared] += 1

    def _count(self, kind: str, label: str, text: bytes, place: int) -> None:
        if (kind, label) not in self._seen and len(self._seen) >= MOST_LABELS:
            return
        seen = self._seen.setdefault((kind, label), _Seen(kind))
        seen.count += 1
        seen.size += len(text)
        seen.place += place
        if len(seen.texts) < MOST_LABELS:
            seen.texts[hash(text)] += 1

    @property
    def static(self) -> frozenset[int]:
        """Hashes of the segments (stripped) that at least `STATIC` of the sampled prompts hold."""
        return frozenset(key for key, count in self._shared.items() if count >= STATIC * self.sampled > 1)

    def segments(self, most: int = 16) -> list[Segment]:
        """The largest segments that at least a tenth of the sample holds, the most stable first.

        The first words of a segment are shown only where half of the sample starts it so; the others at one place of
        the prompt are one segment.
        """
        groups: dict[tuple[str, str], list[_Seen]] = {}
        for (kind, label), seen in self._seen.items():
            rare = kind != "tools" and seen.count < STATIC * self.sampled
            shown = f"changing paragraph {round(seen.place / seen.count) + 1}" if rare else label
            groups.setdefault((kind, shown), []).append(seen)
        found = [self._segment(label, kind, group) for (kind, label), group in groups.items()]
        chosen = sorted((item for item in found if item.requests * 10 >= self.sampled), key=_weight)[:most]
        return sorted(chosen, key=lambda item: (-round(item.share, 2), item.place))

    def _segment(self, label: str, kind: str, group: list[_Seen]) -> Segment:
        count = sum(seen.count for seen in group)
        size, place = (sum(getattr(seen, name) for seen in group) / count for name in ("size", "place"))
        most = max(max(seen.texts.values()) for seen in group)
        return Segment(label, kind, count, most / self.sampled, size, place)


def _weight(item: Segment) -> float:
    return -item.size_bytes * item.requests


def _head(parts: Iterable[Part]) -> Iterable[Part]:
    for part in parts:
        if part.kind in ("system", "prompt", "user"):
            yield part
        if part.kind in ("user", "assistant", "tool"):
            return


def _label(kind: str, text: bytes, place: int) -> str:
    if kind == "user":  # what users write is not shown
        return f"first user message, paragraph {place}"
    line = text.strip().partition(b"\n")[0]
    line = patterns.digits_as_zero(patterns.without_identifiers(patterns.without_times(line)))
    return redact(_SPACES.sub(b" ", line)[:_LABEL_BYTES])
