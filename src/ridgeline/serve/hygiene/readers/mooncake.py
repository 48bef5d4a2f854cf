"""Mooncake traces: ``hash_ids``, one for each block of 512 tokens of the whole prefix."""

import math

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.serve.hygiene.request import Record, Request, RequestReader, Usage

BLOCK_TOKENS = 512
_MS = 1e-3


def _claims(record: Record) -> bool:
    return isinstance(record.get("hash_ids"), list)


def _read(record: Record) -> Request:
    ids, length = record["hash_ids"], record.get("input_length", record.get("input_tokens"))
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise InputError.expected("an input_length of at least 1", length, where="$.input_length")
    if not all(isinstance(item, int) and abs(item) < 2**62 for item in ids):
        raise InputError.expected("whole block hashes", ids[:3], where="$.hash_ids")
    if len(ids) > -(-length // BLOCK_TOKENS):
        raise InputError.expected(f"at most one hash per started block of {BLOCK_TOKENS} tokens",
                                  f"{len(ids)} for {length} tokens", where="$.hash_ids")  # fmt: skip
    arrival = record.get("arrival_s")
    stamp = record.get("timestamp")
    time = arrival if isinstance(arrival, int | float) else stamp * _MS if isinstance(stamp, int | float) else math.nan
    return Request(
        hashes=np.array(ids, dtype=np.int64),
        block_tokens=BLOCK_TOKENS,
        time_s=float(time),
        usage=Usage(float(length)),
    )


READER = RequestReader("Mooncake", _claims, _read)
