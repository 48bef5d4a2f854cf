"""Two halves of the examples: a threshold is chosen on one and judged on the other.

An example's half is a hash of its id and a seed: the same whatever the order of the rows, and whoever else is there.
"""

import hashlib

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.gate.evidence.samples import Mask, Texts

SHARE = 0.5
_BYTES = 8


def choosing(keys: Texts, seed: int = 0, share: float = SHARE) -> Mask:
    """Which rows the threshold is chosen on. Raises `InputError` where a half has fewer than two rows."""
    places = np.array([_place(str(key), seed) for key in keys.tolist()])
    found: Mask = places < share
    if min(int(found.sum()), int((~found).sum())) < 2:
        got = f"{len(keys):,}"
        raise InputError.expected("examples enough for two halves", got, where="the split")
    return found


def _place(key: str, seed: int) -> float:
    """A number from 0 to 1 that depends on the key and the seed alone."""
    raw = hashlib.blake2b(f"{seed}|{key}".encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest()
    return int.from_bytes(raw, "big") / float(1 << (8 * _BYTES))
