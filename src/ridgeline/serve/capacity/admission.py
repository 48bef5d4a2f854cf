"""The admission equation, in the standard library alone: copy this file into a scheduler.

A layer kind keeps ``bytes_per_token`` for each cached token, of no more than ``window`` tokens (0: all of them), and
``fixed_bytes`` whatever the length. Tokens are kept in pages of ``page`` tokens; a window that slides over page borders
touches one page more than it fills. A request fits where the sum over the kinds fits:

    bytes(T) = sum over kinds of  bytes_per_token * page * pages(T)  +  fixed_bytes
    pages(T) = ceil(T / page),  with a window  min(ceil(T / page), 1 + ceil(window / page))

Sizes are bytes on one chip, the one with the least room. With ``page`` 0 tokens are kept to the byte.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Kind(NamedTuple):
    """What all layers of one kind keep for a request, on one chip."""

    bytes_per_token: float
    window: int = 0
    fixed_bytes: float = 0.0


def request_bytes(tokens: int, kinds: Iterable[Kind], page: int = 16) -> float:
    """Bytes that one request of ``tokens`` tokens, prompt and answer so far, holds. Raises `ValueError` below 0."""
    if tokens < 0 or page < 0:
        raise ValueError(f"tokens and page must not be negative, got {tokens} and {page}")
    total = 0.0
    for kind in kinds:
        kept = tokens
        if page:
            pages = -(-tokens // page)
            kept = page * (min(pages, 1 + -(-kind.window // page)) if kind.window else pages)
        elif kind.window:
            kept = min(tokens, kind.window)
        total += kind.bytes_per_token * kept + kind.fixed_bytes
    return total


def max_sequences(free_bytes: float, tokens: int, kinds: Sequence[Kind], page: int = 16) -> int:
    """How many requests of ``tokens`` tokens fit at once, 0 if none. Raises `ValueError` where they keep nothing."""
    each = request_bytes(tokens, kinds, page)
    if each <= 0:
        raise ValueError("a request that keeps nothing has no limit")
    return max(0, int(free_bytes // each))


def max_context(free_bytes: float, kinds: Sequence[Kind], page: int = 16, limit: int = 2**40) -> int:
    """The longest request that fits alone, at most ``limit``; 0 where not even one token does.

    The curve is not a line where there are windows or states, so it is searched, not divided.
    """
    if request_bytes(1, kinds, page) > free_bytes:
        return 0
    low, high = 1, limit  # low always fits
    while low < high:
        middle = (low + high + 1) // 2
        if request_bytes(middle, kinds, page) <= free_bytes:
            low = middle
        else:
            high = middle - 1
    return low


def admit(free_bytes: float, requests: Iterable[int], kinds: Sequence[Kind], page: int = 16) -> int:
    """How many of the waiting requests, in their order, may start now.

    ``requests`` are the tokens each may grow to (prompt and longest answer): with these no request that was let in is
    ever preempted. Stops at the first that does not fit, so that a long request is not overtaken for ever.
    """
    admitted = 0
    for tokens in requests:
        free_bytes -= request_bytes(tokens, kinds, page)
        if free_bytes < 0:
            break
        admitted += 1
    return admitted
