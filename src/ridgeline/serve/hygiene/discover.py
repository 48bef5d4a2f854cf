"""The causes in a log: each sampled request beside an earlier one of its conversation, or one sent just before."""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from ridgeline.serve.hygiene.diverge import Cause, causes
from ridgeline.serve.hygiene.normalise import CAUSES, MOST_SLOTS, Fix, Slot
from ridgeline.serve.hygiene.patterns import digits_as_zero
from ridgeline.serve.hygiene.request import Part, Request
from ridgeline.serve.hygiene.stability import Stability

SAMPLE = 300  # requests looked at one by one; after them every second, third, ... so that the cost stays bounded
REFERENCE_BYTES = 48 << 20  # of earlier prompts held for comparison
RECENT = 6
VERSION_REQUESTS = 4  # on average share a system prompt and tools that are a version
LEAST_PAIRS = 2  # in which a cause must show


@dataclass
class Found:
    """One cause over the sample: pairs that show it, where it stands (kinds, bytes from the start), an example."""

    name: str
    pairs: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    slots: "OrderedDict[Slot, int]" = field(default_factory=OrderedDict)
    places: list[int] = field(default_factory=list)
    example: Cause | None = None
    lines: tuple[int, int] = (0, 0)

    @property
    def at_bytes(self) -> float:
        """Bytes of the prompt before the difference, at the median of the pairs."""
        return median(self.places)


class Discovery:
    """Looks at requests as they pass. ``fixes()`` are the causes that showed."""

    def __init__(self) -> None:
        self.found: dict[str, Found] = {}
        self.examined = 0
        self.stability = Stability()
        self._references: OrderedDict[tuple[str, bytes], Request] = OrderedDict()
        self._recent: deque[Request] = deque(maxlen=RECENT)
        self._held = 0
        self._passed = 0
        self._heads: set[int] = set()
        self._first: dict[str, tuple[Part, ...]] = {}

    def see(self, request: Request) -> None:
        """Compare one request with those before it, and keep it for those after."""
        if not request.parts:
            return
        key = (request.model, _opening(request.parts))
        if self._passed % (1 + self._passed // SAMPLE) == 0:
            self.examined += 1
            self.stability.add(request.parts)
            if len(self._heads) < SAMPLE:
                self._heads.add(hash(tuple(part for part in request.parts if part.kind in ("system", "tools"))))
            self._examine(request, key)
        self._passed += 1
        self._keep(request, key)

    def _examine(self, request: Request, key: tuple[str, bytes]) -> None:
        for earlier in self._candidates(request, key):
            met = causes(earlier.parts, request.parts, same=earlier is self._references.get(key))
            for cause in met:
                self._count(cause, (earlier.line, request.line))
            if met:
                return

    def _candidates(self, request: Request, key: tuple[str, bytes]) -> Iterator[Request]:
        own = self._references.get(key)
        if own is not None:
            yield own
        yield from (item for item in reversed(self._recent) if item is not own and item.model == request.model)

    def _count(self, cause: Cause, lines: tuple[int, int]) -> None:
        found = self.found.setdefault(cause.name, Found(cause.name))
        found.pairs += 1
        found.kinds[cause.kind] += 1
        found.places.append(cause.at)
        if cause.slot is not None:
            found.slots[cause.slot] = found.slots.get(cause.slot, 0) + 1
        if found.example is None:
            found.example, found.lines = cause, lines

    def _keep(self, request: Request, key: tuple[str, bytes]) -> None:
        for kind in ("system", "tools"):
            if kind not in self._first and any(part.kind == kind for part in request.parts):
                self._first[kind] = tuple(part for part in request.parts if part.kind == kind)
        gone = self._references.pop(key, None)
        self._held += _size(request) - (_size(gone) if gone else 0)
        self._references[key] = request
        self._recent.append(request)
        while self._held > REFERENCE_BYTES and len(self._references) > 1:
            _, oldest = self._references.popitem(last=False)
            self._held -= _size(oldest)

    def fixes(self) -> list[tuple[Found, Fix]]:
        """Each cause that showed often enough with its fix, the one nearest to the start of the prompt first."""
        least = min(LEAST_PAIRS, self.examined - 1)
        shown = [found for found in self.found.values() if found.pairs >= max(1, least)]
        return [(found, self._fix(found)) for found in sorted(shown, key=lambda item: (item.at_bytes, item.name))]

    def _fix(self, found: Found) -> Fix:
        kinds = frozenset(found.kinds)
        slots = tuple(sorted(found.slots, key=lambda slot: -found.slots[slot])[:MOST_SLOTS])
        few = len(self._heads) * VERSION_REQUESTS <= self.examined
        if found.name == "order" and kinds <= {"system", "tools"} and few:
            found.name = "version"  # whole texts that come back are versions, not data of one request
        if found.name == "order":
            return Fix("order", frozenset({"system", "user", "prompt"}), static=self.stability.static)
        if found.name == "version":
            standing = tuple(
                part for kind in ("tools", "system") if kind in kinds for part in self._first.get(kind, ())
            )
            return Fix("version", kinds, standing=standing)
        assert found.name in CAUSES, found.name
        return Fix(found.name, kinds, slots)


def _opening(parts: tuple[Part, ...]) -> bytes:
    """What names a conversation: its first message of the user, with numbers left out."""
    first = next((part.text for part in parts if part.kind == "user"), parts[-1].text)
    return digits_as_zero(first[:512])


def _size(request: Request) -> int:
    return sum(len(part.text) for part in request.parts)
