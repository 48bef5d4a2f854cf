"""Two runs of a given accuracy, for tests of gates."""

from collections.abc import Mapping, Sequence

import numpy as np

from ridgeline.gate.evidence.pairing import Pairs, pair
from ridgeline.gate.evidence.samples import Floats, Samples


def texts(values: Sequence[object]) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    """A column of labels."""
    found = np.empty(len(values), dtype=object)
    found[:] = list(values)
    return found


def samples(run: str, scores: Mapping[str, Floats], **labels: Sequence[object]) -> Samples:
    """A run whose rows are keyed by their number."""
    n = len(next(iter(scores.values())))
    columns = {name: texts(values) for name, values in labels.items()}
    return Samples(run, texts([f"q{row}" for row in range(n)]), scores, np.zeros(n, dtype=np.bool_), columns)


def pairs(base: Mapping[str, Floats], cand: Mapping[str, Floats], **labels: Sequence[object]) -> Pairs:
    """Two runs on the same examples."""
    return pair(samples("a", base, **labels), samples("b", cand, **labels))


def flipped(n: int, lost: int, gained: int, right: float = 0.7) -> tuple[Floats, Floats]:
    """Zeros and ones of which so many are lost and gained, the lost ones first among those that were right."""
    base = np.zeros(n)
    base[: round(right * n)] = 1.0
    cand = base.copy()
    cand[:lost] = 0.0
    cand[n - gained :] = 1.0
    return base, cand
