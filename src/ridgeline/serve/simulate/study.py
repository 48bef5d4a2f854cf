"""A serving study: what is served, by which engine, under which traffic, as ``serve.toml`` holds it.

model = "llama-3-70b"         # or a config.json; every key may also come from the command line
[deployment]                  # device, count, parallel, weights, kv, engine
[traffic]                     # trace, rate, concurrency, input, output, ...: see `traffic.Traffic`
[engine]                      # scheduler, replicas, prefix_cache, ...: see `Options`
[slo]                         # ttft, tpot, at
[memory]                      # what a log says of a chip's memory: see `capacity.settings.Settings`
[money]                       # dollars per chip-hour, watts of a chip
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from ridgeline.core import parse
from ridgeline.core.case import InputFile
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError
from ridgeline.core.specs import Spec, build, read_toml, typed
from ridgeline.serve.capacity.admission import request_bytes
from ridgeline.serve.capacity.capacity import Capacity, capacity
from ridgeline.serve.capacity.settings import Settings
from ridgeline.serve.deployment import DEAREST, Deployment
from ridgeline.serve.simulate.engine.engine import Engine, Pools, Speculation
from ridgeline.serve.simulate.traffic.traffic import Limits, Made, Traffic, make

_Count = Annotated[int, Field(ge=1, le=2**30, strict=True)]
_Bandwidth = Annotated[float, typed(parse.size, "a bandwidth of $.engine", unit="B/s")]
_Time = Annotated[float, typed(parse.duration, "a time of $.engine", zero=True)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
SCHEDULERS = {"": "vllm", "vllm": "vllm", "trtllm": "vllm", "sglang": "sglang"}


class PoolOptions(Spec):
    """Prefill and decode workers, each as large as the deployment, and what carries the cache between them."""

    prefill: int = 0
    decode: int = 0
    bandwidth: _Bandwidth
    latency: _Time = 0.0
    prefill_stages: _Count = 1


class Drafts(Spec):
    """Speculative decoding: ``tokens`` drafted, ``length`` of them and the sampled one accepted, seconds of a draft."""

    tokens: _Count
    length: _Positive
    draft_step: _Time = 0.0
    draft_sequence: _Time = 0.0


class Options(Spec):
    """The ``[engine]`` table. What is not given follows the engine of the deployment and the memory of its chips."""

    scheduler: str = ""
    max_num_seqs: _Count | None = None
    max_num_batched_tokens: _Count | None = None
    block_size: _Count = 16
    kv_blocks: _Count | None = None
    prefix_cache: bool = True
    by_priority: bool = False
    preemption: Literal["recompute", "swap"] = "recompute"
    swap: _Bandwidth | None = None
    replicas: _Count = 1
    routing: str = "round-robin"
    pools: PoolOptions | None = None
    speculation: Drafts | None = None


class Placed(Spec):
    """The ``[deployment]`` table. ``profile`` is a folder with kernel times of one's own: see `simulate.profile`."""

    device: str = ""
    count: _Count = 1
    parallel: str = ""
    weights: str = "bf16"
    kv: str = "bf16"
    engine: str = ""
    profile: str = ""


class Money(Spec):
    """The ``[money]`` table: the rent of a chip, and what it draws; rated power where nothing is said."""

    dollars_per_chip_hour: Annotated[float, Field(gt=0, le=DEAREST, allow_inf_nan=False)] | None = None
    busy_watts: _Positive | None = None
    idle_watts: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class ServeSpec(Spec):
    """The whole file. ``warmup`` is the share of the first requests that no figure counts: see `settling`."""

    model: str = ""
    deployment: Placed = Placed()
    traffic: Traffic = Traffic()
    engine: Options = Options()
    slo: Limits = Limits()
    memory: Settings = Settings()
    money: Money = Money()
    warmup: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] | None = None
    seed: Annotated[int, Field(ge=0)] = 0


def read_spec(path: Path | None, changes: dict[str, Any]) -> ServeSpec:
    """A spec file with the command line's values over it: ``{"traffic": {"rate": 5}}``; None leaves a key alone."""
    data = read_toml(path, what="serving spec") if path else {}
    for table, values in changes.items():
        if isinstance(values, dict):
            held = data.setdefault(table, {})
            if not isinstance(held, dict):
                raise InputError.expected("a table", held, where=f"{path}: $.{table}")
            held.update({key: value for key, value in values.items() if value is not None})
        elif values is not None:
            data[table] = values
    return build(ServeSpec, data, where=str(path) if path else "")


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that a simulation needs, made from a spec: the deployment, its traffic, its engine, its memory."""

    spec: ServeSpec
    deployment: Deployment
    made: Made
    engine: Engine
    capacity: Capacity | None
    inputs: tuple[InputFile, ...]

    @property
    def longest(self) -> int:
        """Tokens of the longest request, prompt and answer."""
        load = self.made.workload
        return int((load.input_tokens + load.output_tokens).max())

    @property
    def chips(self) -> int:
        """Chips of all workers."""
        return self.deployment.chips * self.engine.workers


def study(spec: ServeSpec, deployment: Deployment, model: InputFile, path: Path | None = None) -> Study:
    """Read the traffic, size the memory, and set the engine up.

    Raises `InputError` for bad traffic and options that contradict each other, `InfeasibleError` where the weights
    leave no room.
    """
    made = make(spec.traffic, path.parent if path else None)
    load = made.workload
    found = None
    if spec.engine.kv_blocks is None or spec.engine.pools or spec.engine.preemption == "swap":
        typical = max(1, round(float((load.input_tokens + load.output_tokens / 2).mean())))
        found = capacity(deployment, typical, spec.memory)
    inputs = [model, *([InputFile.of(path)] if path else []), *([made.requests.file] if made.requests else [])]
    return Study(spec, deployment, made, _engine(spec, deployment, found), found, tuple(inputs))


def _engine(spec: ServeSpec, deployment: Deployment, found: Capacity | None) -> Engine:
    given = spec.engine
    blocks = given.kv_blocks if given.kv_blocks is not None else 0
    each = 0.0
    if found is not None:
        each = float(found.whole.per_sequence.base) / float(found.context.value)
        blocks = blocks or blocks_of(found, given.block_size)
    if blocks < 1:
        raise InputError.expected("room for at least one block", blocks, where="the cache of a replica")
    return Engine(
        kv_blocks=blocks,
        scheduler=given.scheduler or SCHEDULERS[deployment.engine],
        max_num_seqs=given.max_num_seqs or round(float(constant("admission.sequences").base)),
        max_num_batched_tokens=given.max_num_batched_tokens or round(float(constant("admission.chunk").base)),
        block_size=given.block_size,
        max_context=deployment.spec.max_context or 0,
        prefix_cache=given.prefix_cache,
        by_priority=given.by_priority or any(item.priority for item in spec.traffic.classes),
        preemption=given.preemption,
        swap_bytes_per_s=given.swap or 0.0,
        kv_bytes_per_token=each,
        replicas=given.replicas,
        routing=given.routing,
        pools=_pools(given.pools) if given.pools else None,
        speculation=_speculation(given.speculation) if given.speculation else None,
    )


def blocks_of(found: Capacity, block_size: int) -> int:
    """Blocks of a replica: the free bytes of a chip over what a block takes in a request of the capacity's context.

    Exact where every layer keeps every token; with windows and states it is the mean of a request of that length. The
    groups of an attention that is data parallel each have their own.
    """
    tokens = int(found.context.value)
    per_block = request_bytes(tokens, found.kinds, found.page_tokens) / -(-tokens // block_size)
    return int(found.free_bytes / per_block) * found.deployment.dp_attention


def _pools(given: PoolOptions) -> Pools:
    for name, what in (("prefill", "reads a prompt"), ("decode", "writes an answer")):
        if getattr(given, name) < 1:
            where = f"$.engine.pools.{name}"
            raise InputError.expected(f"at least one {name} worker", getattr(given, name), where=where,
                                      hint=f"without one nobody {what}")  # fmt: skip
    return Pools(given.prefill, given.decode, given.bandwidth, given.latency, given.prefill_stages)


def _speculation(given: Drafts) -> Speculation:
    costs = {"draft_step_s": given.draft_step, "draft_sequence_s": given.draft_sequence}
    return Speculation.of_length(given.tokens, given.length, **costs)
