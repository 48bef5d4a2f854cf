"""The section of a report on a prefill of experts: spread over the chips, or piped through them."""

import numpy as np

from ridgeline.arithmetic.fabric import Network
from ridgeline.core import charts, units
from ridgeline.core.case import Case, Chart, Column, Section, Table
from ridgeline.core.format import seconds, significant
from ridgeline.core.quantity import given
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.levers import pipelined
from ridgeline.serve.levers.pipelined import Floats, Link, Piped, Prefill, Work
from ridgeline.serve.levers.stepping import StepModel
from ridgeline.serve.steps.step import steps

CHUNKS, GANTT, DECODE = "levers.pipelined.chunks", "levers.pipelined.schedule", "levers.pipelined.decode"
NETWORK = "infiniband_ndr"
_BARS = 600  # that a timeline can show
_SPAN = (1, 1000)  # GB/s between which a crossover is looked for
_PROMPTS = tuple(2**power for power in range(8, 18))
_BATCH = 32  # sequences of the decode comparison
_GB = units.parse("GB")[0]


def whole_on_one(model: StepModel) -> Work:
    """The work of chunks from a step model of one chip: every term but exchanges, which one chip has none of."""

    def work(tokens: Floats, past: Floats) -> Floats:
        return np.asarray(model.prefill(tokens, past).seconds, dtype=np.float64)

    return work


def prefill_section(case: Case, deployment: Deployment, tokens: int) -> Section:
    """Expert parallelism against layer pipelining for a prompt on the deployment's chips, across a network."""
    chips = deployment.chips
    alone = Deployment(deployment.spec, deployment.device, weights=deployment.weights, kv=deployment.kv)
    model = steps(alone)
    job = Prefill.of(deployment.spec, tokens, whole_on_one(model))
    network = Network.of(NETWORK)
    link = Link(network.bandwidth_bytes_s * network.efficiency, network.latency_s)
    spread = pipelined.expert_parallel(job, chips, link)
    options = pipelined.by_chunk(job, chips, link)
    best = min(options, key=lambda item: item.seconds)
    case.add_table(CHUNKS, _chunks(options, spread.seconds, best))
    case.add_table(DECODE, _decode(job, deployment, model, link))
    shown = [CHUNKS, *_gantt(case, best, chips), DECODE]
    return Section("A prefill of experts: spread or piped", _text(job, chips, link, spread.seconds, best), tuple(shown))


def _chunks(options: list[Piped], spread_s: float, best: Piped) -> Table:
    columns = (
        Column("chunk", "Chunk", "token"),
        Column("seconds", "Piped", "ms"),
        Column("busy", "Busy", "%", "share of the stages' time that computes"),
        Column("compute", "Compute", "ms", "of all chunks on one stage: small ones read the weights more often"),
        Column("spread", "Spread", "ms", "experts over the same chips, in one pass"),
    )
    rows = tuple(
        (item.chunk, _ms(item.seconds), float(significant(100 * item.schedule.busy)),
         _ms(float((item.schedule.compute_end_s - item.schedule.compute_start_s)[0].sum())), _ms(spread_s))
        for item in options
    )  # fmt: skip
    at = options.index(best)
    return Table("Chunks of the prompt through the stages", columns, rows, highlight=at, mark="fastest")


def _gantt(case: Case, best: Piped, chips: int) -> list[str]:
    if 2 * chips * best.schedule.compute_start_s.shape[1] > _BARS:
        return []
    case.add_table(GANTT, best.schedule.table("The pipeline, chunk by chunk"))
    spec = charts.spans(case.tables[GANTT], "lane", "start", "end", "what")
    title = f"{best.chunk:,} tokens a chunk: {seconds(best.seconds)}, the stages {best.schedule.busy:.0%} busy"
    case.charts[GANTT] = Chart(title, "Timeline of the chunks through stages and links.", spec, GANTT)
    return [GANTT]


def _decode(job: Prefill, deployment: Deployment, model: StepModel, link: Link) -> Table:
    """A decode step on the same chips: no chunks, so a pipeline is a queue."""
    chips, context = deployment.chips, job.tokens
    work_s = float(np.ravel(model.decode(_BATCH, context).seconds)[0])
    one = pipelined.expert_parallel(
        Prefill(_BATCH, job.d_model, job.expert_layers, job.top_k, job.element_bytes, lambda t, p: 0 * t), chips, link
    )
    hop_s = _BATCH * job.d_model * job.element_bytes / link.bandwidth_bytes_s + link.latency_s
    found = pipelined.decode_split(
        given("decode.work", work_s, "s"), given("decode.chips", chips, "chip"),
        given("decode.exchange", one.seconds, "s"), given("decode.hop", hop_s, "s"),
    )  # fmt: skip
    columns = (Column("layout", "Decode step"), Column("token", "A token", "ms"), Column("busy", "Chips busy", "%"))
    spread_s = float(found.spread.base)
    rows = (
        ("experts spread", _ms(spread_s), float(significant(100 * work_s / chips / spread_s))),
        ("layers piped, one batch", _ms(float(found.piped.base)), float(significant(100 * float(found.busy.base)))),
    )
    note = f"{_BATCH} sequences; {chips} batches in flight would fill the pipeline, each at the longer time a token"
    return Table("Why not for decode", columns, rows, note=note)


def _text(job: Prefill, chips: int, link: Link, spread_s: float, best: Piped) -> tuple[str, ...]:
    bandwidth = pipelined.crossover_bytes_s(job, chips, _SPAN[0] * _GB, _SPAN[1] * _GB, link.latency_s)
    prompt = pipelined.crossover_tokens(job, chips, link, _PROMPTS)
    wins = best.seconds < spread_s
    first = (
        f"A prompt of {job.tokens:,} tokens on {chips} chips with {link.bandwidth_bytes_s / _GB:.3g} GB/s each: "
        f"{seconds(spread_s)} with the experts spread, {seconds(best.seconds)} piped in chunks of {best.chunk:,}. "
        f"{'Pipe it' if wins else 'Spread it'}."
    )
    at = "no bandwidth between 1 and 1,000 GB/s changes that" if bandwidth is None else (
        f"below {bandwidth / _GB:.3g} GB/s a chip piping wins, above it spreading"
    )  # fmt: skip
    longer = f"; at this bandwidth prompts of {prompt:,} tokens and more are faster piped" if prompt else ""
    return (
        first,
        f"Crossover: {at}{longer}. The exchange is not hidden under compute here, which is spreading's worst case.",
        "Decode has one token a sequence, no chunks to follow one another: a token takes the whole model's time.",
    )


def _ms(time_s: float) -> float:
    return float(significant(1e3 * time_s).replace(",", ""))
