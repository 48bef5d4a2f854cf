"""What a simulated run was like: percentiles, goodput under an SLO, use of the engine, energy and money.

Definitions, as the benchmarks of the engines use them: **TTFT** is the first token's time less the arrival. **E2E** is
the last token's time less the arrival. **TPOT** of a request is (E2E - TTFT) / (output tokens - 1), so an answer of one
token has none. **ITL** is the time between two steps that gave a request tokens: with speculation a step gives several,
so ITL and TPOT differ and are never interchanged. **Queueing** is the start of the first step less the arrival.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ridgeline.core import parse
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.serve.simulate.engine.result import Floats, Result
from ridgeline.serve.simulate.traffic.workload import Workload

Mask = NDArray[np.bool_]
LATENCIES = ("ttft", "tpot", "e2e", "queueing")
BATCHES = 20  # of consecutive requests, for the error of a percentile
LEVEL = 0.8  # of an interval
LEAST_TAIL = 5  # requests of a batch beyond a percentile, for its error to mean anything
SLO_SHARE = 0.99  # of the requests, unless the SLO says otherwise


@dataclass(frozen=True)
class Slo:
    """A request meets it with a first token by ``ttft_s`` and a time per output token of at most ``tpot_s``.

    A run meets it where at least the share ``at`` of the requests do, both at once.
    """

    ttft_s: float = math.inf
    tpot_s: float = math.inf
    at: float = SLO_SHARE

    def __post_init__(self) -> None:
        for name in ("ttft_s", "tpot_s"):
            if not getattr(self, name) > 0:
                raise InputError.expected("a latency above zero", getattr(self, name), where=f"slo: {name[:-2]}")
        if not 0 < self.at <= 1:
            raise InputError.expected("a share of requests above 0 and up to 100%", self.at, where="slo: at")

    @property
    def words(self) -> str:
        """``ttft 1 s, tpot 50 ms for 99%``."""
        from ridgeline.core.format import seconds

        parts = {"ttft": self.ttft_s, "tpot": self.tpot_s}
        said = [f"{name} {seconds(value)}" for name, value in parts.items() if math.isfinite(value)]
        return f"{', '.join(said) or 'no limit'} for {100 * self.at:g}%"


def parse_slo(text: str, *, where: str = "--slo") -> Slo:
    """``ttft=1s,tpot=50ms,at=99`` as an `Slo`; ``at`` is a percentage."""
    values: dict[str, float] = {}
    for item in filter(None, (piece.strip() for piece in text.split(","))):
        name, sign, value = (part.strip() for part in item.partition("="))
        if name not in ("ttft", "tpot", "at") or not sign:
            hint = did_you_mean(name, ("ttft", "tpot", "at"), "such as ttft=1s,tpot=50ms,at=99")
            raise InputError.expected("ttft, tpot or at with a value", item, where=where, hint=hint)
        if name in values or f"{name}_s" in values:
            hint = "classes of a --spec file have limits of their own"
            raise InputError.expected(f"{name} once", text, where=where, hint=hint)
        if name == "at":
            values["at"] = parse.number(value.removesuffix("%"), where=where)[0] / 100
        else:
            values[f"{name}_s"] = parse.duration(value, where=f"{where} {name}")
    if not {"ttft_s", "tpot_s"} & set(values):
        raise InputError.expected("a limit on ttft or tpot", text, where=where, hint="such as ttft=1s,tpot=50ms")
    return Slo(**values)


@dataclass(frozen=True)
class Spread:
    """Figures of a latency in seconds over ``count`` requests; ``error`` is half the 80% interval of each by name.

    The error comes from batch means: the requests in order of arrival in 20 batches, the figure of each, and the
    standard error of those. It is absent where a batch has too few requests beyond the percentile.
    """

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    error: Mapping[str, float] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, float]:
        """The figures by name."""
        return {name: getattr(self, name) for name in ("mean", "p50", "p95", "p99")}


def spread(values: Floats) -> Spread | None:
    """The spread of latencies in order of arrival, NaN left out; None where there are none."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    return Spread(len(known), **_figures(known), error=_errors(known))


def _figures(values: Floats) -> dict[str, float]:
    p50, p95, p99 = np.percentile(values, [50, 95, 99])
    return {"mean": float(values.mean()), "p50": float(p50), "p95": float(p95), "p99": float(p99)}


def _errors(values: Floats) -> dict[str, float]:
    size = len(values) // BATCHES
    tails = {"mean": 1.0, "p50": 0.5, "p95": 0.05, "p99": 0.01}
    if size < LEAST_TAIL:
        return {}
    from scipy.special import stdtrit

    batches = [_figures(values[at * size : (at + 1) * size]) for at in range(BATCHES)]
    factor = float(stdtrit(BATCHES - 1, (1 + LEVEL) / 2)) / math.sqrt(BATCHES)
    return {
        name: factor * float(np.std([batch[name] for batch in batches], ddof=1))
        for name, tail in tails.items()
        if size * tail >= LEAST_TAIL
    }


@dataclass(frozen=True)
class Goodput:
    """Requests that met their SLO: their share of those that were sent, and how many a second."""

    slo: Slo
    share: float
    requests_per_s: float

    @property
    def met(self) -> bool:
        """Whether the run meets the SLO."""
        return self.share >= self.slo.at


def settling(workload: Workload) -> float:
    """The share of the requests that is left out unless said: the first two of every client of a closed loop.

    All clients start at once, which no later request meets; at most half are left out. An open loop leaves out none.
    """
    return min(0.5, 2 * workload.concurrency / len(workload))


def counted(result: Result, warmup: float | None = None) -> Mask:
    """Which requests count: all but the first ``warmup`` share by arrival, (n,); by default what `settling` says.

    Unserved requests count: they failed.
    """
    share = settling(result.workload) if warmup is None else warmup
    if not 0 <= share < 1:
        raise InputError.expected("a share from 0 to below 1", share, where="warmup")
    order = np.argsort(result.arrival_s, kind="stable")
    mask = np.ones(len(order), dtype=np.bool_)
    mask[order[: int(share * len(order))]] = False
    return mask


def meets(result: Result, slo: Slo) -> Mask:
    """Which requests met the SLO, (n,). An answer of one token has no TPOT and cannot miss it."""
    tpot = np.nan_to_num(result.tpot_s, nan=0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(result.served & (result.ttft_s <= slo.ttft_s) & (tpot <= slo.tpot_s))


def goodput(result: Result, slo: Slo, mask: Mask) -> Goodput:
    """The goodput among the requests of ``mask``, over the time from their first arrival to their last token."""
    good = meets(result, slo) & mask
    sent = int(mask.sum())
    return Goodput(slo, good.sum() / sent if sent else 0.0, float(good.sum()) / _span(result, mask))


def _span(result: Result, mask: Mask) -> float:
    """Seconds from the first arrival to the last token of some requests; infinity where none was served."""
    done = mask & result.served
    span = float(result.finished_s[done].max() - result.arrival_s[done].min()) if done.any() else 0.0
    return span if span > 0 else math.inf


@dataclass(frozen=True)
class Power:
    """Watts of one chip while a step runs and while it waits."""

    busy_w: float
    idle_w: float = 0.0

    def joules(self, result: Result, chips: int) -> float:
        """Energy of every worker of ``chips`` chips, from the first arrival to the last token."""
        busy = float(result.totals.busy_s.sum())
        idle = max(0.0, result.engine.workers * result.makespan_s - busy)
        return chips * (self.busy_w * busy + self.idle_w * idle)


@dataclass(frozen=True)
class Metrics:
    """A run in figures. ``latencies`` by name (None: no request has one). Rates are over the counted requests' span.

    ``busy`` is the share of the time in which a worker ran a step; ``batch`` the mean sequences in a step;
    ``kv_mean`` and ``kv_peak`` shares of the key-value blocks; ``hit_rate`` of prompt tokens; ``recomputed`` prompt
    tokens computed over those asked for and not cached, less one.
    """

    latencies: Mapping[str, Spread | None]
    by_class: Mapping[str, Goodput]
    goodput: Goodput | None
    requests: int
    unserved: int
    requests_per_s: float
    input_tokens_per_s: float
    output_tokens_per_s: float
    busy: float
    batch: float
    kv_mean: float
    kv_peak: float
    preemptions: int
    hit_rate: float
    recomputed: float
    itl: Spread | None = None


def metrics(result: Result, slos: Mapping[str, Slo] | None = None, warmup: float | None = None) -> Metrics:
    """The figures of a run. ``slos`` by class; the name ``""`` is that of every request without one of its own."""
    mask = counted(result, warmup)
    load, totals = result.workload, result.totals
    done, span = mask & result.served, _span(result, mask)
    columns = {"ttft": result.ttft_s, "tpot": result.tpot_s, "e2e": result.e2e_s, "queueing": result.queueing_s}
    order = np.argsort(result.arrival_s, kind="stable")
    order = order[done[order]]
    busy, blocks = float(totals.busy_s.sum()), result.engine.kv_blocks
    wall = result.engine.workers * result.makespan_s
    needed = int((load.input_tokens - result.hit_tokens)[result.served].sum())
    by_class = _by_class(result, slos or {}, mask)
    return Metrics(
        latencies={name: spread(values[order]) for name, values in columns.items()},
        by_class=by_class,
        goodput=_together(by_class, result, mask),
        requests=int(mask.sum()),
        unserved=int((mask & ~result.served).sum()),
        requests_per_s=float(done.sum()) / span,
        input_tokens_per_s=float(load.input_tokens[done].sum()) / span,
        output_tokens_per_s=float(load.output_tokens[done].sum()) / span,
        busy=busy / wall if wall else 0.0,
        batch=float(totals.sequence_s.sum()) / busy if busy else 0.0,
        kv_mean=float(totals.block_s.sum()) / (busy * blocks) if busy else 0.0,
        kv_peak=float(totals.peak_blocks.max()) / blocks,
        preemptions=int(result.preemptions[mask].sum()),
        hit_rate=result.hit_rate,
        recomputed=max(0.0, float(totals.prompt_tokens.sum()) / needed - 1) if needed else 0.0,
        itl=inter_token(result),
    )


def _by_class(result: Result, slos: Mapping[str, Slo], mask: Mask) -> dict[str, Goodput]:
    load = result.workload
    found = {}
    for index, name in enumerate(load.classes):
        slo = slos.get(name, slos.get(""))
        if slo is not None:
            found[name] = goodput(result, slo, mask & (load.service == index))
    return found


def _together(by_class: Mapping[str, Goodput], result: Result, mask: Mask) -> Goodput | None:
    """Every class by its own SLO, in one figure: met where each class meets its own."""
    if not by_class:
        return None
    if len(by_class) == 1 and len(result.workload.classes) == 1:
        return next(iter(by_class.values()))
    held = {index: by_class[name] for index, name in enumerate(result.workload.classes) if name in by_class}
    counts = {index: int((mask & (result.workload.service == index)).sum()) for index in held}
    good = sum(held[index].share * counts[index] for index in held)
    sent = sum(counts.values())
    loosest = min(held.values(), key=lambda item: item.share - item.slo.at)
    return Goodput(loosest.slo, good / sent if sent else 0.0, good / _span(result, mask))


def inter_token(result: Result) -> Spread | None:
    """Time between two steps that gave a decoding request tokens, over all such pairs; None without recorded steps.

    A worker's decodes all take part in its next step that has decodes, so the gap is the step time since the last such
    step: idle time does not count.
    """
    steps = result.steps
    if steps is None:
        return None
    gaps, weights = [], []
    for worker in np.unique(steps.worker):
        mine = steps.worker == worker
        decodes = steps.decodes[mine]
        at = np.flatnonzero(decodes > 0)
        ends = np.cumsum(steps.seconds[mine].astype(np.float64))[at]
        gaps.append(np.diff(ends, prepend=0.0))
        weights.append(decodes[at])
    gap, weight = np.concatenate(gaps), np.concatenate(weights).astype(np.float64)
    if not len(gap):
        return None
    order = np.argsort(gap, kind="stable")
    shares = np.cumsum(weight[order]) / weight.sum()
    p50, p95, p99 = (float(gap[order][np.searchsorted(shares, q)]) for q in (0.5, 0.95, 0.99))
    return Spread(int(weight.sum()), float((gap * weight).sum() / weight.sum()), p50, p95, p99)
