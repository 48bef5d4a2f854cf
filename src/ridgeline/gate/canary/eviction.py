"""Eviction in results: do needles vanish beyond some distance from the end, or at once when a prompt is longer?

Two patterns, tried at every window W. *Beyond*: in prompts longer than W, needles farther than W from the end are lost
while the others are found. *Collapse*: needles within W of the end are found in prompts that fit and lost in prompts
that do not, as if forgetting had broken what was kept. Each is a difference of two rates in contexts; its test is the
score test with the sums of contexts as its units, and Holm's correction covers all windows and both patterns.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.catalog import constant
from ridgeline.gate.evidence.samples import Floats, Mask, Texts

BEYOND, COLLAPSE = "beyond the window", "collapse past the window"
Codes = NDArray[np.intp]
PAIRED = "candidate against baseline"
SMALLEST = 256  # tokens; no server evicts below
_DECILES = 10
_TIED = 0.1  # falls that differ by less are of one size
LEAST = 10  # contexts on either side of a window


@dataclass(frozen=True)
class Asked:
    """Needles of one run: zeros and ones, where they stand, and in which context."""

    hits: Floats
    position: Floats
    length: Floats
    contexts: Texts

    @property
    def distance(self) -> Floats:
        """Tokens from the needle to the end of the prompt."""
        return self.length - self.position


@dataclass(frozen=True)
class Window:
    """One window and pattern: rates where needles should hold and where they fall; p after Holm's correction.

    ``where`` says at which depths they fall, ``start`` the rate in the first tenth of the prompt, None where unknown.
    """

    pattern: str
    tokens: int
    held: float
    fell: float
    p: float
    n: int
    flagged: bool = False
    where: str = ""
    start: float | None = None

    @property
    def fall(self) -> float:
        """How far the rate falls."""
        return self.held - self.fell

    @property
    def spares_start(self) -> bool:
        """Whether the start of the prompt holds: only the middle is lost."""
        return self.start is not None and self.held - self.start < float(constant("gate.canary.fall").base)


def windows(asked: Asked, extra: Iterable[int] = ()) -> list[int]:
    """Powers of two and their halves between, up to the longest prompt, and those that a configuration names."""
    longest = float(asked.length.max()) if len(asked.length) else 0.0
    found, step = set(), SMALLEST
    while step < longest:
        found |= {step, step * 3 // 2}
        step *= 2
    return sorted(w for w in found | set(extra) if 0 < w < longest)


def audit(asked: Asked, alpha: float, *, reference: Floats | None = None, extra: Iterable[int] = ()) -> list[Window]:
    """Every window that has enough contexts on both sides, flagged where hits fall.

    ``reference`` are another run's hits on the same needles: a needle counts as kept unless the reference found it and
    this run did not, so that what distance alone costs cancels. Without it the hits themselves are judged.
    """
    value = asked.hits if reference is None else 1.0 - np.maximum(reference - asked.hits, 0.0)
    floor = float(constant("gate.canary.floor").base)
    _, groups = np.unique(asked.contexts.astype(str), return_inverse=True)
    found: list[Window] = []
    for tokens in windows(asked, extra):
        near, fits = asked.distance <= tokens, asked.length <= tokens
        for pattern, held, fell in ((BEYOND, near & ~fits, ~near & ~fits), (COLLAPSE, near & fits, near & ~fits)):
            item = _tried(asked, value, groups, (pattern, tokens), (held, fell))
            if item is not None:
                found.append(item)
    return _judged(found, alpha, floor)


def _tried(asked: Asked, value: Floats, groups: Codes, at: tuple[str, int], sides: tuple[Mask, Mask]) -> Window | None:
    (pattern, tokens), (held, fell) = at, sides
    if min(np.count_nonzero(np.bincount(groups[side])) for side in sides) < LEAST:
        return None
    p, rates = _p_value(value, held, fell, groups), (float(value[held].mean()), float(value[fell].mean()))
    depth = np.minimum((asked.position / asked.length * _DECILES).astype(np.int64), _DECILES - 1)
    by_depth = {int(d): float(value[fell & (depth == d)].mean()) for d in np.unique(depth[fell])}
    least = rates[0] - float(constant("gate.canary.fall").base)
    low = [d for d, rate in by_depth.items() if rate < least]
    where = f"{min(low) / _DECILES:.0%} to {(max(low) + 1) / _DECILES:.0%} of the prompt" if low else ""
    return Window(pattern, tokens, *rates, p, int(held.sum() + fell.sum()), where=where, start=by_depth.get(0))


def _p_value(value: Floats, held: Mask, fell: Mask, groups: Codes) -> float:
    """One-sided, that the rate is lower in ``fell``: score test at no difference, sums of contexts as units."""
    from scipy.special import stdtr

    both = held | fell
    middle = float(value[both].mean())
    weight = np.where(held, 1 / held.sum(), 0.0) - np.where(fell, 1 / fell.sum(), 0.0)
    part = ((value - middle) * weight)[both]
    count = np.count_nonzero(np.bincount(groups[both]))
    sums = np.bincount(groups[both], weights=part)
    spread = float((sums**2).sum()) * count / (count - 1)
    return float(stdtr(count - 1, -float(part.sum()) / spread**0.5)) if spread > 0 else 1.0


def _judged(found: Sequence[Window], alpha: float, floor: float) -> list[Window]:
    from statsmodels.stats.multitest import multipletests

    if not found:
        return []
    fall = float(constant("gate.canary.fall").base)
    _, corrected, *_ = multipletests([item.p for item in found], alpha=alpha, method="holm")
    return [
        replace(item, p=float(p), flagged=bool(p <= alpha and item.held >= floor and item.fall >= fall))
        for item, p in zip(found, corrected, strict=True)
    ]


def sharpest(found: Sequence[Window]) -> Window | None:
    """The flagged window with the largest fall, the largest of those that share it; None where none is flagged.

    A window that is too small mixes needles that are kept with those that are lost, and so does one too large: the
    fall is largest at the window, and of the pattern, that is in force. Of patterns that tie, *beyond* explains more.
    """
    best = {
        pattern: max(flagged, key=lambda item: (round(item.fall, 6), item.tokens))
        for pattern in (BEYOND, COLLAPSE)
        if (flagged := [item for item in found if item.flagged and item.pattern == pattern])
    }
    return max(best.values(), key=lambda item: item.fall + _TIED * (item.pattern == BEYOND), default=None)


def by_distance(asked: Asked) -> list[tuple[int, float, int]]:
    """Hit rate by distance to the end: (upper end of the bucket in tokens, rate, needles), in octaves."""
    octave: NDArray[np.int64] = np.ceil(np.log2(np.maximum(asked.distance, SMALLEST))).astype(np.int64)
    return [
        (2 ** int(step), float(asked.hits[octave == step].mean()), int((octave == step).sum()))
        for step in np.unique(octave)
    ]
