"""Prefix hashes and the tree: the walk of a block-exact cache, in bounded memory."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.serve.hygiene.blocks import Hashed, given_prefixes, hash_prefixes
from ridgeline.serve.hygiene.capacity import Held
from ridgeline.serve.hygiene.tree import Tree

BLOCK = 8


def walk(texts: Sequence[bytes], ttl_s: float = math.inf, times: Sequence[float] = ()) -> list[int]:
    """The same in plain Python: leading blocks of each text whose prefix was used lately."""
    used: dict[bytes, float] = {}
    hits = []
    for i, text in enumerate(texts):
        now = times[i] if times else 0.0
        prefixes = [text[: k * BLOCK] for k in range(1, len(text) // BLOCK + 1)]
        found = 0
        while found < len(prefixes) and prefixes[found] in used and now - used[prefixes[found]] <= ttl_s:
            found += 1
        hits.append(found)
        used |= dict.fromkeys(prefixes, now)
    return hits


texts_of = st.lists(
    st.lists(st.sampled_from([b"aaaaaaaa", b"bbbbbbbb", b"aaaaaaab", b"c"]), max_size=6).map(b"".join), max_size=12
)


@given(texts_of, st.integers(1, 4))
def test_walk_in_batches_is_the_plain_walk(texts: list[bytes], size: int) -> None:
    tree, hits = Tree(), []
    for k in range(0, len(texts), size):
        part = texts[k : k + size]
        hits += tree.add(hash_prefixes(part, [3] * len(part), BLOCK), np.zeros(len(part))).tolist()
    assert hits == walk(texts)
    assert tree.unique == len({text[: k * BLOCK] for text in texts for k in range(1, len(text) // BLOCK + 1)})


@given(texts_of, st.integers(1, 4), st.data())
def test_lifetime_is_renewed_by_use(texts: list[bytes], size: int, data: st.DataObject) -> None:
    gaps = data.draw(st.lists(st.integers(0, 5), min_size=len(texts), max_size=len(texts)))
    times = np.cumsum(gaps, dtype=np.float64).tolist()
    tree, hits = Tree(ttl_s=4.0), []
    for k in range(0, len(texts), size):
        part = texts[k : k + size]
        batch = hash_prefixes(part, [0] * len(part), BLOCK)
        hits += tree.add(batch, np.array(times[k : k + size])).tolist()
    assert hits == walk(texts, 4.0, times)


def random_texts(count: int, blocks: int) -> list[bytes]:
    rng = np.random.default_rng(1)
    return [rng.bytes(blocks * 64) for _ in range(count)]


def test_a_full_table_takes_longer_blocks_and_loses_less_than_one_of_them() -> None:
    texts = random_texts(40, 200)
    small, large = Tree(slots=1 << 12), Tree()
    for _ in range(2):
        batch = hash_prefixes(texts, [0] * len(texts), 64)
        rough, exact = (tree.add(batch, np.zeros(len(texts))) for tree in (small, large))
    assert small.level >= 1
    assert large.level == 0
    assert (exact == 200).all()
    assert (rough > 200 - 2**small.level).all()
    assert (rough <= exact).all()


def test_salts_share_nothing() -> None:
    text = random_texts(1, 10) * 2
    hits = Tree().add(hash_prefixes(text, [1, 2], 64), np.zeros(2))
    assert hits.tolist() == [0, 0]
    assert Tree().add(hash_prefixes(text, [1, 1], 64), np.zeros(2)).tolist() == [0, 10]


def test_every_byte_of_a_prefix_counts() -> None:
    base = bytearray(random_texts(1, 4)[0])
    whole = hash_prefixes([bytes(base)], [0], 64).hashes
    for at in range(len(base)):
        base[at] ^= 1
        changed = hash_prefixes([bytes(base)], [0], 64).hashes
        assert (changed != whole).tolist() == [block >= at // 64 for block in range(4)]
        base[at] ^= 1


def lru(prompts: Sequence[Sequence[int]], capacity: int) -> int:
    held: dict[int, None] = {}
    hits = 0
    for ids in prompts:
        found = 0
        while found < len(ids) and ids[found] in held:
            found += 1
        hits += found
        for item in ids:
            held.pop(item, None)
            held[item] = None
            if len(held) > capacity:
                held.pop(next(iter(held)))
    return hits


def held(batch: Hashed, most: int = 1 << 20) -> Held:
    found = Held(most)
    found.add(batch, np.full(len(batch.counts), 512.0), (batch.counts * 512).astype(np.float64))
    return found


@pytest.mark.parametrize("capacity", [1, 3, 8, 100])
def test_a_capacity_is_a_least_recently_used_walk(capacity: int) -> None:
    rng = np.random.default_rng(4)
    prompts = [[0, *(10 * who + k for k in range(1, int(rng.integers(2, 7))))] for who in rng.integers(1, 5, 60)]
    batch = given_prefixes([np.array(ids) for ids in prompts], [0] * len(prompts))
    assert held(batch).hit_tokens(capacity * 512, 512) == 512 * lru(prompts, capacity)


def test_hashes_beyond_their_memory_are_taken_in_longer_blocks() -> None:
    texts = random_texts(10, 64) * 2
    batch = hash_prefixes(texts, [0] * 20, 64)
    whole, rough = held(batch), held(batch, 700)
    assert (whole.level, rough.level) == (0, 1)
    assert rough.hit_tokens(1e9, 512) == whole.hit_tokens(1e9, 512) == 10 * 64 * 512
