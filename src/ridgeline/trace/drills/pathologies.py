"""What can be wrong with the run of a drill: pure functions from a schedule to a schedule.

``share`` is about how much of the healthy step a pathology should cost; what it does cost is measured by taking it
out again. ``codes`` are the rules that may name it, the most exact first.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from ridgeline.trace.drills import job as costs
from ridgeline.trace.drills.schedule import (
    COMPUTE,
    FP32,
    Clock,
    Collective,
    Copy,
    Extra,
    Hold,
    Host,
    Instruction,
    Item,
    Mark,
    Op,
    Schedule,
    Wait,
    layer_ops,
)
from ridgeline.trace.levels.op_flops import Gemm


@dataclass(frozen=True)
class Dose:
    """How much of a pathology: ``seconds`` a step are about what it should cost, of a healthy step of ``step_s``."""

    seconds: float
    step_s: float
    draw: random.Random


Change = Callable[[Schedule, Dose], Schedule]


@dataclass(frozen=True)
class Pathology:
    """``low``, ``high``: shares of the step to draw from; ``least``: the share below which no rule need see it.

    ``group``: of one group a run has one. ``instead``: what stands in its place in the run without it.
    """

    name: str
    title: str
    codes: tuple[str, ...]
    plant: Change
    low: float
    high: float
    least: float
    group: str = ""
    instead: Change = lambda schedule, _: schedule


def _before(schedule: Schedule, key: str, *new: Instruction) -> Schedule:
    def change(item: Instruction) -> Iterator[Instruction]:
        if item.key == key:
            yield from new
        yield item

    return schedule.each(change)


def _input(schedule: Schedule, dose: Dose) -> Schedule:
    def change(item: Instruction) -> Iterator[Instruction]:
        if isinstance(item, Host) and item.key == "loader":
            item = replace(item, ns=item.ns + dose.seconds * costs.GIGA)
        yield item

    return schedule.each(change)


SMALL_OPS, SMALL_NS = 80, 2_600


def _launch(schedule: Schedule, dose: Dose) -> Schedule:
    """A loop over parameters in Python between the norm and the optimizer."""
    shape = ((schedule.job.d_model,),)
    host_ns = round(dose.seconds * costs.GIGA / SMALL_OPS)
    kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, MulFunctor>>"
    loop = [Op(f"loop.{i}", "aten::mul_", kernel, SMALL_NS, shape, FP32, host_ns=host_ns) for i in range(SMALL_OPS)]
    return _before(schedule, "adam.0", *loop)


def _sync(schedule: Schedule, dose: Dose) -> Schedule:
    """A scalar is read at the end of every layer, and worked on."""
    each = dose.seconds * costs.GIGA / schedule.job.layers
    found = schedule
    for layer in range(schedule.job.layers):
        following = f"forward.{2 * layer + 2}" if layer + 1 < schedule.job.layers else "norm.head"
        found = _before(found, following, Item(f"item.{layer}", each))
    return found


def _garbage(schedule: Schedule, dose: Dose) -> Schedule:
    return _before(schedule, "adam.0", Host("garbage", dose.seconds * costs.GIGA, "gc.collect"))


def _copies(schedule: Schedule, dose: Dose) -> Schedule:
    size = round(dose.seconds * costs.HOST_LINK)
    return _before(schedule, "embed", Copy("features", size, costs.host_copy_ns(size), COMPUTE, "Pageable"))


def _late_host(schedule: Schedule, dose: Dose) -> Schedule:
    rank = dose.draw.randrange(schedule.job.ranks)
    return _before(schedule, "tokens", Host("late", dose.seconds * costs.GIGA, ranks=(rank,)))


def _collectives(schedule: Schedule, change: Callable[[Collective], Instruction]) -> Schedule:
    def each(item: Instruction) -> Iterator[Instruction]:
        yield change(item) if isinstance(item, Collective) else item

    return schedule.each(each)


def _slow_link(schedule: Schedule, dose: Dose) -> Schedule:
    """Wire times grow until they fill the step and what the dose adds to it."""
    wire = sum(item.ns for item in schedule.items if isinstance(item, Collective))
    factor = (dose.step_s + dose.seconds) * costs.GIGA / wire
    return _collectives(schedule, lambda item: replace(item, ns=item.ns * factor) if item.in_numel > 1 else item)


def _no_prefetch(schedule: Schedule, dose: Dose) -> Schedule:
    """Every gather is issued where its weights are needed, not a unit earlier."""
    late = {
        item.key: item for item in schedule.items
        if isinstance(item, Collective) and "gather" in item.key and item.key != "forward.gather.0"
    }  # fmt: skip

    def change(item: Instruction) -> Iterator[Instruction]:
        if item.key in late and isinstance(item, Wait):
            yield Mark(f"late.{item.key}")
            yield replace(late[item.key], after=f"late.{item.key}")
            yield item
        elif item.key not in late:
            yield item

    return schedule.each(change)


def _exchange(schedule: Schedule, key: str, before: str, numel: int) -> Schedule:
    job = schedule.job
    ns = costs.wire_ns("all_to_all", 2 * numel, job.ranks)
    call = Collective(f"exchange.{key}", "all_to_all", numel, numel, ns, f"exchange.before.{key}")
    return _before(schedule, before, Mark(call.after), call, Wait(call.key))


def _resharding(schedule: Schedule, dose: Dose) -> Schedule:
    """Activations are re-sharded around attention, or logits are gathered."""
    job = schedule.job
    if dose.draw.random() < 0.5:
        numel = job.ranks * job.tokens * job.vocab
        ns = costs.wire_ns("all_gather", 2 * numel, job.ranks)
        call = Collective("logits", "_allgather_base", numel // job.ranks, numel, ns, "logits.before")
        return _before(schedule, "loss", Mark(call.after), call, Wait(call.key))
    found = schedule
    for layer in range(job.layers):
        found = _exchange(found, f"{layer}", f"attention.{layer}", job.tokens * job.qkv)
        found = _exchange(found, f"{layer}.back", f"attention.{layer}.back", job.tokens * job.qkv)
    return found


SMALL_CALLS, SMALL_CALL_NS = 90, 44_000


def _small_calls(schedule: Schedule, dose: Dose) -> Schedule:
    """The norm is reduced parameter by parameter."""
    calls: list[Instruction] = []
    for i in range(SMALL_CALLS):
        size = 512 * (1 + i % 3)
        call = Collective(f"small.{i}", "allreduce", size, size, SMALL_CALL_NS, "norm.own", "Float")
        calls += [call, Wait(call.key)]
    return _before(schedule, "norm.item", *calls)


def _misaligned(schedule: Schedule, dose: Dose) -> Schedule:
    """A vocabulary that is no multiple of anything."""
    job = replace(schedule.job, vocab=schedule.job.vocab - 1)
    keys = ("head", "head.dx", "head.dw")
    good = sum(item.ns for item in schedule.items if isinstance(item, Op) and item.key in keys)
    factor = 1 + dose.seconds * costs.GIGA / good

    def change(item: Instruction) -> Iterator[Instruction]:
        if isinstance(item, Op) and item.key in keys:
            shapes = tuple(tuple(job.vocab if n == job.vocab + 1 else n for n in shape) for shape in item.shapes)
            kernel = "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x1_nn_align1"
            yield replace(item, shapes=shapes, ns=item.ns * factor, kernel=kernel)
        else:
            yield item

    return replace(schedule.each(change), job=job)


_CHAIN = ("sigmoid", "mul", "tanh", "mul", "add", "exp", "mul", "abs", "sqrt", "add")


def _unfused(schedule: Schedule, dose: Dose) -> Schedule:
    """The activation runs operator by operator."""
    job = schedule.job
    array = (job.tokens, job.d_ff)
    link_s = 2 * costs.memory_ns(2 * costs.numel(array)) * job.layers * 1e-9
    links = min(max(round(dose.seconds / link_s), 2), len(_CHAIN))

    def change(item: Instruction) -> Iterator[Instruction]:
        if not (isinstance(item, Op) and item.key.startswith("act.") and not item.key.endswith("back")):
            yield item
            return
        for i in range(links):
            yield _elementwise(f"{item.key}.{i}", _CHAIN[i], (array,), 2)
        yield _elementwise(f"{item.key}.last", "mul", (array, array), 3)

    return schedule.each(change)


def _elementwise(key: str, name: str, shapes: tuple[tuple[int, ...], ...], arrays: int) -> Op:
    kernel = f"void at::native::vectorized_elementwise_kernel<4, at::native::{name}_kernel_cuda>"
    return Op(key, f"aten::{name}", kernel, costs.memory_ns(2 * arrays * costs.numel(shapes[0])), shapes)


_AGAIN = ("autograd::engine::evaluate_function: CheckpointFunctionBackward", "CheckpointFunctionBackward")


def _recompute(schedule: Schedule, dose: Dose) -> Schedule:
    """Checkpointing is on for some units of the model, and nobody planned it."""
    job, found, spent_s = schedule.job, schedule, 0.0
    for unit in dose.draw.sample(range(job.units), job.units):
        ops = [replace(op, key=f"again.{op.key}", inside=(*_AGAIN, *op.inside)) for op in layer_ops(job, unit)]
        found = _after(found, f"backward.gather.{unit}", *ops)
        spent_s += sum(op.ns for op in ops) * 1e-9
        if spent_s >= dose.seconds:
            break
    return found


def _after(schedule: Schedule, key: str, *new: Instruction) -> Schedule:
    def change(item: Instruction) -> Iterator[Instruction]:
        yield item
        if isinstance(item, Wait) and item.key == key:
            yield from new

    return schedule.each(change)


def _router(dtype: str, kernel: str) -> Change:
    """A narrow projection in every layer whose operands are fp32, in the given format of the matrix unit."""

    def plant(schedule: Schedule, dose: Dose) -> Schedule:
        job, found = schedule.job, schedule
        one_ns = costs.matmul_ns(Gemm(1, job.tokens, job.d_model, 128), "fp32")
        columns = 128 * max(1, round(dose.seconds * costs.GIGA / job.layers / one_ns))
        gemm = Gemm(1, job.tokens, job.d_model, columns)
        for layer in range(job.layers):
            shapes = ((job.tokens, job.d_model), (job.d_model, columns))
            ns = costs.matmul_ns(gemm, dtype)
            op = Op(f"router.{layer}", "aten::mm", kernel, ns, shapes, FP32, inside=("aten::linear",))
            found = _before(found, f"up.{layer}", op)
        return found

    return plant


def _held(temp_c: float, power_w: float) -> Change:
    def plant(schedule: Schedule, dose: Dose) -> Schedule:
        rank = dose.draw.randrange(schedule.job.ranks)
        factor = 1 + dose.seconds / dose.step_s
        return replace(schedule, slow={rank: factor}, clock=Clock(rank, 1 / factor, temp_c, power_w))

    return plant


def _stall(phase: str, periods: tuple[int, ...]) -> Change:
    def plant(schedule: Schedule, dose: Dose) -> Schedule:
        period = dose.draw.choice(periods)
        steps = tuple(range(dose.draw.randrange(period // 2, period), schedule.job.log_steps, period))
        return replace(schedule, extras=(Extra(steps, dose.seconds * period, phase),))

    return plant


def _tail(schedule: Schedule, dose: Dose) -> Schedule:
    """Single steps are twice as long, at no period."""
    n = schedule.job.log_steps
    steps = tuple(sorted(dose.draw.sample(range(20, n), round(n * dose.seconds / dose.step_s))))
    return replace(schedule, extras=(Extra(steps, dose.step_s, ""),))


def _growth(schedule: Schedule, dose: Dose) -> Schedule:
    """From some step on every step is longer."""
    n = schedule.job.log_steps
    steps = tuple(range(dose.draw.randrange(n // 3, n // 2), n))
    return replace(schedule, extras=(Extra(steps, dose.seconds * n / len(steps), ""),))


def _queue(schedule: Schedule, dose: Dose) -> Schedule:
    return _before(schedule, "norm", Hold("hold", dose.seconds * costs.GIGA))


def _behind(schedule: Schedule, dose: Dose) -> Schedule:
    """Weights of the feed-forward are gathered on the compute stream, behind the attention kernel."""
    moved = {
        item.key: replace(item, stream=COMPUTE) for item in schedule.items
        if isinstance(item, Collective) and _unit_of(item.key, "forward.gather.") % 2 == 1
    }  # fmt: skip

    def change(item: Instruction) -> Iterator[Instruction]:
        if isinstance(item, Collective) and item.key in moved:
            return
        yield item
        if isinstance(item, Op) and item.key.startswith("attention.") and not item.key.endswith("back"):
            yield moved[f"forward.gather.{2 * int(item.key.split('.')[1]) + 1}"]

    return schedule.each(change)


def _unit_of(key: str, prefix: str) -> int:
    return int(key.removeprefix(prefix)) if key.startswith(prefix) else 0


def _scores(fused: bool) -> Change:
    """Attention with its scores in memory; ``fused``: the two products alone, as its kernel does them."""

    def plant(schedule: Schedule, dose: Dose) -> Schedule:
        job = schedule.job
        batch, t, d = job.sequences * job.heads, job.sequence, job.head_dim
        array = (batch, t, t)
        moved = 2 * (costs.numel(array) + 2 * batch * t * d)
        product = max(costs.matmul_ns(Gemm(batch, t, d, t)), costs.memory_ns(moved))
        kernel = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1"

        def change(item: Instruction) -> Iterator[Instruction]:
            if not (isinstance(item, Op) and item.key.startswith("attention.") and not item.key.endswith("back")):
                yield item
                return
            yield Op(f"{item.key}.qk", "aten::bmm", kernel, product, ((batch, t, d), (batch, d, t)))
            if not fused:
                softmax = "void (anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16>"
                ns = costs.memory_ns(4 * costs.numel(array))
                yield Op(f"{item.key}.softmax", "aten::_softmax", softmax, ns, (array, (), ()))
            yield Op(f"{item.key}.pv", "aten::bmm", kernel, product, (array, (batch, t, d)))

        return schedule.each(change)

    return plant


CATALOGUE: Mapping[str, Pathology] = {
    item.name: item
    for item in (
        Pathology("input", "the loader is slower than the step", ("T101",), _input, 0.05, 0.15, 0.03),
        Pathology("launch", "a loop of small kernels waits for the host", ("T102", "T208"), _launch, 0.09, 0.15, 0.07),
        Pathology("sync", "scalars are read inside the step", ("T103",), _sync, 0.03, 0.10, 0.02),
        Pathology("garbage", "garbage is collected in every step", ("T104",), _garbage, 0.03, 0.08, 0.01),
        Pathology("copies", "a large copy from the host runs before compute", ("T105",), _copies, 0.05, 0.12, 0.03),
        Pathology("late_host", "one rank's host is late", ("T401", "T152"), _late_host, 0.05, 0.12, 0.03, "rank"),
        Pathology("slow_link", "transfers below the link's rate", ("T156", "T153"), _slow_link, 0, 0.2, 0.05, "wire"),
        Pathology("no_prefetch", "weights are gathered late", ("T154",), _no_prefetch, 0, 0, 0.03, "wire"),
        Pathology("resharding", "a collective that the plan does not have", ("T155",), _resharding, 0, 0, 0.01, "wire"),
        Pathology("small_calls", "many small reductions", ("T158",), _small_calls, 0, 0, 0.015, "wire"),
        Pathology("behind_call", "gathers stand behind a custom call", ("T157", "T154"), _behind, 0, 0, 0.015, "wire"),
        Pathology("queue", "the device waits for what nobody recorded", ("T106",), _queue, 0.08, 0.15, 0.06),
        Pathology("scores", "attention keeps its scores in memory", ("T209",), _scores(fused=False), 0, 0, 0.02,
                  "scores", instead=_scores(fused=True)),
        Pathology("misaligned", "the vocabulary is odd", ("T204",), _misaligned, 0.03, 0.08, 0.02),
        Pathology("unfused", "the activation is not fused", ("T205",), _unfused, 0.04, 0.08, 0.03),
        Pathology("recompute", "layers are recomputed unplanned", ("T206",), _recompute, 0.04, 0.15, 0.02),
        Pathology("fp32", "matmuls in fp32", ("T207",), _router("fp32", "ampere_sgemm_128x128_tn"), 0.04, 0.12, 0.02,
                  instead=_router("tf32", "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_cublas")),
        Pathology("heat", "one chip is throttled by heat", ("T402",), _held(84, 520), 0.05, 0.12, 0.035, "rank"),
        Pathology("power", "one chip is held at its power limit", ("T403",), _held(63, 500), 0.05, 0.12, 0.035, "rank"),
        Pathology("low_clock", "one chip's clock is low", ("T404",), _held(60, 480), 0.05, 0.12, 0.035, "rank"),
        Pathology("refill", "the loader refills every few steps", ("T301",), _stall("data_s", (8, 16)), 0.02, 0.06,
                  0.015, "log"),
        Pathology("collector", "garbage collection now and then", ("T302",), _stall("gc_s", (20, 25, 30)), 0.015, 0.05,
                  0.01, "log"),
        Pathology("checkpoint", "checkpoints stop the run", ("T303",), _stall("checkpoint_s", (40, 50)), 0.02, 0.08,
                  0.015, "log"),
        Pathology("evaluation", "evaluation stops the run", ("T304",), _stall("eval_s", (50, 75)), 0.02, 0.08, 0.015,
                  "log"),
        Pathology("tail", "single steps are slow", ("T306",), _tail, 0.02, 0.05, 0.015, "log"),
        Pathology("growth", "the step has grown", ("T307",), _growth, 0.04, 0.10, 0.03, "log"),
        Pathology("unnamed", "a stall that comes back without a name", ("T305",), _stall("", (10, 20, 25)), 0.02, 0.025,
                  0.015, "log"),
    )
}  # fmt: skip

_MAIN = frozenset(("misaligned", "unfused", "recompute", "fp32", "sync", "input", "garbage", "copies", "late_host",
                   "heat", "power", "low_clock", "scores"))  # fmt: skip
EXCLUDES: Mapping[str, frozenset[str]] = {
    "slow_link": _MAIN,  # a step that the wire fills hides what its other causes cost
    "late_host": frozenset({"input"}),  # both begin under the optimizer of the step before
    "resharding": frozenset({"misaligned"}),  # both change what the vocabulary is
    "behind_call": frozenset({"scores"}),  # there is no attention kernel to stand behind
}


def fit(names: tuple[str, ...]) -> bool:
    """Whether these can be planted together."""
    groups = [CATALOGUE[name].group for name in names if CATALOGUE[name].group]
    clash = any(other in EXCLUDES.get(name, ()) for name in names for other in names)
    return len(set(groups)) == len(groups) and len(set(names)) == len(names) and not clash
