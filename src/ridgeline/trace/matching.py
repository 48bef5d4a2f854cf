"""Which collective on one rank is which on another: by sequence number where the trace has it, else by order.

Members of a group issue its collectives in the same order, so the k-th of one is the k-th of another. Profiles that
start or end at different calls are aligned by the shift at which most kinds and sizes agree.

A compiler may write one collective as two events, a start and a done; the transfer runs from one to the other.
"""

from collections.abc import Sequence

import numpy as np

from ridgeline.trace.events import NONE, Events, Ints

MOST_SHIFT = 512  # calls by which two ranks' profiles may start apart


def paired(events: Events, rows: Ints) -> tuple[Ints, Ints]:
    """Rows of collectives, in order of time, as the rows that open and those that close each of them.

    Most do both. A ``done`` closes the ``start`` of the same call before it, by the details ``phase`` and ``call``;
    one whose other half is not in the trace stands alone.
    """
    distinct, at = np.unique(events.meta[rows], return_inverse=True)
    details = [events.metas[i] if i != NONE else {} for i in distinct.tolist()]
    phase = np.array([("start", "done").index(d["phase"]) if "phase" in d else NONE for d in details], np.int64)[at]
    if not (phase == 1).any():
        return rows, rows
    calls = {name: i for i, name in enumerate(dict.fromkeys(str(d.get("call", "")) for d in details))}
    call = np.array([calls[str(d.get("call", ""))] for d in details], np.int64)[at]
    order = np.lexsort((events.ts[rows], call))
    before, after = order[:-1], order[1:]
    joined = (phase[before] == 0) & (phase[after] == 1) & (call[before] == call[after])
    opened, alone = rows.copy(), np.ones(len(rows), dtype=np.bool_)
    opened[after[joined]] = rows[before[joined]]
    alone[before[joined]] = False
    return opened[alone], rows[alone]


def match(sequences: Sequence[Ints], numbers: Sequence[Ints]) -> list[Ints]:
    """A match id per call and rank; NONE where no other rank has the call.

    ``sequences``: per rank the signature of each call of one group, in order. ``numbers``: their sequence numbers,
    NONE where the trace has none.
    """
    ids = _by_number(numbers) if all((n != NONE).all() for n in numbers) else _by_order(sequences)
    every = np.concatenate(ids) if ids else np.empty(0, np.int64)
    if not len(every):
        return ids
    seen = np.bincount(every[every != NONE], minlength=1)
    return [np.where((i != NONE) & (seen[np.maximum(i, 0)] > 1), i, NONE) for i in ids]


def _by_number(numbers: Sequence[Ints]) -> list[Ints]:
    """Equal numbers match; a number that a rank has several times (coalesced calls) matches in order."""
    keys = [np.stack([n, _repeat(n)], axis=1) for n in numbers]
    _, inverse = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
    return np.split(inverse.reshape(-1).astype(np.int64), np.cumsum([len(n) for n in numbers])[:-1])


def _repeat(numbers: Ints) -> Ints:
    """0 for the first occurrence of a number, 1 for the second, ..."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]] if len(ordered) else np.empty(0, np.bool_)
    at = np.arange(len(ordered))
    found = np.empty(len(ordered), np.int64)
    found[order] = at - np.maximum.accumulate(np.where(first, at, 0)) if len(at) else at
    return found


def _by_order(sequences: Sequence[Ints]) -> list[Ints]:
    """Positions on the clock of the rank with the most calls."""
    reference = max(sequences, key=len)
    if not len(reference):
        return [np.empty(0, np.int64) for _ in sequences]
    found = []
    for sequence in sequences:
        shift = _shift(reference, sequence)
        at = np.arange(len(sequence)) + shift
        inside = (at >= 0) & (at < len(reference))
        same = inside & (reference[np.clip(at, 0, len(reference) - 1)] == sequence)
        found.append(np.where(same, at, NONE).astype(np.int64))
    return found


def _shift(reference: Ints, sequence: Ints) -> int:
    """How far to move a sequence along the reference so that most signatures agree.

    On a tie the ends coincide: calls whose launch was before the profile are missing at the front.
    """
    if len(reference) == len(sequence) and (reference == sequence).all():
        return 0
    n, m = len(reference), len(sequence)
    best, best_shift = -1, 0
    candidates = sorted(range(-min(m - 1, MOST_SHIFT), min(n - 1, MOST_SHIFT) + 1), key=lambda s: abs(s - (n - m)))
    for shift in candidates:
        low, high = max(0, -shift), min(m, n - shift)
        if high - low <= best:
            continue
        agree = int((reference[low + shift : high + shift] == sequence[low:high]).sum())
        if agree > best:
            best, best_shift = agree, shift
    return best_shift
