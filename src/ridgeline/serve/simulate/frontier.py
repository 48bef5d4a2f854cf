"""Latency against throughput: the same traffic at several rates, or with several clients, and the highest rate that
meets an SLO.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ridgeline.core.errors import InfeasibleError
from ridgeline.core.format import seconds
from ridgeline.serve.simulate.engine.result import Result
from ridgeline.serve.simulate.metrics import Metrics, Slo, metrics
from ridgeline.serve.simulate.traffic.arrivals import rate_of
from ridgeline.serve.simulate.traffic.workload import Workload

Simulate = Callable[[Workload], Result]
FLOOR_REQUESTS = 300  # that are served one at a time, for the floor
TOLERANCE = 0.02  # of the highest rate
_MOST_DOUBLINGS = 24


@dataclass(frozen=True)
class Point:
    """One load: requests a second that were offered, or clients in a closed loop, and what came of it."""

    load: float
    metrics: Metrics


@dataclass(frozen=True)
class Frontier:
    """Points by rising load; ``closed`` says that the load counts clients."""

    points: tuple[Point, ...]
    closed: bool


def at_rate(workload: Workload, rate_per_s: float) -> Workload:
    """The same requests in the same pattern at another mean rate. They must not all arrive at once."""
    return workload.rate_scaled(rate_per_s / rate_of(workload.arrival_s))


def alone(workload: Workload) -> Workload:
    """Requests of the workload, every one in an empty system: one client that waits for each answer."""
    some = np.unique(np.linspace(0, len(workload) - 1, min(len(workload), FLOOR_REQUESTS)).astype(np.int64))
    return workload.take(some).replace(concurrency=1, think_s=0.0)


def frontier(
    run: Simulate, workload: Workload, loads: Sequence[float], slos: Mapping[str, Slo], warmup: float | None = None
) -> Frontier:
    """Simulate every load: rates in requests a second, or client counts where the workload's loop is closed."""
    points = []
    for load in sorted(loads):
        sent = workload.replace(concurrency=int(load)) if workload.closed else at_rate(workload, load)
        points.append(Point(load, metrics(run(sent), slos, warmup)))
    return Frontier(tuple(points), workload.closed)


@dataclass(frozen=True)
class MaxRate:
    """The highest rate whose run met the SLO, and the share that did; ``tried`` are all (rate, share) pairs.

    ``monotone`` is False where a higher rate passed than one that failed: then ``rate_per_s`` lies below every failure.
    """

    rate_per_s: float
    share: float
    tried: tuple[tuple[float, float], ...]
    monotone: bool
    floor: Metrics


def max_rate(run: Simulate, workload: Workload, slos: Mapping[str, Slo], warmup: float | None = None) -> MaxRate:
    """Bisect for the highest rate at which the workload meets its SLOs, to within 2%.

    The same requests with the same seed arrive faster or slower, so runs differ by the load alone. Raises
    `InfeasibleError` where requests that are alone in the system miss the SLO: no rate can meet it.
    """
    floor = metrics(run(alone(workload)), slos)
    _check_floor(floor)
    tried: dict[float, float] = {}
    passed: dict[float, bool] = {}

    def passes(rate: float) -> bool:
        found = metrics(run(at_rate(workload, rate)), slos, warmup)
        assert found.goodput is not None, "an SLO is given"
        tried[rate] = found.goodput.share
        passed[rate] = all(item.met for item in found.by_class.values())
        return passed[rate]

    low, high = _bracket(passes, rate_of(workload.arrival_s))
    while high / low > 1 + TOLERANCE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if passes(middle) else (low, middle)
    worst = min((rate for rate, good in passed.items() if not good), default=math.inf)
    best = max((rate for rate, good in passed.items() if good and rate < worst), default=low)
    monotone = not any(good for rate, good in passed.items() if rate > worst)
    return MaxRate(best, tried.get(best, 0.0), tuple(sorted(tried.items())), monotone, floor)


def _check_floor(floor: Metrics) -> None:
    missed = {name: item for name, item in floor.by_class.items() if not item.met}
    if not missed:
        return
    name, item = next(iter(missed.items()))
    said = []
    for key in ("ttft", "tpot"):
        found = floor.latencies[key]
        if found is not None:
            said.append(f"{key} {seconds(found.p50)} at the median, {seconds(found.p99)} at p99")
    raise InfeasibleError(
        f"Expected an SLO that an empty system meets, got {item.slo.words} in class {name}: "
        f"alone in the system {100 * item.share:.1f}% of the requests meet it",
        limit=f"the latency of a request alone: {'; '.join(said)}",
        hint="a faster step (more chips, fewer bits), shorter prompts, or a looser limit",
    )


def _bracket(passes: Callable[[float], bool], start: float) -> tuple[float, float]:
    """A rate that passes and a rate that fails, a factor of two apart."""
    rate = start
    if passes(rate):
        for _ in range(_MOST_DOUBLINGS):
            if not passes(2 * rate):
                return rate, 2 * rate
            rate *= 2
        raise _unbounded(rate, "meets the SLO however fast requests arrive")
    for _ in range(_MOST_DOUBLINGS):
        if passes(rate / 2):
            return rate / 2, rate
        rate /= 2
    raise _unbounded(rate, "misses the SLO however slowly requests arrive")


def _unbounded(rate: float, what: str) -> InfeasibleError:
    return InfeasibleError(
        f"Expected a rate at which the SLO starts to be missed, got none: this list of requests {what}",
        limit=f"{rate:g} requests/s was the last rate tried",
        hint="more requests: a short list is over before a queue has formed",
    )
