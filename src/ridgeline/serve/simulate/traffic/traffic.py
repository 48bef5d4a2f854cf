"""What arrives, as people describe it: a trace, a rate or a number of clients, lengths, classes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from ridgeline.core import parse
from ridgeline.core.errors import InputError, located
from ridgeline.core.specs import Spec, typed
from ridgeline.serve.simulate.metrics import SLO_SHARE, Slo
from ridgeline.serve.simulate.traffic.arrivals import Bursts, gamma, on_off, poisson, rate_of
from ridgeline.serve.simulate.traffic.lengths import LogNormal, taken
from ridgeline.serve.simulate.traffic.requests import Floats, Ints, Requests, read_requests
from ridgeline.serve.simulate.traffic.workload import DEFAULT_CLASS, Workload

REQUESTS = 4000  # simulated where nothing says how many
_Tokens = Annotated[int, typed(parse.context, "the lengths of $.traffic")]
_Seconds = Annotated[float, typed(parse.duration, "the times of $.traffic and $.slo")]
_Rate = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]  # beyond it a typing error
_Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class Length(Spec):
    """One length, or a log-normal: two of ``p50``, ``p99`` and ``mean``; never above ``most``."""

    p50: _Tokens | None = None
    p99: _Tokens | None = None
    mean: _Tokens | None = None
    most: _Tokens | None = None


class Burst(Spec):
    """Times and rates of an on-off process, as `Bursts` says."""

    ratio: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 10.0
    on: _Seconds = 10.0
    off: _Seconds = 50.0


class Limits(Spec):
    """An SLO: the latest first token, the longest time per output token, the share of requests that must meet both."""

    ttft: _Seconds | None = None
    tpot: _Seconds | None = None
    at: _Share = SLO_SHARE

    @property
    def slo(self) -> Slo | None:
        """None without a limit."""
        if self.ttft is None and self.tpot is None:
            return None
        return Slo(self.ttft or np.inf, self.tpot or np.inf, self.at)


class Class(Limits):
    """Requests with an SLO of their own: their share of the traffic, and their priority (smaller is more urgent)."""

    name: str
    share: _Share
    priority: int = 0


class Traffic(Spec):
    """The ``[traffic]`` table of a spec. A trace gives lengths and arrivals; a rate rescales it.

    Without a trace ``input`` and ``output`` give lengths. ``concurrency`` closes the loop: it excludes a rate.
    """

    trace: str = ""
    sort: bool = False
    repeat: Annotated[int, Field(ge=1, le=1000)] = 1
    rate: _Rate | None = None
    concurrency: Annotated[int, Field(ge=1, le=100_000)] | None = None
    think: Annotated[float, typed(parse.duration, "$.traffic.think", zero=True)] = 0.0
    requests: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    arrivals: Literal["trace", "poisson", "gamma", "bursts"] | None = None
    cv: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 1.0
    burst: Burst = Burst()
    input: Length | None = None
    output: Length | None = None
    classes: tuple[Class, ...] = ()
    seed: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True, eq=False)
class Made:
    """A workload, the requests it was read from, and how it arrives in words."""

    workload: Workload
    requests: Requests | None
    arrivals: str


def make(traffic: Traffic, folder: Path | None = None) -> Made:
    """The workload of a description; the trace's path is taken from ``folder``.

    Raises `InputError` for what contradicts itself (a rate and a number of clients: an open loop sends whatever
    happens, a closed one waits), for a trace without times and without a rate, and for bad traces.
    """
    _check(traffic)
    random = np.random.default_rng(traffic.seed)
    read = None
    if traffic.trace:
        read = read_requests(folder / traffic.trace if folder else traffic.trace, sort=traffic.sort)
    given, made = _lengths(traffic, read, random)
    times, words = _times(traffic, read, len(given), random)
    blocks = _blocks(read, len(given)) if read and traffic.input is None else {}
    load = Workload(
        times, given, made, concurrency=traffic.concurrency or 0, think_s=traffic.think, **blocks,
        **_classes(traffic, len(given), random), name=traffic.trace or "traffic",
    )  # fmt: skip
    return Made(load.tiled(traffic.repeat) if traffic.repeat > 1 else load, read, words)


def _check(traffic: Traffic) -> None:
    if traffic.concurrency and traffic.rate:
        hint = "an open loop sends at its rate whatever happens, a closed one waits for answers: choose one"
        raise InputError.expected("a rate or a number of clients", "both", where="$.traffic.concurrency", hint=hint)
    if traffic.concurrency and traffic.arrivals:
        hint = "in a closed loop the answers decide when requests are sent"
        raise InputError.expected("no arrival process", traffic.arrivals, where="$.traffic.arrivals", hint=hint)
    if traffic.arrivals == "trace" and not traffic.trace:
        raise InputError.expected("a trace", "none", where="$.traffic.trace")
    lengths = {"prompts": traffic.input, "answers": traffic.output}
    missing = [what for what, length in lengths.items() if length is None]
    if missing and not traffic.trace:
        got = "neither" if len(missing) == len(lengths) else f"no length of {missing[0]}"
        hint = "give --input 1k --answer 256, or --trace"
        raise InputError.expected("a trace, or lengths of prompts and answers", got, where="the traffic", hint=hint)
    if not (traffic.trace or traffic.rate or traffic.concurrency):
        hint = "give --rate 5, or concurrency = 16 under [traffic] of a --spec file for a closed loop"
        raise InputError.expected("requests per second, or clients", "neither", where="the traffic", hint=hint)
    total = sum(item.share for item in traffic.classes)
    if traffic.classes and abs(total - 1) > 1e-6:
        raise InputError.expected("shares that add up to 1", total, where="$.traffic.classes")
    if len({item.name for item in traffic.classes}) < len(traffic.classes):
        raise InputError.expected("classes of different names", "one twice", where="$.traffic.classes")


def _lengths(traffic: Traffic, read: Requests | None, random: np.random.Generator) -> tuple[Ints, Ints]:
    n = traffic.requests or (len(read) if read else REQUESTS)
    columns = []
    for name in ("input", "output"):
        length: Length | None = getattr(traffic, name)
        if length is not None:
            with located("$.traffic"):
                drawn = LogNormal.of(
                    p50=length.p50, p99=length.p99, mean=length.mean, most=length.most or 0, where=name
                )
            columns.append(drawn.draw(n, random))
        else:
            assert read is not None, "lengths are given or read"
            tokens = read.input_tokens if name == "input" else read.output_tokens
            columns.append(tokens[taken(tokens, n)])
    return columns[0], columns[1]


def _times(traffic: Traffic, read: Requests | None, n: int, random: np.random.Generator) -> tuple[Floats, str]:
    """Arrivals, and how they come about in words."""
    if traffic.concurrency:
        think = f" that think for {traffic.think:g} s" if traffic.think else ""
        return np.zeros(n), f"a closed loop of {traffic.concurrency} clients{think}"
    process = traffic.arrivals or ("trace" if read is not None and read.arrival_s is not None else "poisson")
    if process == "trace":
        assert read is not None
        return _replayed(traffic, read, n)
    if traffic.rate is None:
        hint = "the trace holds lengths only: give --rate"
        raise InputError.expected("requests per second", "none", where="the traffic", hint=hint)
    rate = f"{traffic.rate:g} requests/s"
    if process == "gamma":
        return gamma(traffic.rate, traffic.cv, n, random), f"Gamma, {rate}, gaps with a CV of {traffic.cv:g}"
    if process == "bursts":
        burst = Bursts(traffic.burst.ratio, traffic.burst.on, traffic.burst.off)
        return on_off(traffic.rate, burst, n, random), f"on-off, {rate}, {burst.ratio:g} times the rate while on"
    return poisson(traffic.rate, n, random), f"Poisson, {rate}"


def _replayed(traffic: Traffic, read: Requests, n: int) -> tuple[Floats, str]:
    if read.arrival_s is None:
        hint = "the file holds lengths only: give --rate"
        raise InputError.expected("arrival times", "none", where=read.file.path, hint=hint)
    if n > len(read):
        hint = "repeat = N under [traffic] lays the trace end to end"
        raise InputError.expected(f"at most the {len(read):,} requests of the trace", n, where="$.traffic.requests",
                                  hint=hint)  # fmt: skip
    times = read.arrival_s[:n] - read.arrival_s[0]
    own = rate_of(times)
    if traffic.rate is None:
        return times, f"as the trace has them, {own:.3g} requests/s"
    if not np.isfinite(own):
        raise InputError.expected("arrivals at different times", "all at once", where=f"{read.file.path}: times")
    factor = traffic.rate / own
    return times / factor, f"the trace's pattern, {factor:.3g} times as fast: {traffic.rate:g} requests/s"


def _blocks(read: Requests, n: int) -> dict[str, Any]:
    """The block hashes of the first n requests, flat. A list that is repeated repeats its prompts."""
    if read.blocks is None:
        return {}
    rows = [read.blocks[row] for row in taken(read.input_tokens, n).tolist()]
    counts = np.array([len(row) for row in rows], dtype=np.int64)
    flat = np.fromiter((item for row in rows for item in row), dtype=np.int64, count=int(counts.sum()))
    return {"hashes": flat, "hash_offsets": np.r_[0, np.cumsum(counts)], "hash_tokens": read.block_tokens}


def _classes(traffic: Traffic, n: int, random: np.random.Generator) -> dict[str, Any]:
    if not traffic.classes:
        return {"classes": (DEFAULT_CLASS,)}
    drawn = random.choice(len(traffic.classes), n, p=[item.share for item in traffic.classes])
    priority = np.array([item.priority for item in traffic.classes])[drawn]
    return {"classes": tuple(item.name for item in traffic.classes), "service": drawn, "priority": priority}


def slos_of(traffic: Traffic, limits: Limits) -> dict[str, Slo]:
    """The SLO of each class that has one; ``""`` is that of the others."""
    found = {item.name: item.slo for item in traffic.classes}
    return {name: slo for name, slo in {**found, "": limits.slo}.items() if slo is not None}
