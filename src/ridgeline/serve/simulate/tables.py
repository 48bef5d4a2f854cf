"""The tables of a simulation, from which the card, the report and the charts are made."""

import math
from typing import Any

import numpy as np

from ridgeline.core.case import Column, Table
from ridgeline.core.format import seconds
from ridgeline.serve.simulate.engine.result import Floats
from ridgeline.serve.simulate.facts import TITLES, Simulated
from ridgeline.serve.simulate.metrics import Metrics
from ridgeline.serve.simulate.traffic.summary import Spread

POINTS = 80  # of a distribution
BINS = 120  # of the timeline
_MS = 1e3
_TAIL = 1.01  # of the median: below it a tail is not worth a word
_NONE = "none"
_SHORT = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "E2E", "queueing": "Queueing"}


def digits(value: float, figures: int = 4) -> float:
    """A value in so many significant digits, for a table of plain numbers."""
    return float(f"{value:.{figures}g}")


def latency_table(facts: Simulated) -> Table:
    """The figures of every latency in columns, the last row half the interval of the 99th percentile."""
    known = {name: item for name, item in facts.metrics.latencies.items() if item is not None}
    columns = [Column("figure", "Figure")]
    columns += [Column(name, _SHORT[name], "s", TITLES[name]) for name in known]
    rows: dict[str, list[Any]] = {
        key: [key, *(facts.latencies[f"{name}.{key}"] for name in known)] for key in ("mean", "p50", "p95", "p99")
    }
    errors = [item.error.get("p99") for item in known.values()]
    if any(error is not None for error in errors):
        rows["error"] = ["p99 ±", *("" if error is None else digits(error, 2) for error in errors)]
    itl = facts.metrics.itl
    if itl is not None:
        columns.append(Column("itl", "ITL", "s", "gaps between steps that gave a request tokens"))
        for key, cells in rows.items():
            cells.append(digits(itl.figures[key], 3) if key in itl.figures else "")
    note = (
        "TPOT is (E2E - TTFT)/(output tokens - 1) of a request; ITL is of single gaps. Arrival is when the client sent "
        "the request. The row p99 ± is half the 80% interval, from 20 batches of consecutive requests."
    )
    return Table("Latency", tuple(columns), tuple(tuple(row) for row in rows.values()), note=note)


_MEANINGS = {
    "simulate.requests_per_s": "over the span of the counted requests",
    "simulate.busy": "of a worker's time",
    "simulate.batch": "mean over time in steps",
    "simulate.goodput": "both limits kept",
    "simulate.max_rate": "the same requests, faster or slower",
    "serve.dollars_per_million_tokens": "rent of all chips over the run",
}


def use_table(facts: Simulated) -> Table:
    """What was served and how the engine was used."""
    found = [*facts.rates.values(), facts.dollars, facts.joules]
    rows = tuple((item.label, item, _MEANINGS.get(item.name, item.note)) for item in found if item is not None)
    columns = (Column("what", "What"), Column("value", "Value"), Column("note", "Note"))
    return Table("What was served", columns, rows)


def bound_table(facts: Simulated) -> Table:
    """What held the queue back, by share of the step time."""
    rows = tuple((name, digits(100 * share, 3)) for name, share in facts.binding.items())
    columns = (Column("what", "Held back by"), Column("share", "Step time", "%"))
    return Table("What holds waiting requests back", columns, rows)


def traffic_table(facts: Simulated) -> Table:
    """The workload: requests, rate, dispersion, lengths."""
    load = facts.result.workload
    columns = (
        Column("what", "Tokens of a request"),
        *(Column(name, name, "token") for name in ("mean", "p50", "p99", "largest")),
    )
    spreads = {"prompt": Spread.of(load.input_tokens), "answer": Spread.of(load.output_tokens)}
    rows = tuple((name, digits(s.mean), digits(s.p50), digits(s.p99), int(s.largest)) for name, s in spreads.items())
    note = ""
    if facts.summary is not None:
        note = (
            f"{len(load):,} requests over {seconds(facts.summary.span_s)}; variance over mean of the arrivals of a "
            f"second {facts.summary.dispersion:.3g} (1: Poisson)."
        )
    return Table("The traffic", columns, rows, note=note)


def class_table(facts: Simulated) -> Table:
    """Goodput of each class by its own SLO."""
    columns = (
        Column("name", "Class"),
        Column("slo", "SLO"),
        Column("share", "Meets it", "%"),
        Column("rate", "Goodput", "request/s"),
    )
    rows = tuple(
        (name, item.slo.words, digits(100 * item.share), digits(item.requests_per_s, 3))
        for name, item in facts.metrics.by_class.items()
    )
    return Table("Goodput by class", columns, rows)


def frontier_table(facts: Simulated) -> Table:
    """One row a load, the load of this run among them where it was simulated."""
    assert facts.curve is not None, "there is a curve"
    head = Column("load", "Clients", "1") if facts.curve.closed else Column("load", "Offered", "request/s")
    columns = (
        head,
        Column("served", "Served", "request/s"),
        Column("tokens", "Output", "token/s/chip"),
        Column("ttft", "TTFT p99", "s"),
        Column("tpot", "TPOT p50", "ms"),
        Column("share", "Meets SLO", "%"),
    )
    rows = tuple(_load_row(point.load, point.metrics, facts.study.chips) for point in facts.curve.points)
    return Table("Latency against throughput", columns, rows)


def _load_row(load: float, m: Metrics, chips: int) -> tuple[Any, ...]:
    ttft, tpot = m.latencies["ttft"], m.latencies["tpot"]
    share = digits(100 * m.goodput.share) if m.goodput is not None else ""
    return (
        digits(load, 3), digits(m.requests_per_s, 3), digits(m.output_tokens_per_s / chips, 3),
        digits(ttft.p99, 3) if ttft else _NONE, digits(_MS * tpot.p50, 3) if tpot else _NONE, share,
    )  # fmt: skip


def distribution_table(facts: Simulated) -> Table:
    """The distributions of TTFT, TPOT and queueing: a few quantiles each, finer in the tail."""
    shares = np.unique(np.r_[np.linspace(0.01, 0.95, POINTS // 2), 1 - np.geomspace(0.05, 0.002, POINTS // 2)])
    columns = (Column("what", "Latency"), Column("time", "Latency", "s"), Column("share", "Requests", "%"))
    rows: list[tuple[Any, ...]] = []
    for name, values in (("TTFT", facts.result.ttft_s), ("TPOT", facts.result.tpot_s), ("E2E", facts.result.e2e_s)):
        known = values[np.isfinite(values)]
        if len(known):
            found = np.quantile(known, shares)
            rows += [(name, digits(max(t, 1e-6)), digits(100 * s)) for t, s in zip(found, shares, strict=True)]
    return Table("Share of the requests that are served within a time", columns, tuple(rows))


def queue_table(facts: Simulated) -> Table:
    """Waiting and decoding requests over the run, means of bins over all workers."""
    columns = (Column("time", "Time", "s"), Column("count", "Requests", "request"), Column("what", "What"))
    steps = facts.result.steps
    assert steps is not None, "steps are recorded"
    rows: list[tuple[Any, ...]] = []
    for name, values in (("waiting", steps.waiting), ("decoding", steps.decodes)):
        at, means = _binned(facts, np.asarray(values, dtype=np.float64))
        rows += [(digits(t), digits(v, 3), name) for t, v in zip(at, means, strict=True)]
    return Table("Requests that wait and that decode on a worker", columns, tuple(rows))


def memory_table(facts: Simulated) -> Table:
    """Key-value blocks in use over the run, in percent of a worker's."""
    columns = (Column("time", "Time", "s"), Column("share", "Blocks in use", "%"))
    steps = facts.result.steps
    assert steps is not None, "steps are recorded"
    at, means = _binned(facts, 100 * steps.blocks / facts.result.engine.kv_blocks)
    rows = tuple((digits(t), digits(v, 3)) for t, v in zip(at, means, strict=True))
    return Table("Key-value blocks in use", columns, rows)


def _binned(facts: Simulated, values: Floats) -> tuple[Floats, Floats]:
    """Means of a per-step figure in equal bins of time, weighted by the steps' seconds; empty bins are left out."""
    steps = facts.result.steps
    assert steps is not None, "steps are recorded"
    start = steps.start_s - steps.start_s[0]
    width = max(float(start[-1]), 1e-9) / BINS
    index = np.minimum((start / width).astype(np.int64), BINS - 1)
    seconds_ = np.bincount(index, weights=steps.seconds, minlength=BINS)
    sums = np.bincount(index, weights=values * steps.seconds, minlength=BINS)
    held = seconds_ > 0
    at = np.asarray((np.arange(BINS) + 0.5) * width, dtype=np.float64)
    return at[held], sums[held] / seconds_[held]


def floor_note(facts: Simulated) -> str:
    """The latency of requests that are alone in the system, in words; empty where it was not looked for."""
    if facts.highest is None:
        return ""
    said = []
    for name in ("ttft", "tpot"):
        item = facts.highest.floor.latencies[name]
        if item is not None and math.isfinite(item.p50):
            tail = f" (p99 {seconds(item.p99)})" if item.p99 > _TAIL * item.p50 else ""
            said.append(f"{name.upper()} {seconds(item.p50)}{tail}")
    return f"Alone in the system a request has {' and '.join(said)}." if said else ""
