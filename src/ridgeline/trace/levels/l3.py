"""L3: the strip chart. What happens between steps and from step to step: stalls that come back, outliers, slowing down.

The mean step is taken apart so that it adds up: mean = typical + stalls + outliers + rest, in seconds per step, where
typical is the mean of the middle half of the steps once stalls and outliers are taken off, and rest is what slow drift
and noise add.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import comb
from typing import Literal

import numpy as np

from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.trace.events import NONE
from ridgeline.trace.levels import periodic
from ridgeline.trace.levels.periodic import Comb, Floats, Mask, baseline, spread
from ridgeline.trace.logs import StepLog

Cause = Literal["input", "garbage collection", "checkpoint", "evaluation", "unknown"]

LEAST_ROWS = 16  # fewer cannot show a period
WARM_UP_SHARE = 0.1  # no more of the log is left out as warm-up
WARM_UP_FACTOR = 3.0  # among the first rows, one this many medians long is still compilation
REFILL_PERIOD = 32  # a loader's workers refill at most every so many steps: its number of workers
LONG_STALL = 1.0  # a stall of a whole step or more is no refill
VARIES = 2.0  # a wait varies more than the step itself; work that is done now and then does not
CARRIES = 0.5  # a phase that carries less than half of a stall does not explain it
LEAST_PART = 0.02
TREND_BLOCKS = 32
TREND_P = 1e-3
TREND_LEAST = 0.02  # a change below this share of the step is not reported

# Words in the names of phases and marks -> cause.
WORDS: tuple[tuple[Cause, tuple[str, ...]], ...] = (
    ("garbage collection", ("gc", "garbage")),
    ("checkpoint", ("checkpoint", "ckpt", "save")),
    ("evaluation", ("eval", "valid")),
    ("input", ("data", "input", "load", "fetch", "batch")),
)


@dataclass(frozen=True)
class Stall:
    """A stall that comes back every ``period`` steps, first at step ``first``.

    ``each_s``: how long one lasts beyond a usual step; ``per_step_s``: what it adds to the mean step of the log.
    ``occurrences``: how often it was seen. ``cause`` and ``evidence``: what it is and why that is believed;
    ``certain`` is True where a phase or a mark of the log says so. ``parts``: seconds of one stall by phase, where the
    log has phases. ``steps``: where it was seen. ``period_exact`` is False where it drifts.
    """

    period: float
    first: int
    each_s: float
    per_step_s: float
    occurrences: int
    log_p: float
    correlation: float
    period_exact: bool
    jitter: float
    steps: tuple[int, ...] = field(repr=False)
    cause: Cause = "unknown"
    parts: Mapping[str, float] = field(default_factory=dict)
    evidence: str = ""
    certain: bool = False


@dataclass(frozen=True)
class Trend:
    """A lasting change of the step time: from ``before_s`` to ``after_s``, at a ``step`` or by and by (None).

    ``per_step_s``: how much the mean step lies above the level at the start.
    """

    before_s: float
    after_s: float
    step: int | None
    p: float
    per_step_s: float


@dataclass(frozen=True, eq=False)
class StripChart:
    """One log, taken apart. ``seconds`` (n,) per step and row; ``kept`` are the rows after warm-up.

    ``searched`` is False where the log is too short or its rows cover several steps each in an uneven way; ``stride``
    is how many steps a row covers: stalls are known to within that many steps.
    """

    log: StepLog
    seconds: Floats
    kept: Mask
    warm_up: int
    warm_up_s: float
    stride: int
    searched: bool
    mean_s: float
    median_s: float
    p95_s: float
    p99_s: float
    typical_s: float
    stalls: tuple[Stall, ...]
    stalls_s: float
    outliers: int
    outlier_steps: tuple[int, ...]
    outliers_s: float
    trend: Trend | None
    rest_s: float
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Which log this is: ``run`` or ``rank3``."""
        return self.log.label

    def caused_by(self, *causes: Cause) -> tuple[Stall, ...]:
        """The stalls of some causes, dearest first."""
        return tuple(stall for stall in self.stalls if stall.cause in causes)


def strip_chart(log: StepLog) -> StripChart:
    """Take a step log apart. Never raises for a short log: ``searched`` says that no period was looked for."""
    x = log.seconds
    warm = warm_up(x)
    kept = np.arange(len(x)) >= warm
    stride, even = _stride(log)
    y, weight = x[kept], log.count[kept]
    searched = len(y) >= LEAST_ROWS and even
    least = 2e-9 * log.resolution_ns / stride
    combs, rest = periodic.combs(y, least_excess=least) if searched else ([], y)
    steps = log.step[kept]
    stalls = tuple(_named(log, kept, _stall(comb, steps, len(y), stride)) for comb in combs)
    jump = _jump_row(_trend(rest, steps), steps) if len(rest) >= LEAST_ROWS else 0
    out, local = _outliers(rest, least, jump)
    outliers_s = float(((rest - local) * weight)[out].sum() / weight.sum())
    usual = rest.copy()
    usual[out] = local[out]
    mean = float((y * weight).sum() / weight.sum())
    typical = _midmean(usual)
    stalls_s = sum(stall.per_step_s for stall in stalls)
    return StripChart(
        log=log, seconds=x, kept=kept, warm_up=int(log.count[:warm].sum()),
        warm_up_s=float(((x - typical) * log.count)[:warm].sum()), stride=stride, searched=searched,
        mean_s=mean, median_s=float(np.median(y)), p95_s=float(np.quantile(y, 0.95)),
        p99_s=float(np.quantile(y, 0.99)), typical_s=typical,
        stalls=tuple(sorted(stalls, key=lambda s: -s.per_step_s)), stalls_s=stalls_s,
        outliers=len(out), outlier_steps=tuple(int(s) for s in steps[out]), outliers_s=outliers_s,
        trend=_trend(usual, steps) if len(y) >= LEAST_ROWS else None,
        rest_s=mean - typical - stalls_s - outliers_s, notes=_notes(log, warm, stride, searched),
    )  # fmt: skip


def _jump_row(trend: Trend | None, steps: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    """The row at which the level jumps; 0 where it does not, or too near an end to compare."""
    row = 0 if trend is None or trend.step is None else int(np.searchsorted(steps, trend.step))
    return row if LEAST_ROWS <= row <= len(steps) - LEAST_ROWS else 0


def _outliers(rest: Floats, least_s: float, jump: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Floats]:
    """Rows of single slow steps, and the usual time around each row; the two sides of a jump have each their own."""
    if len(rest) < LEAST_ROWS:
        return np.empty(0, np.int64), baseline(rest)
    sides = [(0, rest[:jump]), (jump, rest[jump:])] if jump else [(0, rest)]
    rows = np.concatenate([start + periodic.outliers(side, least_s) for start, side in sides])
    return rows, np.concatenate([baseline(side) for _, side in sides])


def strip_charts(logs: Sequence[StepLog]) -> tuple[StripChart, ...]:
    """One chart a log, the slowest run first."""
    return tuple(sorted((strip_chart(log) for log in logs), key=lambda chart: -chart.mean_s))


def warm_up(x: Floats) -> int:
    """How many leading rows of step times (n,) are compilation and filling pipelines, not the run's pace.

    Leading rows outside the usual range of the steps after them, and rows up to the last of the first ten that is
    three medians long; at most a tenth of the log.
    """
    most = min(50, int(len(x) * WARM_UP_SHARE))
    if most == 0:
        return 0
    after = x[most : most + 200]
    middle = float(np.median(after))
    reach = max(5 * spread(after), 0.1 * middle)
    outside = np.abs(x[:most] - middle) > reach
    leading = int(np.argmin(outside)) if not outside.all() else most
    long = np.flatnonzero(x[: min(10, most)] > WARM_UP_FACTOR * middle)
    return max(leading, int(long[-1]) + 1 if len(long) and leading else 0)


def _midmean(x: Floats) -> float:
    """The mean of the middle half: as robust as the median, and not held to the rounding of the log."""
    low, high = np.quantile(x, 0.25, method="lower"), np.quantile(x, 0.75, method="higher")
    return float(x[(x >= low) & (x <= high)].mean())


def _stride(log: StepLog) -> tuple[int, bool]:
    """How many steps a row covers, and whether nearly all rows cover that many."""
    stride = int(np.median(log.count))
    return max(stride, 1), bool((log.count == stride).mean() >= 0.9)


def _stall(comb: Comb, steps: np.ndarray[tuple[int], np.dtype[np.int64]], rows: int, stride: int) -> Stall:
    return Stall(
        period=comb.period * stride, first=int(steps[comb.rows[0]]), each_s=comb.excess_s * stride,
        per_step_s=comb.excess_s * len(comb.rows) / rows, occurrences=len(comb.rows), log_p=comb.log_p,
        correlation=comb.correlation, period_exact=comb.steady, jitter=comb.jitter,
        steps=tuple(int(step) for step in steps[list(comb.rows)]),
    )  # fmt: skip


def _named(log: StepLog, kept: Mask, stall: Stall) -> Stall:
    """The stall with its cause: from the phase that carries it, else from what was logged then, else from its shape."""
    stall = _by_phase(log, kept, stall)
    return stall if stall.certain else _by_mark(log, stall) or _by_shape(log, kept, stall)


def cause_of(name: str) -> Cause:
    """The cause that the name of a phase or a mark stands for."""
    words = name.lower()
    return next((cause for cause, hints in WORDS if any(hint in words for hint in hints)), "unknown")


def _at(log: StepLog, stall: Stall) -> Mask:
    """The rows at which a stall was seen."""
    return np.isin(log.step, stall.steps)


def _by_phase(log: StepLog, kept: Mask, stall: Stall) -> Stall:
    stride = _stride(log)[0]
    at = _at(log, stall) & kept
    if not at.any() or not (kept & ~at).any():
        return stall
    parts: dict[str, float] = {}
    for name, dur in log.phases.items():
        seconds = np.where(dur == NONE, 0, dur / log.count) * 1e-9  # a phase that is not logged took no time
        more = float(np.median(seconds[at]) - np.median(seconds[kept & ~at])) * stride
        if more > LEAST_PART * stall.each_s:
            parts[name] = more
    best = max(parts, key=lambda name: parts[name], default="")
    if not best or parts[best] < CARRIES * stall.each_s:
        return replace(stall, parts=parts)
    evidence = f"phase {best!r} carries {min(parts[best] / stall.each_s, 1):.0%} of it"
    return replace(stall, cause=cause_of(best), parts=parts, evidence=evidence, certain=True)


def _by_mark(log: StepLog, stall: Stall) -> Stall | None:
    due = log.step[_at(log, stall)]
    for name, steps in log.marks.items():
        # a message is written before or after the line of the step that it delays
        hit = np.mean([np.isin(due + shift, steps) for shift in (-1, 0, 1)], axis=1) if len(due) else np.zeros(3)
        if hit.max() >= 0.8 and len(steps) <= 1.5 * len(due) + 2:
            evidence = f"{hit.max():.0%} of its steps are logged as {name}"
            return replace(stall, cause=cause_of(name), evidence=evidence, certain=True)
    return None


def _by_shape(log: StepLog, kept: Mask, stall: Stall) -> Stall:
    usual = float(np.median(log.seconds[kept]))
    at = _at(log, stall) & kept
    if stall.period_exact and stall.period <= REFILL_PERIOD and stall.each_s < LONG_STALL * usual:
        varies = spread(log.seconds[at]) > max(VARIES * spread(log.seconds[kept & ~at]), 2e-9 * log.resolution_ns)
        evidence = f"every {stall.period:g} steps, shorter than a step and of "
        if varies:
            evidence += "varying length, as when loader workers refill"
            return replace(stall, cause="input", evidence=evidence)
        evidence += "even length: work that is done each such step, or loader workers that refill"
        return replace(stall, evidence=evidence)
    if not stall.period_exact and stall.each_s < 5 * usual:
        evidence = f"its gaps drift by {stall.jitter:.0%}, as when allocations or a clock trigger it"
        return replace(stall, cause="garbage collection", evidence=evidence)
    if stall.period > REFILL_PERIOD and stall.each_s >= LONG_STALL * usual:
        return replace(stall, cause="checkpoint", evidence="rare and longer than a step: a checkpoint or an evaluation")
    return replace(stall, evidence="the log has no phases, and its shape fits no usual cause")


def _trend(usual: Floats, steps: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Trend | None:
    """Mann-Kendall over block medians; a jump is where one pair of neighbouring blocks makes most of the change."""
    blocks = np.array_split(usual, min(TREND_BLOCKS, len(usual) // 4))
    medians = np.array([np.median(block) for block in blocks])
    k = len(medians)
    signs = np.sign(medians[None, :] - medians[:, None])
    score = float(np.triu(signs, 1).sum())
    z = (abs(score) - 1) / np.sqrt(k * (k - 1) * (2 * k + 5) / 18)
    p = float(np.exp(-z * z / 2)) if z > 0 else 1.0  # bounds the two-sided normal tail
    edge = max(2, k // 8)
    before, after = float(np.median(medians[:edge])), float(np.median(medians[-edge:]))
    jumps = np.diff(medians)
    at = int(np.argmax(np.abs(jumps)))
    p = min(p, _jump_p(medians, at + 1))
    if p > TREND_P or abs(after - before) < TREND_LEAST * before:
        return None
    if not abs(jumps[at]) > 0.6 * abs(after - before):
        return Trend(before, after, None, p, float(usual.mean()) - before)
    low = sum(len(block) for block in blocks[:at])
    border = low + _split(np.concatenate(blocks[at : at + 2]))
    before = _midmean(usual[:border])
    return Trend(before, after, int(steps[border]), p, float(usual.mean()) - before)


def _jump_p(medians: Floats, n: int) -> float:
    """The chance that some border separates all blocks before it from all after it, were their order chance."""
    first, second = medians[:n], medians[n:]
    apart = first.max() < second.min() or first.min() > second.max()
    return min(1.0, 2 * (len(medians) - 1) / comb(len(medians), n)) if apart else 1.0


def _split(x: Floats) -> int:
    """The border (1 to n - 1) at which two levels fit the series (n,) best: the largest variance between them."""
    n = np.arange(1, len(x))
    sums = np.cumsum(x)[:-1]
    between = n * (len(x) - n) * (sums / n - (x.sum() - sums) / (len(x) - n)) ** 2
    return int(np.argmax(between)) + 1


def _notes(log: StepLog, warm: int, stride: int, searched: bool) -> tuple[str, ...]:
    notes = list(log.notes)
    if warm:
        last = int(log.step[warm - 1])
        notes.append(f"{int(log.count[:warm].sum())} warm-up steps, up to step {last}, are left out")
    if stride > 1:
        notes.append(f"a row covers {stride} steps: shorter periods cannot be seen, and longer ones to {stride} steps")
    if not searched:
        notes.append("too few rows, or rows of uneven length: no period was looked for")
    return tuple(notes)


def quantities(chart: StripChart) -> dict[str, Quantity]:
    """``steps.mean``, ``steps.typical``, ``steps.p95``, ... and ``steps.stall.0`` (per step) and on, in seconds."""
    prefix = "steps" if chart.log.rank is None else f"{chart.label}.steps"
    source = Source(chart.log.path, f"{int(chart.kept.sum())} rows after warm-up")
    named = {
        "mean": (chart.mean_s, "Mean step"), "median": (chart.median_s, "Median step"),
        "p95": (chart.p95_s, "95th percentile of the step"), "typical": (chart.typical_s, "Step without stalls"),
        "outliers": (chart.outliers_s, "Outliers, per step"), "rest": (chart.rest_s, "Drift and noise, per step"),
    }  # fmt: skip
    found = {
        name: leaf(f"{prefix}.{name}", value, "s", "measured", source).titled(label)
        for name, (value, label) in named.items()
    }
    for i, stall in enumerate(chart.stalls):
        label = f"Stall every {stall.period:.4g} steps, per step"
        found[f"stall.{i}"] = leaf(f"{prefix}.stall.{i}", stall.per_step_s, "s", "measured", source).titled(label)
        each = leaf(f"{prefix}.stall.{i}.each", stall.each_s, "s", "measured", source)
        found[f"stall.{i}.each"] = each.titled(f"One stall of those every {stall.period:.4g} steps")
    if chart.trend is not None:
        trend = leaf(f"{prefix}.trend", chart.trend.per_step_s, "s", "measured", source)
        found["trend"] = trend.titled("Mean step above the level at the start")
    return found
