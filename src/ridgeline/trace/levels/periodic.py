"""Stalls that come back: an exact test for a period in a series of step times.

Under "no period" the order of the step times is exchangeable, whatever their distribution. Take the m largest
residuals of n. The number of them at one phase of one period, out of the k positions of that phase, is then
hypergeometric (n, m, k): an exact test that heavy tails cannot fool. It is corrected for the number of (period,
phase) pairs that were tried (Bonferroni). The strongest comb is removed and the search repeated.

Neighbouring steps are not always exchangeable: a slow spell of 20 steps is one event. The log p-value is therefore
divided by the mean length of runs among the m largest.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

SIGNIFICANCE = 1e-3  # of the whole search, after correction
LEAST_PERIODS = 4  # fewer repetitions are no period
LONGEST_PERIOD = 4096  # tried by the comb; longer ones are found by their gaps
WINDOW = 64  # rows of the running median: even, so that a series that alternates has its middle as baseline
NORMAL_MAD = 1.4826  # standard deviations per median absolute deviation of a normal distribution
LEAST_SIGMAS = 3.0  # an excess within so many standard errors of zero is none
OUTLIER_SIGMAS = 6.0  # how far above the usual a single step counts as an outlier


@dataclass(frozen=True)
class Comb:
    """A stall due at rows ``phase + i * period`` and seen at ``rows``. ``excess_s``: mean time above the other rows.

    ``hits`` of ``places`` occurrences are among the longest rows; ``log_p`` is the natural log of the corrected
    p-value; ``correlation`` is the autocorrelation of the clipped residual at this lag. ``period`` is a float for a
    stall that drifts against the step count (``steady`` False), and ``jitter`` its relative spread.
    """

    period: float
    phase: int
    excess_s: float
    hits: int
    places: int
    log_p: float
    correlation: float = 0.0
    steady: bool = True
    jitter: float = 0.0
    rows: tuple[int, ...] = ()


def baseline(x: Floats, window: int = WINDOW) -> Floats:
    """The running median of ``x`` (n,), on a grid of a quarter window and interpolated between: O(n)."""
    n = len(x)
    width = min(window, n - n % 2) if n > 1 else n
    stride = max(1, width // 4)
    starts = np.arange(0, n - width + 1, stride)
    medians = np.median(np.lib.stride_tricks.sliding_window_view(x, width)[starts], axis=1)
    return np.interp(np.arange(n), starts + (width - 1) / 2, medians)


def spread(x: Floats) -> float:
    """A robust standard deviation: the scaled median absolute deviation."""
    return float(NORMAL_MAD * np.median(np.abs(x - np.median(x))))


def combs(x: Floats, *, least_excess: float = 0.0, most: int = 8) -> tuple[list[Comb], Floats]:
    """The periodic stalls of row times ``x`` (n,) in seconds, strongest first, and ``x`` without them.

    A comb whose excess is not above ``least_excess`` (the rounding of the log) ends the search.
    """
    found: list[Comb] = []
    rest = x.copy()
    taken = np.zeros(len(x), dtype=np.bool_)
    drifting = _drifting(rest, least_excess, share=0.9)
    if drifting is not None:  # first: a period of 23.5 would else be read as two of 47
        found.append(drifting)
        rest[list(drifting.rows)] -= drifting.excess_s
        taken[list(drifting.rows)] = True
    for _ in range(most):
        residual = rest - baseline(rest) if len(rest) else rest
        best = _strongest(residual)
        if best is None:
            break
        (period, phase), (hits, log_p) = _fundamental(residual, *best[:2]), best[2:]
        rows = np.arange(phase, len(x), period)
        taken[rows], places = True, len(rows)
        rows, late = _occurred(rows, _late(rest, rows, taken), spread(residual))
        excess = _winsorized(late)
        if excess <= max(least_excess, LEAST_SIGMAS * spread(residual) / np.sqrt(len(rows))):
            break
        found.append(Comb(period, phase, excess, hits, places, log_p, _lagged(residual, period), rows=_plain(rows)))
        rest[rows] -= _locally(late, excess)
    if drifting is None and (drifting := _drifting(rest, least_excess, share=0.6)) is not None:
        found.append(drifting)
        rest[list(drifting.rows)] -= drifting.excess_s
    return found, rest


def _fundamental(residual: Floats, period: int, phase: int) -> tuple[int, int]:
    """The comb whose every occurrence is late: where only each second (third, ...) one is, the period is a multiple."""
    rows = np.arange(phase, len(residual), period)
    for multiple in (2, 3, 5):
        if len(rows) < LEAST_PERIODS * multiple:
            break
        medians = np.array([np.median(residual[rows[i::multiple]]) for i in range(multiple)])
        late = int(np.argmax(medians))
        if np.delete(medians, late).max() < 0.25 * medians[late]:
            return _fundamental(residual, period * multiple, phase + late * period)
    return period, phase


def _plain(rows: Ints) -> tuple[int, ...]:
    return tuple(rows.tolist())


def _strongest(residual: Floats) -> tuple[int, int, int, float] | None:
    """(period, phase, hits, log p) of the most significant comb; None where no comb is significant."""
    n = len(residual)
    periods = np.arange(2, min(n // LEAST_PERIODS, LONGEST_PERIOD) + 1)
    if not len(periods):
        return None
    order = np.argsort(-residual, kind="stable")
    longest = -(-n // periods)
    phases = np.empty(len(periods), np.int64)
    hits = np.empty(len(periods), np.int64)
    for i, (period, top) in enumerate(zip(periods.tolist(), longest.tolist(), strict=True)):
        counts = np.bincount(order[:top] % period, minlength=period)
        phases[i] = best = counts.argmax()
        hits[i] = counts[best]
    places = (n - phases + periods - 1) // periods
    log_p = log_tail(n, longest, places, np.minimum(hits, places))
    log_p = log_p + np.log(float(periods.sum()))
    candidates = np.argsort(log_p, kind="stable")[:8]
    runs = np.array([_run_length(order[: int(longest[i])], int(periods[i])) for i in candidates])
    corrected = log_p[candidates] / runs
    at = int(np.argmin(corrected))
    if corrected[at] > np.log(SIGNIFICANCE):
        return None
    chosen = candidates[at]
    return int(periods[chosen]), int(phases[chosen]), int(hits[chosen]), float(corrected[at])


def log_tail(n: int, marked: Ints, drawn: Ints, hits: Ints) -> Floats:
    """log P(X >= hits) of a hypergeometric distribution, bounded above by a geometric series from its first term.

    ``n`` rows, ``marked`` of them among the longest, ``drawn`` at the phase. The bound is tight where it matters:
    far above the mean the ratio of successive terms is small and falls.
    """
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])

    def choose(a: Ints | int, b: Ints) -> Floats:
        return np.asarray(logs[a] - logs[b] - logs[np.asarray(a) - b], dtype=np.float64)

    low = np.maximum(0, drawn + marked - n)
    h = np.maximum(hits, low)
    first = choose(marked, h) + choose(n - marked, drawn - h) - choose(n, drawn)
    ratio = (marked - h) * (drawn - h) / ((h + 1.0) * np.maximum(n - marked - drawn + h + 1.0, 1.0))
    return np.where(ratio < 1, np.minimum(0.0, first - np.log1p(-np.minimum(ratio, 1 - 1e-9))), 0.0)


def _run_length(rows: Ints, period: int) -> float:
    """Mean length of runs of adjacent rows; a period of two or three is one long run by its nature, so 1 there."""
    if period <= 3 or len(rows) < 2:
        return 1.0
    ordered = np.sort(rows)
    return len(ordered) / (1 + int((np.diff(ordered) > 1).sum()))


def _late(x: Floats, rows: Ints, taken: Mask) -> Floats:
    """How far each of ``rows`` lies above the rows that no comb has taken, around it: (k,) seconds."""
    others = np.flatnonzero(~taken)
    if not len(others):
        return x[rows] - float(np.median(x))
    local = np.interp(np.arange(len(x)), others, baseline(x[others]))
    return (x - local)[rows] - _winsorized((x - local)[others])


def _occurred(rows: Ints, late: Floats, scale: float) -> tuple[Ints, Floats]:
    """The occurrences that took place, where a stall stands out enough to tell: a loop may skip its first."""
    middle = float(np.median(late))
    there = late > 0.25 * middle
    return (rows[there], late[there]) if middle > OUTLIER_SIGMAS * scale and there.any() else (rows, late)


def _locally(late: Floats, excess: float) -> Floats:
    """The stall as it was at each occurrence: it may grow with the step."""
    return baseline(late, 16) if len(late) >= 32 else np.full(len(late), excess)


def _winsorized(x: Floats) -> float:
    """The mean with outliers drawn in to the bound: one huge row does not make a period."""
    middle, scale = float(np.median(x)), spread(x)
    reach = OUTLIER_SIGMAS * scale if scale else np.inf
    return float(np.clip(x, middle - reach, middle + reach).mean())


def _lagged(residual: Floats, period: int) -> float:
    """Autocorrelation at one lag, the residual clipped at the outlier bound."""
    scale = spread(residual)
    x = np.clip(residual, -OUTLIER_SIGMAS * scale, OUTLIER_SIGMAS * scale) if scale else residual
    x = x - x.mean()
    power = float(x @ x)
    return float(x[period:] @ x[:-period]) / power if power else 0.0


def outliers(rest: Floats, least_excess: float) -> Ints:
    """Rows further above the running median than `OUTLIER_SIGMAS` robust standard deviations."""
    residual = rest - baseline(rest)
    bound = np.median(residual) + max(OUTLIER_SIGMAS * spread(residual), least_excess)
    return np.flatnonzero(residual > bound)


def _drifting(rest: Floats, least_excess: float, share: float) -> Comb | None:
    """A stall that comes back after nearly equal but not constant gaps, as one that is timed or counts allocations.

    At least ``share`` of the gaps must be near their median, and no more than 75% of the rows at one phase of the
    commonest gap: that would be a comb.

    Gaps between memoryless events are geometric: at most 11.2% of them fall within 15% of any one value. Equal gaps
    are tested by the binomial tail with that chance.
    """
    rows = outliers(rest, least_excess)
    rows = rows[np.r_[True, np.diff(rows) > 1]] if len(rows) else rows
    if len(rows) < 8:
        return None
    gaps = np.diff(rows).astype(np.float64)
    middle = float(np.median(gaps))
    near = np.abs(gaps - middle) <= 0.15 * middle
    k, n, chance = int(near.sum()), len(gaps), float(np.exp(-0.85) - np.exp(-1.15))
    log_p = log_binomial_tail(k, n, chance) + np.log(n)
    if middle < 4 or k < share * n or log_p > np.log(SIGNIFICANCE):
        return None
    commonest = int(np.argmax(np.bincount(gaps.astype(np.int64))))
    steady = bool(np.bincount(rows % commonest).max() > 0.75 * len(rows))
    if steady and commonest <= LONGEST_PERIOD:
        return None
    taken = np.zeros(len(rest), dtype=np.bool_)
    taken[rows] = True
    period = float(gaps[near].mean())
    excess = _winsorized(_late(rest, rows, taken))
    jitter = float(gaps[near].std() / period)
    return Comb(period, int(rows[0]), excess, k, n, log_p, steady=steady, jitter=jitter, rows=_plain(rows))


def log_binomial_tail(k: int, n: int, chance: float) -> float:
    """log P(X >= k) for n trials, by summing the terms."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    j = np.arange(k, n + 1)
    terms = logs[n] - logs[j] - logs[n - j] + j * np.log(chance) + (n - j) * np.log1p(-chance)
    return float(np.logaddexp.reduce(terms))
