"""A simulation as a `Case`: the run, its findings, the frontier, and where the time and the memory go."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ridgeline.core import charts, plugins
from ridgeline.core.case import Case, Chart, Section, Table
from ridgeline.core.errors import InfeasibleError
from ridgeline.core.finding import RuleConfig, run_rules
from ridgeline.core.format import count, value
from ridgeline.serve.simulate import tables
from ridgeline.serve.simulate.binding import NOTHING
from ridgeline.serve.simulate.costs.table import StepTable
from ridgeline.serve.simulate.engine.loop import admissible, simulate
from ridgeline.serve.simulate.engine.result import SERVED, Result
from ridgeline.serve.simulate.facts import Simulated
from ridgeline.serve.simulate.frontier import Frontier, MaxRate, frontier, max_rate
from ridgeline.serve.simulate.metrics import Slo, Spread, metrics
from ridgeline.serve.simulate.study import Study
from ridgeline.serve.simulate.traffic.arrivals import rate_of
from ridgeline.serve.simulate.traffic.traffic import slos_of
from ridgeline.serve.simulate.traffic.workload import Workload
from ridgeline.serve.steps.quantities import served

_SHARES = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25)  # of the rate around which the frontier is drawn
_MOST_CLIENTS = 1024
_SEARCHED = 10_000  # requests with which the highest rate and the frontier are looked for
_MOST_LISTED = 12
_DECADE = 10  # of a range: beyond it an axis is logarithmic
_SOME = 0.005  # of the step time


@dataclass(frozen=True)
class Wanted:
    """What to look for beside the run itself."""

    highest: bool = True
    curve: bool = True


def simulated(study: Study, table: StepTable, wanted: Wanted | None = None) -> Simulated:
    """Run the study, look for the highest rate that meets its SLO, and draw the frontier.

    The search leaves out what can never be served, and uses the first 10,000 requests of a longer workload. Raises
    `InfeasibleError` where an empty system misses the SLO.
    """
    wanted = wanted or Wanted()
    load, spec = study.made.workload, study.spec
    slos = slos_of(spec.traffic, spec.slo)

    def run(workload: Workload) -> Result:
        return simulate(workload, table, study.engine, spec.seed)

    result = simulate(load, table, study.engine, spec.seed, record_steps=True)
    found = metrics(result, slos, spec.warmup)
    part = _searched(load, study)
    highest, missed = None, ""
    if wanted.highest and slos and part is not None and not load.closed:
        highest, missed = _highest(run, part, slos, spec.warmup)
    curve = _curve(run, part, slos, highest, spec.warmup) if wanted.curve and part is not None else None
    return Simulated(study, result, found, slos, highest, curve, missed)


def _searched(load: Workload, study: Study) -> Workload | None:
    """The requests with which rates are tried; None where no request can be served."""
    rows = np.flatnonzero(admissible(load, study.engine) == SERVED)[:_SEARCHED]
    return load.take(rows) if len(rows) else None


def _highest(
    run: Callable[[Workload], Result], load: Workload, slos: dict[str, Slo], warmup: float | None
) -> tuple[MaxRate | None, str]:
    """The highest rate, or why there is none; a floor above the SLO is refused."""
    if not math.isfinite(rate_of(load.arrival_s)):
        return None, "The requests arrive all at once: there is no rate to scale."
    try:
        return max_rate(run, load, slos, warmup), ""
    except InfeasibleError as error:
        if "requests/s was the last rate" not in error.limit:
            raise
        return None, f"No highest rate: {error.hint}."


def _curve(
    run: Callable[[Workload], Result],
    load: Workload,
    slos: dict[str, Slo],
    highest: MaxRate | None,
    warmup: float | None,
) -> Frontier | None:
    if load.closed:
        top = min(max(2 * load.concurrency, 2), _MOST_CLIENTS, len(load))
        counts = {2**power for power in range(1 + int(math.log2(top)))} | {min(load.concurrency, len(load))}
        return frontier(run, load, sorted(counts), slos, warmup)
    middle = highest.rate_per_s if highest is not None else rate_of(load.arrival_s)
    if not math.isfinite(middle):
        return None
    return frontier(run, load, [middle * share for share in _SHARES], slos, warmup)


def simulate_case(facts: Simulated, *, command: str = "", config: RuleConfig | None = None) -> Case:
    """The case of a run. ``config`` selects, ignores and re-thresholds the S2 rules."""
    laid = facts.study.deployment
    workers = f"{facts.study.engine.workers} x " if facts.study.engine.workers > 1 else ""
    load = facts.result.workload
    title = f"{laid.spec.name} on {workers}{laid.chips} x {laid.device.name}, {_sent(load)}"
    case = Case("serve simulate", title, command=command, inputs=list(facts.study.inputs))
    case.add(*facts.quantities)
    case.add(*served(laid.spec, float(load.input_tokens.mean()), float(load.output_tokens.mean())))
    case.add_findings(run_rules(plugins.rules_of("serve", config), facts, config, family="S2"))
    case.lost += _lost(facts)
    case.sections = [_latency(case, facts), _use(case, facts)]
    if facts.curve is not None:
        case.sections.append(_frontier(case, facts, facts.curve))
    case.sections += [_distributions(case, facts), _timeline(case, facts), _traffic(case, facts), _how(facts)]
    case.decision, case.because = _decision(facts), _because(facts)
    return case


def _sent(load: Workload) -> str:
    """The traffic in a few words: how often, and the mean lengths."""
    rate = rate_of(load.arrival_s)
    how = count(load.concurrency, "client") if load.closed else "all at once"
    if not load.closed and math.isfinite(rate):
        how = value(rate, "request/s")
    return f"{how}, {load.input_tokens.mean():,.0f} tokens in and {load.output_tokens.mean():,.0f} out"


def _decision(facts: Simulated) -> str:
    if facts.metrics.latencies["ttft"] is None:
        return "No request can be served."
    ttft = "TTFT {simulate.ttft.p50} at the median and {simulate.ttft.p99} at p99"
    tpot = ", TPOT {simulate.tpot.p50}" if facts.metrics.latencies["tpot"] is not None else ""
    if facts.metrics.goodput is None:
        return f"{{simulate.requests_per_s}} are served with a {ttft}{tpot}."
    words = facts.metrics.goodput.slo.words
    said = words if len(facts.metrics.by_class) == 1 else "the SLO of their class"
    text = f"{{simulate.goodput.share}} of the requests meet {said.rpartition(' for ')[0] or said}: {ttft}{tpot}."
    if facts.highest is not None:
        text += " The SLO is met up to {simulate.max_rate}."
    return text


def _because(facts: Simulated) -> str:
    said = [facts.missed] if facts.missed else []
    held = {name: share for name, share in facts.binding.items() if name != NOTHING}
    waits = sum(held.values())
    if waits >= _SOME:
        name = max(held, key=lambda key: held[key])
        said.append(f"Requests wait in {waits:.0%} of the step time, mostly for the {name} ({held[name] / waits:.0%}).")
    elif held:
        said.append("Hardly anybody waits for a place in a step.")
    if facts.highest is not None and not facts.highest.monotone:
        said.append("A higher rate passed than one that failed: the rate given lies below every failure.")
    said.append(tables.floor_note(facts))
    return " ".join(filter(None, said))


def _latency(case: Case, facts: Simulated) -> Section:
    case.add_table("simulate.latency", tables.latency_table(facts))
    show = ["simulate.latency"]
    if len(facts.metrics.by_class) > 1:
        case.add_table("simulate.classes", tables.class_table(facts))
        show.append("simulate.classes")
    text = f"Arrivals: {facts.study.made.arrivals}."
    left_out = len(facts.result.workload) - facts.metrics.requests
    if left_out:
        text += f" The first {left_out:,} requests are not counted: warm-up."
    return Section("Latency", (text,), tuple(show))


def _use(case: Case, facts: Simulated) -> Section:
    case.add_table("simulate.use", tables.use_table(facts))
    show = ["simulate.use"]
    if facts.binding:
        table = tables.bound_table(facts)
        case.add_table("simulate.bound", table)
        title = "What holds waiting requests back"
        alt = "Shares of the step time in which the token budget, the batch limit or memory keep requests waiting."
        case.charts["simulate.bound"] = Chart(title, alt, charts.bars(table, "what", "share"), "simulate.bound")
        show.append("simulate.bound")
    return Section("What was served, and what binds", (), tuple(show))


def _frontier(case: Case, facts: Simulated, curve: Frontier) -> Section:
    table = tables.frontier_table(facts)
    case.add_table("simulate.frontier", table)
    marks = [(facts.highest.rate_per_s, "meets the SLO")] if facts.highest is not None else []
    limits = [(slo.ttft_s, "SLO") for slo in list(facts.slos.values())[:1] if math.isfinite(slo.ttft_s)]
    drawn = Table(table.title, table.columns, tuple(row for row in table.rows if not isinstance(row[3], str)))
    case.add_table("simulate.frontier.ttft", drawn)
    seen = [row[3] for row in drawn.rows]
    wide = len(seen) > 1 and max(seen) > _DECADE * min(seen)
    look = charts.Look(log_y=wide, zero_y=not wide, mark_x=() if curve.closed else marks, mark_y=limits)
    first, last = curve.points[0].metrics, curve.points[-1].metrics
    title = _frontier_title(first.latencies["ttft"], last.latencies["ttft"])
    spec = charts.line(drawn, "load", "ttft", look=look)
    alt = "The 99th percentile of the time to first token against the load."
    case.charts["simulate.frontier.ttft"] = Chart(title, alt, spec, "simulate.frontier.ttft")
    same = "clients in a closed loop" if curve.closed else "the same requests, faster and slower"
    text = f"Every row is a run of its own: {same}, the same seed."
    return Section("Latency against throughput", (text,), ("simulate.frontier", "simulate.frontier.ttft"))


def _frontier_title(first: Spread | None, last: Spread | None) -> str:
    if first is None or last is None or not first.p99 > 0:
        return "Time to first token by load"
    return f"From the lowest to the highest load TTFT p99 grows {last.p99 / first.p99:.1f} times"


def _distributions(case: Case, facts: Simulated) -> Section:
    table = tables.distribution_table(facts)
    if not table.rows:
        return Section("Distributions", ("No request was served.",))
    case.add_table("simulate.distribution", table)
    spec = charts.line(table, "time", "share", "what", look=charts.Look(log_x=True, zero_y=True))
    title = case.text(
        "Half of the requests have their first token within {simulate.ttft.p50}, 99% within {simulate.ttft.p99}"
    )
    alt = "Cumulative shares of the requests by time to first token, time per output token and whole answer."
    case.charts["simulate.distribution"] = Chart(title, alt, spec, "simulate.distribution")
    return Section("Distributions", (), ("simulate.distribution",))


def _timeline(case: Case, facts: Simulated) -> Section:
    if facts.result.steps is None or not len(facts.result.steps):
        return Section("Over time", ("No step was run.",))
    queue, memory = tables.queue_table(facts), tables.memory_table(facts)
    case.add_table("simulate.queue", queue)
    case.add_table("simulate.memory", memory)
    most = max(row[1] for row in queue.rows if row[2] == "waiting")
    title = f"At most {most:,.0f} requests wait on a worker (mean of a bin)"
    spec = charts.line(queue, "time", "count", "what", look=charts.Look(zero_y=True))
    alt = "Waiting and decoding requests of a worker over the run."
    case.charts["simulate.queue"] = Chart(title, alt, spec, "simulate.queue")
    title = case.text("Key-value blocks peak at {simulate.kv.peak}")
    spec = charts.line(memory, "time", "share", look=charts.Look(zero_y=True))
    case.charts["simulate.memory"] = Chart(title, "Key-value blocks in use over the run.", spec, "simulate.memory")
    return Section("Over time", (), ("simulate.queue", "simulate.memory"))


def _traffic(case: Case, facts: Simulated) -> Section:
    case.add_table("simulate.traffic", tables.traffic_table(facts))
    return Section("The traffic", (), ("simulate.traffic",))


def _how(facts: Simulated) -> Section:
    engine = facts.study.engine
    workers = f"{engine.workers} workers" if engine.workers > 1 else "one worker"
    text = (
        f"Scheduler {engine.scheduler} ({engine.policy.about}) on {workers}: at most {engine.max_num_seqs} sequences "
        f"and {engine.max_num_batched_tokens:,} tokens a step, {engine.kv_blocks:,} blocks of {engine.block_size} "
        f"tokens, prefix cache {'on' if engine.prefix_cache else 'off'}, preemption by {engine.preemption}. Every step "
        "is simulated; its time is looked up in a table that the kernels' measured speed made. Percentiles are of all "
        "counted requests, and their errors come from batch means."
    )
    return Section("How it was simulated", (text,))


def _lost(facts: Simulated) -> list[str]:
    """Rows of the trace that were left out, and requests that cannot be served, with the first of each."""
    read = facts.study.made.requests
    said = [f"{loss.where}: {loss.count:,} {loss.what} left out" for loss in read.lost] if read else []
    said += [f"{read.file.path}: {note}" for note in read.notes] if read else []
    for reason, rows in facts.result.rejected().items():
        first = ", ".join(str(row) for row in rows[:_MOST_LISTED])
        more = f" and {len(rows) - _MOST_LISTED:,} more" if len(rows) > _MOST_LISTED else ""
        said.append(f"not served, {reason}: requests {first}{more} (counted from 0)")
    return said
