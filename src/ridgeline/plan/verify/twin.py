"""The twin: a model of the same layers and a plan of the same groups, small enough to compile on a laptop.

What divides by what is kept, sizes are not: every dimension is the smallest that the plan's groups divide. The twin
computes in fp32, since a CPU compiler rewrites bf16 collectives, and it leaves out what changes no matmul and no
collective: biases, norms of queries and keys, windows, dropout.
"""

import math
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import MLP, Attention, ModelSpec, MoE
from ridgeline.core.errors import InputError
from ridgeline.plan.job import Plan
from ridgeline.plan.steps import layout

MOST_DEVICES = 64
HEAD_DIM = 16
_GRAIN = 8  # every width is a multiple, so that no compiler pads or rewrites a matmul of one row


@dataclass(frozen=True)
class Axis:
    """One axis of the device mesh: devices ``stride`` ranks apart."""

    name: str
    size: int
    stride: int


@dataclass(frozen=True)
class Twin:
    """A shape, a plan and a batch. ``left_out`` says what of the original model the twin does not have."""

    shape: Shape
    plan: Plan
    seq: int
    micro_batches: int = 1
    left_out: tuple[str, ...] = ()

    @property
    def spec(self) -> ModelSpec:
        """The twin's model as the rest of the package counts it."""
        return model(self.shape)

    @property
    def sequences(self) -> int:
        """Sequences of one step."""
        return self.plan.dp * self.plan.micro_batch * self.micro_batches

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The mesh, slowest axis first: the coarsest on which every group of the plan is whole axes."""
        cuts = _cuts(self.plan)
        return tuple(Axis(f"x{low}", high // low, low) for low, high in reversed(list(pairwise(cuts))))

    def group(self, name: str) -> tuple[str, ...]:
        """The mesh axes of a group (`ranks.Groups`), slowest first; empty for a group of one."""
        low, high = _spans(self.plan)[name]
        return tuple(axis.name for axis in self.axes if low <= axis.stride < high)

    def members(self, name: str) -> frozenset[frozenset[int]]:
        """The ranks of every instance of a group."""
        low, high = _spans(self.plan)[name]
        ranks = range(self.plan.chips)
        keys = {(rank % low, rank // high) for rank in ranks}
        return frozenset(frozenset(r for r in ranks if (r % low, r // high) == key) for key in keys)

    def dump(self) -> dict[str, Any]:
        """As plain JSON, for the child process."""
        return asdict(replace(self, shape=None)) | {"shape": self.shape.model_dump()}  # type: ignore[arg-type]

    @classmethod
    def load(cls, data: dict[str, Any]) -> "Twin":
        """What `dump` made."""
        shape, plan = Shape.model_validate(data["shape"]), Plan(**data["plan"])
        return cls(shape, plan, data["seq"], data["micro_batches"], tuple(data["left_out"]))


def _spans(plan: Plan) -> dict[str, tuple[int, int]]:
    """Every group as a half-open span of strides, in the order of `ranks`: tp fastest, then dp."""
    experts = plan.ep * plan.etp if plan.ep > 1 else plan.tp
    return {
        "tp": (1, plan.tp),
        "ep": (plan.etp, experts) if plan.ep > 1 else (1, 1),
        "data": (plan.tp, plan.tp * plan.dp),
        "shard": (plan.tp, plan.tp * plan.shard),
        "replica": (plan.tp * plan.shard, plan.tp * plan.dp),
        "expert_data": (experts, plan.tp * plan.dp),
    }


def _cuts(plan: Plan) -> list[int]:
    cuts = sorted({1, *(edge for span in _spans(plan).values() for edge in span)})
    for low, high in pairwise(cuts):
        if high % low:
            hint = "choose ep and shard so that one divides the other"
            raise InputError.expected("groups that nest", f"edges at {low} and {high} ranks", where="--plan", hint=hint)
    return cuts


def twin(spec: ModelSpec, plan: Plan, *, micro_batches: int = 1) -> Twin:
    """The twin of a model under a plan.

    Raises `InputError` for a plan or a layer that this check does not build: pipeline and context parallelism,
    token mixers other than attention, experts that are split over tp, more than 64 devices.
    """
    _check_plan(plan)
    if plan.ep > 1 and plan.shard < plan.dp:
        hint = "leave shard out: experts under hybrid sharding are not built here"
        raise InputError.expected("shard=dp with experts over ep", plan.shard, where="--plan", hint=hint)
    attention, ffns, left_out = _layers(spec)
    moe = next((ffn for ffn in ffns if isinstance(ffn, MoE)), None)
    if moe is None and plan.ep > 1:
        raise InputError.expected("a mixture of experts for ep > 1", spec.name, where="--plan")
    if moe is not None and plan.tp > 1 and not (plan.sequence_parallel and plan.ep % plan.tp == 0 and plan.etp == 1):
        hint = "with experts and tp, set sequence_parallel=1 and an ep that tp divides"
        raise InputError.expected(
            "experts that tp does not split", f"tp={plan.tp},ep={plan.ep}", where="--plan", hint=hint
        )
    shape = _shape(spec, plan, attention, ffns)
    made = Twin(shape, plan, _seq(shape, plan), micro_batches, left_out)
    layout.check(made.spec, made.sequences, made.seq, layout.Layout.of(**plan.columns), plan.chips)
    _cuts(plan)
    return made


def plain(plan: Plan) -> ModelSpec:
    """The model where none is named: Llama's layers, with experts where the plan spreads them."""
    experts = {"experts": 2 * plan.ep, "top_k": 2, "expert_ff": 2} if plan.ep > 1 else {"d_ff": 2}
    return model(Shape.model_validate({"name": "a plain decoder", "layers": 2, "d_model": 2, "heads": 2, "kv_heads": 1,
                                       "vocab": 2} | experts))  # fmt: skip


def _check_plan(plan: Plan) -> None:
    for name in ("pp", "cp", "chunks"):
        if getattr(plan, name) > 1:
            hint = "verify dp, shard, zero, tp, sequence_parallel and ep; pipelines are simulated event by event"
            raise InputError.expected(f"{name}=1 in a plan to compile", getattr(plan, name), where="--plan", hint=hint)
    if plan.chips > MOST_DEVICES:
        hint = "keep the kinds of parallelism and make their groups smaller: the program has the same collectives"
        raise InputError.expected(f"at most {MOST_DEVICES} virtual devices", plan.chips, where="--plan", hint=hint)


def _layers(spec: ModelSpec) -> tuple[Attention, list[MLP | MoE], tuple[str, ...]]:
    """The attention, one feed-forward of every kind in order of layers, and what the twin leaves out."""
    kinds = [spec.kinds[index] for index in dict.fromkeys(spec.pattern)]
    for kind in kinds:
        if len(kind.mixers) != 1 or not isinstance(kind.mixers[0], Attention):
            raise InputError.expected("layers of attention", type(kind.mixers[0]).__name__, where="--model")
        if len(kind.ffns) != 1 or not isinstance(kind.ffns[0], MLP | MoE):
            raise InputError.expected("one MLP or mixture of experts a layer", len(kind.ffns), where="--model")
    attention = kinds[0].mixers[0]
    assert isinstance(attention, Attention)
    ffns: dict[type, MLP | MoE] = {}
    for kind in kinds:
        (ffn,) = kind.ffns
        assert isinstance(ffn, MLP | MoE)
        ffns.setdefault(type(ffn), ffn)
    there = {
        "biases": attention.qkv_bias or attention.out_bias,
        "norms of queries and keys": attention.qk_norm != "none",
        "windows": any(getattr(kind.mixers[0], "window", None) for kind in kinds),
        "multi-token prediction": bool(spec.mtp),
    }
    return attention, list(ffns.values()), tuple(name for name, present in there.items() if present)


def _shape(spec: ModelSpec, plan: Plan, attention: Attention, ffns: list[MLP | MoE]) -> Shape:
    """The smallest dimensions of the same kind that every group divides."""
    kv_heads = 2 * plan.tp
    heads = kv_heads * min(attention.heads // attention.kv_heads, 2)
    grain = math.lcm(_GRAIN, plan.chips)
    d_model = grain * -(-heads * HEAD_DIM // grain)
    dense = next((ffn for ffn in ffns if isinstance(ffn, MLP)), None)
    moe = next((ffn for ffn in ffns if isinstance(ffn, MoE)), None)
    keys: dict[str, Any] = {
        "name": f"twin of {spec.name}",
        "layers": max(2, len(ffns)),
        "d_model": d_model,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": HEAD_DIM,
        "vocab": 4 * d_model,
        "tied": spec.tied,
        "gated": ffns[0].gated,
    }
    if dense is not None:
        keys["d_ff"] = 3 * d_model
    if moe is not None:
        keys |= {"experts": 2 * plan.ep if plan.ep > 1 else 4, "top_k": min(moe.top_k, 2), "expert_ff": 2 * d_model}
        keys |= {"shared_ff": d_model if moe.shared_ff else 0, "dense_layers": int(dense is not None)}
    return Shape.model_validate(keys)


def _seq(shape: Shape, plan: Plan) -> int:
    """Tokens of a sequence: a multiple of tp, and of what gives every expert equally many."""
    grain = 32 * _GRAIN
    return math.lcm(grain, plan.tp * grain // 4, (shape.experts or 1) * plan.tp)
