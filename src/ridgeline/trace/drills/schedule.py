"""What a step of the run does, in the order in which the host does it: the same items on every rank.

A schedule is data; a pathology is a function from one schedule to another. `simulate` turns it into times.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ridgeline.trace.drills import job as costs
from ridgeline.trace.drills.job import Job
from ridgeline.trace.levels.op_flops import Gemm

COMPUTE, COMM, COPY = 7, 20, 24  # streams
HOST_NS = 16_000  # of an operator on the host, its launch included
BF16, FP32 = "c10::BFloat16", "float"
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Op:
    """An operator that launches one kernel. ``inside``: ranges around it, outermost first. ``key`` names what it is
    for; ``ranks``: which ranks do it, None for all."""

    key: str
    name: str
    kernel: str
    ns: float
    shapes: Shapes
    dtype: str = BF16
    inside: tuple[str, ...] = ()
    host_ns: int = HOST_NS
    stream: int = COMPUTE
    concrete: tuple[str, ...] = ()


@dataclass(frozen=True)
class Collective:
    """A collective: starts after the mark ``after``, and sets the mark ``key`` when it ends. ``group``: how many
    neighbouring ranks make it, 0 for all."""

    key: str
    kind: str
    in_numel: int
    out_numel: int
    ns: float
    after: str = ""
    dtype: str = "BFloat16"
    stream: int = COMM
    group: int = 0


@dataclass(frozen=True)
class Wait:
    """The compute stream waits for a mark."""

    key: str


@dataclass(frozen=True)
class Mark:
    """Set when the compute stream gets here."""

    key: str


@dataclass(frozen=True)
class Copy:
    """A copy from the host."""

    key: str
    bytes: int
    ns: float
    stream: int = COPY
    memory: str = "Pinned"


@dataclass(frozen=True)
class Host:
    """Time of the host: under a range of that name, or in Python that nothing names. ``ranks`` None: all."""

    key: str
    ns: float
    name: str = ""
    ranks: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Item:
    """A scalar is read back: the host waits for the compute stream, then works on it for ``host_ns``."""

    key: str
    host_ns: float = 4_000


@dataclass(frozen=True)
class Hold:
    """The compute stream waits for something that the profiler does not record."""

    key: str
    ns: float


Instruction = Op | Collective | Wait | Mark | Copy | Host | Item | Hold


@dataclass(frozen=True)
class Extra:
    """At some steps the log shows ``each_s`` more, timed by the loop as ``phase`` ("": not timed)."""

    steps: tuple[int, ...]
    each_s: float
    phase: str


@dataclass(frozen=True)
class Clock:
    """How one rank's device runs: its clock against the others', and what the samples show beside it."""

    rank: int
    ratio: float
    temp_c: float = 61.0
    power_w: float = 640.0


@dataclass(frozen=True)
class Schedule:
    """The run, its step, and what the logs beside it hold. ``slow``: a factor on the compute kernels of a rank."""

    job: Job
    items: tuple[Instruction, ...]
    slow: Mapping[int, float] = field(default_factory=dict)
    extras: tuple[Extra, ...] = ()
    clock: Clock | None = None
    jitter: float = 0.006  # of kernels, the same on all ranks

    def each(self, change: Callable[[Instruction], "Iterator[Instruction]"]) -> "Schedule":
        """Every instruction replaced by what ``change`` gives for it."""
        return replace(self, items=tuple(new for item in self.items for new in change(item)))


def healthy(job: Job) -> Schedule:
    """The step as it should be: weights prefetched, gradients reduced under backward, one scalar read per step."""
    return Schedule(job, tuple(_step(job)))


def _step(job: Job) -> Iterator[Instruction]:
    yield Host("loader", 300_000, LOADER)
    yield Copy("tokens", job.tokens * 8, costs.host_copy_ns(job.tokens * 8))
    yield Op("embed", "aten::embedding", "vectorized_gather_kernel", costs.memory_ns(job.tokens * job.d_model * 4),
             ((job.vocab, job.d_model), (job.sequences, job.sequence)))  # fmt: skip
    for unit in range(job.units):
        yield from _forward(job, unit)
    yield from _head(job)
    for unit in reversed(range(job.units)):
        yield from _backward(job, unit)
    yield from _end(job)


def gather(job: Job, unit: int, way: str, after: str) -> Collective:
    """The all-gather of a unit's weights."""
    params = job.unit_params(unit)
    ns = costs.wire_ns("all_gather", 2 * params, job.ranks)
    return Collective(f"{way}.gather.{unit}", "_allgather_base", params // job.ranks, params, ns, after)


def scatter(job: Job, key: str, params: int, after: str) -> Collective:
    """The reduce-scatter of gradients."""
    ns = costs.wire_ns("reduce_scatter", 2 * params, job.ranks)
    return Collective(f"scatter.{key}", "_reduce_scatter_base", params, params // job.ranks, ns, after)


def fused(key: str, what: str, shapes: Shapes, inside: tuple[str, ...] = ()) -> Op:
    """A compiled elementwise kernel over arrays that cross the memory bus once."""
    moved = 2 * sum(map(costs.numel, shapes))
    name = f"triton_poi_fused_{what}"
    return Op(key, name, name, costs.memory_ns(moved), shapes, inside=inside)


def linear(job: Job, key: str, k: int, n: int) -> Op:
    """Forward of a layer's matrix on all tokens."""
    gemm = Gemm(1, job.tokens, k, n)
    return Op(key, "aten::mm", KERNEL, costs.matmul_ns(gemm), ((job.tokens, k), (k, n)), inside=("aten::linear",))


KERNEL = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT"
_FLASH = "void flash_{}_kernel<Flash_{}_kernel_traits<128, 128, 64, 8>, true>(Flash_{}_params)"


def grads(job: Job, key: str, k: int, n: int) -> Iterator[Op]:
    """The two products of a matrix's backward: for its input and for its weight."""
    inside = ("autograd::engine::evaluate_function: MmBackward0", "MmBackward0")
    for what, (m, inner, out) in {"dx": (job.tokens, n, k), "dw": (k, job.tokens, n)}.items():
        gemm = Gemm(1, m, inner, out)
        yield Op(f"{key}.{what}", "aten::mm", KERNEL, costs.matmul_ns(gemm), ((m, inner), (inner, out)), inside=inside)


def layer_ops(job: Job, unit: int) -> Iterator[Op]:
    """Forward of a unit."""
    t, d = job.tokens, job.d_model
    layer = unit // 2
    if unit % 2 == 0:
        yield fused(f"norm.{unit}", "add_rms_norm_0", ((t, d), (t, d), (t, d)))
        yield linear(job, f"qkv.{layer}", d, job.qkv)
        yield fused(f"rope.{layer}", "rope_1", ((t, job.qkv), (t, job.qkv)))
        yield _attention(job, f"attention.{layer}")
        yield linear(job, f"proj.{layer}", d, d)
    else:
        yield fused(f"norm.{unit}", "add_rms_norm_2", ((t, d), (t, d), (t, d)))
        yield linear(job, f"up.{layer}", d, 2 * job.d_ff)
        yield fused(f"act.{layer}", "silu_mul_3", ((t, job.d_ff), (t, job.d_ff), (t, job.d_ff)))
        yield linear(job, f"down.{layer}", job.d_ff, d)


def _sides(job: Job) -> Shapes:
    one = (job.sequences, job.heads, job.sequence, job.head_dim)
    few = (job.sequences, job.kv_heads, job.sequence, job.head_dim)
    return one, few, few


def _attention(job: Job, key: str) -> Op:
    return Op(
        key, "aten::_scaled_dot_product_flash_attention", _FLASH.format("fwd", "fwd", "fwd"),
        costs.attention_ns(job.attention), (*_sides(job), (), ()), inside=("aten::scaled_dot_product_attention",),
        concrete=("", "", "", "0.", "True"),
    )  # fmt: skip


def _attention_back(job: Job, key: str) -> Op:
    node = "ScaledDotProductFlashAttentionBackward0"
    one, few, _ = _sides(job)
    shape = replace(job.attention, backward=True)
    shapes = (one, one, few, few, one, *((),) * 7)
    return Op(
        key, "aten::_scaled_dot_product_flash_attention_backward", _FLASH.format("bwd", "bwd", "bwd"),
        costs.attention_ns(shape), shapes, inside=(f"autograd::engine::evaluate_function: {node}", node),
        concrete=("",) * 11 + ("True",),
    )  # fmt: skip


def _forward(job: Job, unit: int) -> Iterator[Instruction]:
    yield Mark(f"forward.{unit}")
    if unit + 1 < job.units:
        yield gather(job, unit + 1, "forward", f"forward.{unit}")
    else:
        size = job.d_model * job.vocab
        ns = costs.wire_ns("all_gather", 2 * size, job.ranks)
        yield Collective("gather.head", "_allgather_base", size // job.ranks, size, ns, f"forward.{unit}")
    yield Wait(f"forward.gather.{unit}")
    yield from layer_ops(job, unit)


def _head(job: Job) -> Iterator[Instruction]:
    t, d, v = job.tokens, job.d_model, job.vocab
    yield fused("norm.head", "add_rms_norm_0", ((t, d), (t, d), (t, d)))
    yield Wait("gather.head")
    yield linear(job, "head", d, v)
    yield fused("loss", "cross_entropy_4", ((t, v), (t, v)))
    yield Mark("backward.head")
    yield gather(job, job.units - 1, "backward", "backward.head")
    yield from grads(job, "head", d, v)
    yield fused("norm.head.back", "rms_norm_backward_5", ((t, d),) * 4, _node("CompiledFunction"))
    yield Mark("end.head")
    yield scatter(job, "head", d * v, "end.head")


def _node(name: str) -> tuple[str, ...]:
    return f"autograd::engine::evaluate_function: {name}Backward", f"{name}Backward"


def _backward(job: Job, unit: int) -> Iterator[Instruction]:
    t, d, layer = job.tokens, job.d_model, unit // 2
    yield Mark(f"backward.{unit}")
    if unit:
        yield gather(job, unit - 1, "backward", f"backward.{unit}")
    yield Wait(f"backward.gather.{unit}")
    compiled = _node("CompiledFunction")
    if unit % 2 == 0:
        yield from grads(job, f"proj.{layer}", d, d)
        yield _attention_back(job, f"attention.{layer}.back")
        yield fused(f"rope.{layer}.back", "rope_backward_6", ((t, job.qkv), (t, job.qkv)), compiled)
        yield from grads(job, f"qkv.{layer}", d, job.qkv)
    else:
        yield from grads(job, f"down.{layer}", job.d_ff, d)
        yield fused(f"act.{layer}.back", "silu_mul_backward_7", ((t, job.d_ff),) * 5, compiled)
        yield from grads(job, f"up.{layer}", d, 2 * job.d_ff)
    yield fused(f"norm.{unit}.back", "add_rms_norm_backward_8", ((t, d),) * 4, compiled)
    yield Mark(f"end.{unit}")
    yield scatter(job, str(unit), job.unit_params(unit), f"end.{unit}")


def _end(job: Job) -> Iterator[Instruction]:
    size = job.vocab * job.d_model
    node = ("autograd::engine::evaluate_function: EmbeddingBackward0", "EmbeddingBackward0")
    moved = 4 * job.tokens * job.d_model + 10 * size
    yield Op("embed.back", "aten::embedding_dense_backward", "embedding_backward_feature_kernel",
             costs.memory_ns(moved), ((job.tokens, job.d_model),), inside=node)  # fmt: skip
    yield Mark("end.embed")
    yield scatter(job, "embed", size, "end.embed")
    yield Wait("scatter.embed")
    shard = job.params // job.ranks
    yield Op("norm", "aten::_foreach_norm", "multi_tensor_apply_kernel_norm", costs.memory_ns(4 * shard), ((shard,),),
             FP32)  # fmt: skip
    yield Mark("norm.own")
    yield Collective("norm.all", "allreduce", 1, 1, 14_000, "norm.own", "Float")
    yield Wait("norm.all")
    yield Item("norm.item")
    first = job.unit_params(0) // job.ranks
    yield _adam("adam.0", first)
    yield Mark("adam.first")
    yield gather(job, 0, "forward", "adam.first")
    yield _adam("adam.1", shard - first)


def _adam(key: str, shard: int) -> Op:
    # weights, two moments and gradients are read, the first three and a 16-bit copy written
    kernel = "multi_tensor_apply_kernel_fused_adamw"
    return Op(key, "aten::_fused_adamw_", kernel, costs.memory_ns(30 * shard), ((shard,),) * 4, FP32)
