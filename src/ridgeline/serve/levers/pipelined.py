"""Expert parallelism against layer pipelining for the prefill of a mixture of experts.

With experts spread over the chips every layer sends each token to its experts and back: ``2*layers*T*k*d*element``
bytes over all chips. With layers spread over the chips a token crosses each boundary once: ``(S - 1)*T*d*element``.
The pipeline pays with a bubble of ``(S - 1)/(M + S - 1)`` of M equal chunks, and with chunks: later ones attend to more
past, small ones leave the matmuls bound by the weights they read. Neither side's transfers are hidden under
compute in expert parallelism here (an upper bound; two overlapped micro-batches hide up to all of the smaller part).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ridgeline.arithmetic.collectives import Communication, Dispatch, expert_dispatch
from ridgeline.arithmetic.inputs import require_at_least, require_not_negative, require_positive
from ridgeline.arithmetic.params import matmuls
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.spec import MLA, Attention, ModelSpec, MoE
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.serve.levers.schedule import Schedule, run

Floats = NDArray[np.float64]
Work = Callable[[Floats, Floats], Floats]
_SMALLEST = 128  # tokens of a chunk: below it a tile of the matmul is padded


@dataclass(frozen=True)
class Prefill:
    """The prefill of one prompt of ``tokens``, of width ``d_model``, with ``top_k`` experts in ``expert_layers``.

    ``work(tokens, past)`` is the compute of chunks of a prompt in chip-seconds, arrays in and out: what one chip would
    take for the whole model, without communication. Raises `InputError` for sizes below one.
    """

    tokens: int
    d_model: int
    expert_layers: int
    top_k: int
    element_bytes: float
    work: Work

    def __post_init__(self) -> None:
        for name in ("tokens", "d_model", "expert_layers", "top_k", "element_bytes"):
            if not getattr(self, name) >= 1:
                raise InputError.expected("at least 1", getattr(self, name), where=f"the prefill's {name}")

    @classmethod
    def of(cls, spec: ModelSpec, tokens: int, work: Work, element: str = "bf16") -> "Prefill":
        """The prefill of a model. Raises `InputError` for a model without experts."""
        experts = [(block, spec.uses(i)) for i, kind in enumerate(spec.kinds) for block in kind.ffns
                   if isinstance(block, MoE)]  # fmt: skip
        if not experts:
            hint = "a dense model has no all-to-all: compare tensor parallelism with `ridgeline serve latency`"
            raise InputError.expected("a model with experts", spec.name, where="the model", hint=hint)
        layers = sum(uses for _, uses in experts)
        size = float(dtype_bytes(element).base)
        return cls(tokens, spec.d_model, layers, experts[0][0].top_k, size, work)


@dataclass(frozen=True)
class Link:
    """What leaves one chip: bytes a second one way, and seconds a message."""

    bandwidth_bytes_s: float
    latency_s: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.bandwidth_bytes_s) and self.bandwidth_bytes_s > 0):
            raise InputError.expected("a bandwidth above zero", self.bandwidth_bytes_s, where="the link")
        if not (np.isfinite(self.latency_s) and self.latency_s >= 0):
            raise InputError.expected("a latency of zero or more", self.latency_s, where="the link")


@dataclass(frozen=True)
class Spread:
    """Expert parallelism: the exchange for the tokens of one chip, and ``time``, ``prefill.spread`` (s)."""

    exchange: Communication
    time: Quantity

    @property
    def seconds(self) -> float:
        """Compute and exchange, one after the other."""
        return float(self.time.base)


@dataclass(frozen=True)
class Piped:
    """Layer pipelining with one chunk size: its schedule, the bytes that cross one boundary, and the time (s)."""

    chunk: int
    schedule: Schedule
    sent_bytes: float

    @property
    def seconds(self) -> float:
        """When the last chunk has left."""
        return self.schedule.makespan_s


def napkin(spec: ModelSpec, peak_flops_s: float, bandwidth_bytes_s: float, weights: str = "bf16") -> Work:
    """Compute of a chunk by a roofline on one chip: the longer of its matmuls and of reading the weights it touches.

    Matmuls of *m* tokens take ``2*active*m/peak``; each layer's experts are read with ``1 - (1 - k/E)^m`` of their
    weights; attention scores and values add ``4*width*(m*past + m^2/2)`` FLOPs for each layer. Use measured rates
    for a forecast.
    """
    held = float(dtype_bytes(weights).base)
    walked = matmuls(spec)
    flops_token = float(sum(item.flops_per_token for item in walked))
    width = float(sum(spec.uses(i) * _width(block) for i, kind in enumerate(spec.kinds) for block in kind.mixers))
    moe = next((block for kind in spec.kinds for block in kind.ffns if isinstance(block, MoE)), None)
    share = moe.top_k / moe.experts if moe else 1.0
    routed = float(sum(i.k * i.n * i.copies * i.uses for i in walked if i.part == "experts"))
    dense = flops_token / 2 - routed

    def work(tokens: Floats, past: Floats) -> Floats:
        hit = 1 - (1 - share) ** tokens
        read = held * (dense + routed / share * hit) / bandwidth_bytes_s
        scores = 4 * width * (tokens * past + tokens**2 / 2) / peak_flops_s
        return np.asarray(np.maximum(flops_token * tokens / peak_flops_s, read) + scores, dtype=np.float64)

    return work


def _width(block: object) -> float:
    """Query heads times the mean of key and value width: FLOPs of one token pair over four."""
    if isinstance(block, Attention):
        return block.heads * (block.head_dim + block.v_head_dim) / 2
    if isinstance(block, MLA):
        return block.heads * (block.qk_nope + block.qk_rope + block.v_head_dim) / 2
    return 0.0


def expert_parallel(job: Prefill, chips: int, link: Link) -> Spread:
    """Seconds with the experts over ``chips``: each holds its share of the tokens, sends them out and waits.

    The chip's own experts need no link, so ``(chips - 1)/chips`` of the exchange leaves it.
    """
    _at_least_one(chips, "chips")
    work = Dispatch(
        tokens=given("prefill.tokens_per_chip", job.tokens / chips, "token"),
        d_model=given("prefill.d_model", job.d_model, "1"),
        layers=given("prefill.expert_layers", job.expert_layers, "1"),
        top_k=given("prefill.top_k", job.top_k, "1"),
        element=given("prefill.element", job.element_bytes, "B"),
    )
    exchange = expert_dispatch(
        work, given("link.bandwidth", link.bandwidth_bytes_s, "B/s"), given("link.latency", link.latency_s, "s")
    )
    compute_s = float(job.work(np.array([float(job.tokens)]), np.zeros(1))[0]) / chips
    text = "compute + (count(chips) - 1)/count(chips)*transfer + where(count(chips) > 1, latency, 0)"
    inputs = {"transfer": exchange.transfer, "latency": exchange.latency, "chips": given("chips", chips, "chip")}
    time = derive("prefill.spread", text, "s", compute=given("prefill.compute", compute_s, "s"), **inputs)
    return Spread(exchange, time.titled("Prefill, experts spread over the chips"))


def boundary_bytes(tokens: Quantity, d_model: Quantity, element: Quantity) -> Quantity:
    """``prefill.boundary`` (B): what crosses from one stage to the next, each token's residual once."""
    found = derive("prefill.boundary", "count(tokens)*d_model*element", "B", tokens=tokens, d_model=d_model,
                   element=element)  # fmt: skip
    return found.titled("Bytes from one stage to the next")


def layer_pipeline(job: Prefill, stages: int, chunk: int, link: Link, *, streamed: bool = True) -> Piped:
    """Seconds with the layers over ``stages``, the prompt in chunks of ``chunk`` tokens (the last one what is left)."""
    _at_least_one(stages, "stages")
    _at_least_one(chunk, "chunk")
    past = np.arange(0, job.tokens, chunk, dtype=np.float64)
    tokens = np.minimum(chunk, job.tokens - past)
    each = job.work(tokens, past) / stages
    residual = boundary_bytes(
        given("prefill.tokens", tokens, "token"),
        given("prefill.d_model", job.d_model, "1"),
        given("prefill.element", job.element_bytes, "B"),
    )
    sent = np.asarray(residual.base, dtype=np.float64)
    transfer = sent / link.bandwidth_bytes_s + link.latency_s
    if stages == 1:
        transfer = np.zeros(len(sent))
    schedule = run(np.tile(each, (stages, 1)), transfer, streamed=streamed)
    return Piped(chunk, schedule, float(sent.sum()) if stages > 1 else 0.0)


def chunk_sizes(tokens: int) -> list[int]:
    """Powers of two from 128 up, and the whole prompt."""
    sizes, size = [], _SMALLEST
    while size < tokens:
        sizes.append(size)
        size *= 2
    return [*sizes, tokens]


def by_chunk(job: Prefill, stages: int, link: Link, sizes: Sequence[int] = ()) -> list[Piped]:
    """The pipeline at each chunk size: small chunks fill it, large ones use the chip."""
    return [layer_pipeline(job, stages, size, link) for size in sizes or chunk_sizes(job.tokens)]


def best_pipeline(job: Prefill, stages: int, link: Link) -> Piped:
    """The fastest of `by_chunk`."""
    return min(by_chunk(job, stages, link), key=lambda item: item.seconds)


def pipeline_wins(job: Prefill, chips: int, link: Link) -> bool:
    """Whether the best pipeline is faster than expert parallelism on the same chips and links."""
    return best_pipeline(job, chips, link).seconds < expert_parallel(job, chips, link).seconds


def crossover_bytes_s(job: Prefill, chips: int, low: float, high: float, latency_s: float = 0.0) -> float | None:
    """The link bandwidth (B/s) below which the pipeline is faster, between ``low`` and ``high``; None outside them.

    Faster links shorten the exchange by more than the boundary, so there is one crossing; by bisection to a thousandth.
    """
    if not 0 < low < high:
        raise InputError.expected("two bandwidths in ascending order", (low, high), where="the bandwidths")
    if not pipeline_wins(job, chips, Link(low, latency_s)) or pipeline_wins(job, chips, Link(high, latency_s)):
        return None
    while high / low > 1 + 1e-3:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if pipeline_wins(job, chips, Link(middle, latency_s)) else (low, middle)
    return float((low * high) ** 0.5)


def crossover_tokens(job: Prefill, chips: int, link: Link, sizes: Sequence[int]) -> int | None:
    """The first of ``sizes`` (tokens, ascending) from which on every longer prompt is faster piped; None if none is."""
    first: int | None = None
    for size in sizes:
        wins = pipeline_wins(replace(job, tokens=size), chips, link)
        first = (size if first is None else first) if wins else None
    return first


@dataclass(frozen=True)
class DecodeSplit:
    """One decode step on the same chips, split two ways: seconds a token ``spread`` and ``piped``, and the share of the
    chips' time that computes in the pipeline, ``busy``.

    A decode step reads weights: it has one token a sequence, so no chunks that could follow each other into the
    pipeline. As many batches in flight as stages would fill it, each reading all weights of its stage, none any faster.
    """

    spread: Quantity
    piped: Quantity
    busy: Quantity


def decode_split(work: Quantity, chips: Quantity, exchange: Quantity, transfer: Quantity) -> DecodeSplit:
    """``decode.spread``, ``decode.piped`` (s) and ``decode.busy`` (%) of a step of ``work`` (s on one chip).

    ``exchange`` (s) is that of all layers, ``transfer`` (s) that of one boundary.
    """
    require_positive(work)
    require_at_least(chips, 1)
    require_not_negative(exchange, transfer)
    spread = derive("decode.spread", "work/count(chips) + exchange", "s", work=work, chips=chips, exchange=exchange)
    text = "work + (count(chips) - 1)*transfer"
    piped = derive("decode.piped", text, "s", work=work, chips=chips, transfer=transfer)
    busy = derive("decode.busy", "work/(count(chips)*piped)", "%", work=work, chips=chips, piped=piped)
    return DecodeSplit(
        spread.titled("A token, experts spread"),
        piped.titled("A token, through the pipeline"),
        busy.titled("Chips busy in the pipeline"),
    )


def _at_least_one(value: int, name: str) -> None:
    if value < 1:
        raise InputError.expected("at least 1", value, where=name)
