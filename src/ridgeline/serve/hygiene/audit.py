"""The audit of a log: what a prefix cache gave, could give as the prompts were sent, and could give once each cause of
difference is gone. Two passes over the file; hashes are held, text is not.
"""

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError
from ridgeline.serve.hygiene import log
from ridgeline.serve.hygiene.blocks import Hashed, given_prefixes, hash_prefixes
from ridgeline.serve.hygiene.capacity import Held
from ridgeline.serve.hygiene.discover import Discovery, Found
from ridgeline.serve.hygiene.ledger import Ledger
from ridgeline.serve.hygiene.normalise import Fix, apply
from ridgeline.serve.hygiene.request import Request, joined
from ridgeline.serve.hygiene.tree import MOST_SLOTS, Tree

BATCH_BYTES, BATCH_REQUESTS = 2 << 20, 2000
_LARGEST_BLOCK = 2**16  # tokens: longer than most prompts
DEPTHS = 22  # powers of two of tokens in the sketch of the tree
_ALL_SLOTS = 1 << 25  # 256 MiB of hashes in all trees of the second pass
_LEAST_SLOTS = 1 << 18


def _bytes_per_token() -> float:
    return float(constant("hygiene.text.bytes_per_token").value)


@dataclass(frozen=True)
class Cache:
    """How the cache counts: blocks of ``block_tokens``, nothing below ``minimum_tokens``, blocks unused for ``ttl_s``
    gone, at most ``capacity_tokens`` held. ``bytes_per_token`` estimates tokens where a log has no counts.
    """

    block_tokens: int
    minimum_tokens: float = 0.0
    ttl_s: float = math.inf
    capacity_tokens: float = math.inf
    bytes_per_token: float = field(default_factory=_bytes_per_token)

    def __post_init__(self) -> None:
        if self.block_bytes % 8 or not 2 <= self.block_tokens <= _LARGEST_BLOCK:
            text = f"a block of an even number of tokens, 2 to {_LARGEST_BLOCK:,}"
            raise InputError.expected(text, self.block_tokens, where="--block")

    @property
    def block_bytes(self) -> int:
        """Bytes of text that make a block."""
        return round(self.block_tokens * self.bytes_per_token)


@dataclass
class Meter:
    """Hits summed over requests. ``reach[k]`` and ``hit[k]``: requests of at least 2^k tokens, and those of them whose
    first 2^k tokens were found.
    """

    requests: int = 0
    tokens: float = 0.0
    hit_tokens: float = 0.0
    reach: NDArray[np.int64] = field(default_factory=lambda: np.zeros(DEPTHS, np.int64))
    hit: NDArray[np.int64] = field(default_factory=lambda: np.zeros(DEPTHS, np.int64))

    @property
    def rate(self) -> float:
        """Hit tokens over prompt tokens."""
        return self.hit_tokens / self.tokens if self.tokens else 0.0

    def add(self, tokens: NDArray[np.float64], hits: NDArray[np.float64]) -> None:
        """Requests of a batch."""
        self.requests += len(tokens)
        self.tokens += float(tokens.sum())
        self.hit_tokens += float(hits.sum())
        depths = 2.0 ** np.arange(DEPTHS)
        self.reach += (tokens[:, None] >= depths).sum(axis=0)
        self.hit += (hits[:, None] >= depths).sum(axis=0)


@dataclass
class Effect:
    """One cause: requests that would find more if it alone were gone, the hits then, and the hits with the causes
    nearer to the start of the prompt gone too (``together``; ``before`` it the same without this one). ``left``: the
    hits if it alone remained.
    """

    found: Found
    fix: Fix
    requests: int = 0
    alone: Meter = field(default_factory=Meter)
    before: Meter = field(default_factory=Meter)
    together: Meter = field(default_factory=Meter)
    left: Meter = field(default_factory=Meter)
    best: Meter = field(default_factory=Meter)

    @property
    def tokens(self) -> float:
        """Prompt tokens that were computed again for this cause; over all causes they add up."""
        return max(0.0, self.together.hit_tokens - self.before.hit_tokens)

    @property
    def share(self) -> float:
        """Of all prompt tokens: those that it costs by itself, or would if every other cause were gone."""
        return max(self.tokens, self.best.hit_tokens - self.left.hit_tokens) / max(self.alone.tokens, 1.0)


@dataclass
class Achieved:
    """What the server counted: requests with usage fields, their tokens, those cached, lines with impossible counts."""

    requests: int = 0
    tokens: float = 0.0
    cached: float = 0.0
    impossible: list[int] = field(default_factory=list)

    def add(self, request: Request) -> None:
        """One request; a count above the prompt, negative or not finite is set aside with its line."""
        total, cached = request.usage.prompt_tokens, request.usage.cached_tokens
        possible = total is not None and math.isfinite(total) and total >= 0
        if cached is None:
            if total is not None and not possible:
                self.impossible.append(request.line)
            return
        if total is None or not possible or not 0 <= cached <= total:
            self.impossible.append(request.line)
            return
        self.requests += 1
        self.tokens += total
        self.cached += cached


@dataclass
class Audit:
    """Everything that was found. ``exact`` counts requests whose tokens the log gives, ``models`` their tokens;
    ``limited`` is the hit rate of a cache of the stated capacity, as sent and with every cause gone.
    """

    path: Path
    cache: Cache
    ledger: Ledger
    discovery: Discovery
    sent: Meter = field(default_factory=Meter)
    unlimited: Meter = field(default_factory=Meter)
    achieved: Achieved = field(default_factory=Achieved)
    effects: list[Effect] = field(default_factory=list)
    limited: tuple[float, float] | None = None
    exact: int = 0
    unique_tokens: float = 0.0
    level: int = 0
    models: dict[str, float] = field(default_factory=dict)
    first_s: float = math.nan
    last_s: float = math.nan

    @property
    def fixed(self) -> Meter:
        """Hits with every cause gone."""
        return self.effects[-1].together if self.effects else self.sent


def audit(path: Path, cache: Cache, sort_bytes: int = log.SORT_BYTES) -> Audit:
    """Read a log once, and a second time where there is something to fix.

    Raises `InputError` for a file that cannot be opened or that holds no readable request.
    """
    found = Audit(path, cache, Ledger(), Discovery())
    ledger = found.ledger
    walk = Walk(cache, MOST_SLOTS, holds=True)
    for batch in batches(log.requests(path, ledger, sort_bytes)):
        for request in batch:
            found.achieved.add(request)
            found.discovery.see(request)
        walk.add(batch, [content(request) for request in batch])
        _stamp(found, batch)
    if not walk.meter.requests:
        raise InputError.expected("a log of requests", "no readable one", where=str(path),
                                  hint="; ".join(ledger.lost()) or "the file is empty")  # fmt: skip
    found.sent, found.unlimited = walk.meter, walk.unlimited
    found.exact, found.unique_tokens, found.level = walk.exact, walk.unique_tokens, walk.level
    found.models = walk.models
    limited = walk.limited()
    if pairs := found.discovery.fixes():
        found.effects, after = _effects(found, pairs, sort_bytes)
    else:
        after = limited
    found.limited = None if limited is None or after is None else (limited, after)
    return found


def content(request: Request) -> bytes:
    """The bytes that are hashed; none where the log gives hashes."""
    return b"" if request.hashes is not None else request.content


def batches(requests: Iterable[Request]) -> Iterator[list[Request]]:
    """Requests in groups of bounded size that either all have content or all have hashes."""
    group: list[Request] = []
    size = 0
    for request in requests:
        given = request.hashes is not None
        if group and (size > BATCH_BYTES or len(group) >= BATCH_REQUESTS or given != (group[0].hashes is not None)):
            yield group
            group, size = [], 0
        group.append(request)
        size += sum(len(part.text) for part in request.parts)
        size += 4 * len(request.ids) if request.ids is not None else 0
    if group:
        yield group


def _stamp(found: Audit, batch: Sequence[Request]) -> None:
    times = [request.time_s for request in batch if not math.isnan(request.time_s)]
    if times:
        found.first_s = min(times) if math.isnan(found.first_s) else min(found.first_s, *times)
        found.last_s = max(times) if math.isnan(found.last_s) else max(found.last_s, *times)


class Walk:
    """One version of the prompts through its own tree; ``meter`` counts as the cache does, ``unlimited`` every hit."""

    def __init__(self, cache: Cache, slots: int, *, holds: bool = False) -> None:
        self.cache = cache
        self._held = Held() if holds and math.isfinite(cache.capacity_tokens) else None
        self.meter, self.unlimited = Meter(), Meter()
        self.exact = 0
        self.models: dict[str, float] = {}
        self._tree = Tree(slots, cache.ttl_s)
        self._forever = Tree(slots) if math.isfinite(cache.ttl_s) else None
        self._block = float(cache.block_tokens)

    @property
    def level(self) -> int:
        """How often the block was doubled to stay in memory."""
        return self._tree.level

    @property
    def unique_tokens(self) -> float:
        """Tokens of distinct blocks: what a cache would hold to forget nothing."""
        return (self._forever or self._tree).unique * self._block

    def limited(self) -> float | None:
        """The hit rate of a cache of the stated capacity; None where none was stated."""
        if self._held is None:
            return None
        return self._held.hit_tokens(self.cache.capacity_tokens, self._block) / max(self.meter.tokens, 1.0)

    def add(self, batch: Sequence[Request], texts: Sequence[bytes]) -> NDArray[np.float64]:
        """Hit tokens of each request, (n,), as the cache counts them."""
        hashed = self._hash(batch, texts)
        times = np.maximum.accumulate(np.nan_to_num(np.array([request.time_s for request in batch]), nan=-math.inf))
        tokens = np.array([self._tokens(request, len(text)) for request, text in zip(batch, texts, strict=True)])
        per_block = self._per_block(batch, texts, tokens)
        if self._held is not None:
            self._held.add(hashed, per_block, tokens)
        hits = np.minimum(self._tree.add(hashed, times) * per_block, tokens)
        every = hits if self._forever is None else np.minimum(self._forever.add(hashed, times) * per_block, tokens)
        hits = np.where(hits >= self.cache.minimum_tokens, hits, 0.0)
        self.meter.add(tokens, hits)
        self.unlimited.add(tokens, every)
        return hits

    def _hash(self, batch: Sequence[Request], texts: Sequence[bytes]) -> Hashed:
        salts = [zlib.crc32(f"{request.model}|{request.ids is not None}".encode()) for request in batch]
        if batch[0].hashes is not None:
            self._block = float(batch[0].block_tokens)
            return given_prefixes([request.hashes for request in batch if request.hashes is not None], salts)
        return hash_prefixes(texts, salts, self.cache.block_bytes)

    def _tokens(self, request: Request, size: int) -> float:
        total = request.usage.prompt_tokens
        exact = float(len(request.ids)) if request.ids is not None else total
        known = exact is not None and math.isfinite(exact) and exact > 0
        self.exact += known
        tokens = float(exact) if known and exact is not None else size / self.cache.bytes_per_token
        self.models[request.model] = self.models.get(request.model, 0.0) + tokens
        return tokens

    def _per_block(
        self, batch: Sequence[Request], texts: Sequence[bytes], tokens: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Tokens that a block of each request stands for, (n,)."""
        if batch[0].hashes is not None:
            return np.array([float(request.block_tokens) for request in batch])
        sizes = np.array([max(1, len(text)) for text in texts], dtype=np.float64)
        return tokens * self.cache.block_bytes / sizes


def _effects(found: Audit, pairs: Sequence[tuple[Found, Fix]], sort_bytes: int) -> tuple[list[Effect], float | None]:
    """The second pass: each cause gone alone, one after the other in the order of the prompt, and all but one."""
    fixes = [fix for _, fix in pairs]
    every = frozenset(range(len(fixes)))
    sets = {frozenset[int](), *(frozenset({i}) for i in every), *(frozenset(range(i)) for i in every),
            *(every - {i} for i in every), every}  # fmt: skip
    slots = min(MOST_SLOTS, max(_LEAST_SLOTS, 1 << int(math.log2(_ALL_SLOTS / len(sets)))))
    walks = {gone: Walk(found.cache, slots, holds=gone == every) for gone in sorted(sets, key=sorted)}
    effects = [Effect(*pair) for pair in pairs]
    for batch in batches(log.requests(found.path, Ledger(), sort_bytes)):
        hits = {}
        for gone, walk in walks.items():
            chosen = [fixes[i] for i in gone]
            hits[gone] = walk.add(batch, [changed(request, chosen) for request in batch])
        for i, effect in enumerate(effects):
            more = hits[frozenset({i})] - hits[frozenset()]
            effect.requests += int((more > found.cache.block_tokens / 2).sum())
    for i, effect in enumerate(effects):
        effect.alone, effect.left = walks[frozenset({i})].meter, walks[every - {i}].meter
        effect.before, effect.together = walks[frozenset(range(i))].meter, walks[frozenset(range(i + 1))].meter
        effect.best = walks[every].meter
    return effects, walks[every].limited()


def changed(request: Request, fixes: Sequence[Fix]) -> bytes:
    """The prompt as it would be sent; token ids and hashes cannot be changed."""
    return joined(apply(fixes, request.parts)) if request.parts else content(request)
