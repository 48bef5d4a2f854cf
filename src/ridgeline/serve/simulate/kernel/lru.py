"""The least-recently-used list of the prefix-cache oracle, compiled."""

from ridgeline.serve.simulate.engine.cache import Ints
from ridgeline.serve.simulate.kernel.jit import jit


@jit
def use(links: Ints, block: int) -> bool:
    """Move a block to the recent end; whether it is new in the cache."""
    end = links.shape[1] - 1
    new = links[0, block] < 0
    if not new:
        links[1, links[0, block]] = links[1, block]
        links[0, links[1, block]] = links[0, block]
    last = links[0, end]
    links[1, last] = block
    links[0, block] = last
    links[1, block] = end
    links[0, end] = block
    return bool(new)


@jit
def drop_oldest(links: Ints) -> None:
    """The least recently used block leaves."""
    end = links.shape[1] - 1
    block = links[1, end]
    links[1, end] = links[1, block]
    links[0, links[1, block]] = end
    links[0, block] = -1


@jit
def walk(hashes: Ints, offsets: Ints, links: Ints, capacity: int, found: Ints) -> None:
    """Fill ``found`` with the leading blocks of each prompt that the cache holds when it comes."""
    held = 0
    for request in range(len(offsets) - 1):
        low, high = offsets[request], offsets[request + 1]
        at = low
        while at < high and links[0, hashes[at]] >= 0:
            at += 1
        found[request] = at - low
        for at in range(low, high):
            if use(links, hashes[at]):
                held += 1
            if held > capacity:
                drop_oldest(links)
                held -= 1
