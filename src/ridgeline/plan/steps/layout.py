"""How a job may be spread over chips: candidate plans as columns of integers, one row a plan."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgeline.arithmetic.flops import Recompute
from ridgeline.arithmetic.sharding import Sharding
from ridgeline.arithmetic.spec import MLA, Attention, CompressedAttention, ModelSpec, MoE
from ridgeline.core.errors import InfeasibleError, InputError, did_you_mean
from ridgeline.core.quantity import given
from ridgeline.plan.steps.pipeline import SCHEDULES

Ints = NDArray[np.int64]
RECOMPUTES: tuple[Recompute, ...] = ("none", "selective", "full")
MOST = 2**40  # no size of a plan is larger
MOST_SEQUENCES, MOST_SEQ = 2**24, 2**30  # of a step, and tokens of each
_LOWEST = {"zero": 0, "sequence_parallel": 0, "recompute": 0, "schedule": 0}
_NAMED: Mapping[str, tuple[str, ...]] = {"recompute": RECOMPUTES, "schedule": SCHEDULES}


@dataclass(frozen=True)
class Layout:
    """Equally long columns. ``tp*cp*dp*pp`` chips hold one plan; ``ep`` and ``etp`` share the ranks of ``tp*cp*dp``.

    ``etp`` splits each expert as ``tp`` splits the dense layers. ``chunks`` are the model chunks of a pipeline stage
    (VPP). ``zero`` is the ZeRO stage (3: fully sharded), over ``shard`` ranks of ``dp*cp`` (fewer: hybrid sharding).
    ``sequence_parallel`` is 0 or 1. ``recompute`` and ``schedule`` index `RECOMPUTES` and `pipeline.SCHEDULES`.
    """

    tp: Ints
    pp: Ints
    dp: Ints
    cp: Ints
    ep: Ints
    etp: Ints
    chunks: Ints
    micro_batch: Ints
    zero: Ints
    shard: Ints
    sequence_parallel: Ints
    recompute: Ints
    schedule: Ints

    @classmethod
    def of(cls, **columns: Any) -> "Layout":
        """From numbers, sequences, or names for ``recompute`` and ``schedule``; lengths are broadcast.

        What is not given is 1; ``zero`` and ``sequence_parallel`` 0, ``recompute`` none, ``schedule`` interleaved where
        ``chunks`` > 1 and 1f1b otherwise, ``shard`` dp*cp, ``etp`` 1 where ``ep`` > 1 and tp otherwise.
        Raises `InputError` for an unknown name or a size that is out of range.
        """
        names = [field.name for field in fields(cls)]
        for name in columns:
            if name not in names:
                raise InputError.expected("a column of a plan", name, where="plan", hint=did_you_mean(name, names))
        given_ = {name: _ints(name, value) for name, value in columns.items()}
        base = {name: given_.get(name, np.array([_LOWEST.get(name, 1)])) for name in names}
        if "schedule" not in given_:
            base["schedule"] = np.where(base["chunks"] > 1, SCHEDULES.index("interleaved"), SCHEDULES.index("1f1b"))
        if "shard" not in given_:
            base["shard"] = base["dp"] * base["cp"]
        if "etp" not in given_:
            base["etp"] = np.where(base["ep"] > 1, 1, base["tp"])
        length = np.broadcast_shapes(*(column.shape for column in base.values()))
        return cls(**{name: np.broadcast_to(column, length).astype(np.int64) for name, column in base.items()})

    @classmethod
    def join(cls, parts: Iterable["Layout"]) -> "Layout":
        """The rows of several layouts, one after another."""
        every = list(parts)
        return cls(**{f.name: np.concatenate([getattr(part, f.name) for part in every]) for f in fields(cls)})

    def __len__(self) -> int:
        return len(self.tp)

    @property
    def chips(self) -> Ints:
        """Chips of each plan."""
        return self.tp * self.pp * self.dp * self.cp

    def take(self, rows: NDArray[Any] | slice) -> "Layout":
        """The plans at those positions, or where a mask is true."""
        return Layout(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def row(self, index: int) -> dict[str, int | str]:
        """One plan by name, ``recompute`` and ``schedule`` in words."""
        values = {f.name: int(getattr(self, f.name)[index]) for f in fields(self)}
        return {name: _NAMED[name][value] if name in _NAMED else value for name, value in values.items()}

    def micro_batches(self, sequences: int) -> Ints:
        """Micro-batches that a replica runs in a step of ``sequences``."""
        return sequences // (self.dp * self.micro_batch)

    def sharding(self, sequences: int) -> Sharding:
        """The columns as the quantities that the memory formulas read.

        Hybrid sharding is told to them as a smaller data-parallel group, and experts that are split less finely than
        the dense layers as a smaller expert-parallel group: the same bytes.
        """
        whole = replace(self, dp=self.shard // self.cp)
        columns: Mapping[str, Any] = {
            "zero": whole.zero,
            "dp": self.shard / self.cp,
            "tp": whole.tp,
            "pp": whole.pp,
            "ep": whole.ep * whole.etp / whole.tp,
            "cp": whole.cp,
            "sequence_parallel": whole.sequence_parallel,
            "chunks": whole.chunks,
            "micro_batches": self.micro_batches(sequences),
        }
        return Sharding(**{name: given(f"plan.{name}", np.asarray(value), "1") for name, value in columns.items()})


def _ints(name: str, value: Any) -> Ints:
    if name in _NAMED:
        value = [_coded(name, item) if isinstance(item, str) else item for item in np.atleast_1d(value).tolist()]
    found = np.atleast_1d(np.asarray(value))
    lowest = _LOWEST.get(name, 1)
    if found.dtype.kind not in "iuf" or not np.all(np.isfinite(found)) or np.any(np.abs(found) > MOST):
        raise InputError.expected(f"whole numbers of at least {lowest}", value, where=f"plan.{name}")
    whole = found.astype(np.int64)
    if np.any(whole != found) or np.any(whole < lowest):
        raise InputError.expected(f"whole numbers of at least {lowest}", found.tolist(), where=f"plan.{name}")
    highest = {"zero": 3, "sequence_parallel": 1, "recompute": len(RECOMPUTES) - 1, "schedule": len(SCHEDULES) - 1}
    if name in highest and np.any(whole > highest[name]):
        raise InputError.expected(f"at most {highest[name]}", found.tolist(), where=f"plan.{name}")
    return whole


def _coded(name: str, word: str) -> int:
    if word not in _NAMED[name]:
        hint = did_you_mean(word, _NAMED[name], "one of " + ", ".join(_NAMED[name]))
        raise InputError.expected(f"a known {name}", word, where=f"plan.{name}", hint=hint)
    return _NAMED[name].index(word)


@dataclass(frozen=True)
class Limit:
    """A rule of division: where it is broken, what it is called, and what it divides, one entry a plan.

    ``unit`` is what ``part`` counts, as people write it. ``wanted`` words a rule that is no division.
    """

    name: str
    broken: NDArray[np.bool_]
    total: Ints
    part: Ints
    unit: str
    wanted: str = ""

    def error(self, row: int) -> InfeasibleError:
        """What a plan that breaks the rule is told."""
        total, part = int(self.total[row]), int(self.part[row])
        wanted = self.wanted or f"{self.name} to divide"
        text = f"Expected {wanted}, got {total} over {part}, at the plan"
        return InfeasibleError(text, limit=self.name, nearest=f"{self.unit} = {divisor_below(total, part)}")


def limits(spec: ModelSpec, sequences: int, seq: int, layouts: Layout) -> list[Limit]:
    """Every rule that a plan must keep, one array of booleans each: what does not divide cannot run."""
    cp, tp = layouts.cp, layouts.tp
    found = [_divides("heads over tp", "tp", heads, tp) for heads in sorted(_heads(spec))]
    found.append(_divides("sequence over 2*cp, so that causal work is even", "2*cp", seq, cp * 2, cp > 1))
    found.append(_divides("sequence over cp*tp", "cp*tp", seq, cp * tp, layouts.sequence_parallel > 0))
    stages = layouts.pp * layouts.chunks
    layers = np.full_like(stages, spec.layers)
    wanted = "a layer for every stage"
    found.append(Limit(wanted, stages > spec.layers, layers, stages, "pp*chunks", f"{wanted}'s chunks"))
    share = layouts.dp * layouts.micro_batch
    found.append(_divides("sequences over dp*micro_batch", "dp*micro_batch", sequences, share))
    micro = layouts.micro_batches(sequences)
    found.append(_divides("micro-batches over pp when interleaved", "pp", micro, layouts.pp, layouts.chunks > 1))
    found += _expert_limits(spec, layouts)
    found.append(_divides("dp*cp over the shard group", "shard", layouts.dp * cp, layouts.shard))
    return found


def feasible(spec: ModelSpec, sequences: int, seq: int, layouts: Layout) -> NDArray[np.bool_]:
    """Which plans divide as they must; memory is another question (`fits`)."""
    return np.asarray(~np.any([limit.broken for limit in limits(spec, sequences, seq, layouts)], axis=0))


def check_batch(sequences: int, seq: int, where: str) -> None:
    """Raise `InputError` for a batch beyond any step: a slip of the exponent."""
    for size, most, what in ((seq, MOST_SEQ, "tokens of a sequence"), (sequences, MOST_SEQUENCES, "sequences a step")):
        if size > most:
            raise InputError.expected(f"at most {most:,} {what}", size, where=where, hint="check the exponent")


def check(spec: ModelSpec, sequences: int, seq: int, layouts: Layout, chips: int) -> None:
    """Raise for the first plan that cannot run: `InputError` for more ranks than chips, else `InfeasibleError`."""
    many = layouts.chips > chips
    if np.any(many):
        worst = int(layouts.chips[many][0])
        raise InputError.expected(f"at most {chips} ranks, one a chip", worst, where="tp*pp*dp*cp of the plan")
    for limit in limits(spec, sequences, seq, layouts):
        if np.any(limit.broken):
            raise limit.error(int(np.argmax(limit.broken)))


def divisor_below(total: int, part: int) -> int:
    """The largest divisor of ``total`` that is not above ``part``; 1 of nothing."""
    return next((size for size in range(min(part, total), 0, -1) if total % size == 0), 1)


def _divides(name: str, unit: str, total: Ints | int, part: Ints, where: NDArray[np.bool_] | None = None) -> Limit:
    whole = np.broadcast_to(np.asarray(total, np.int64), part.shape)
    broken = whole % part != 0
    return Limit(name, broken if where is None else broken & where, whole, part, unit)


def _heads(spec: ModelSpec) -> set[int]:
    """Query heads, and key-value heads where there are fewer than ``tp`` can copy evenly."""
    blocks = [mixer for kind in spec.kinds for mixer in kind.mixers]
    return {b.heads for b in blocks if isinstance(b, Attention | MLA | CompressedAttention)}


def _expert_limits(spec: ModelSpec, layouts: Layout) -> list[Limit]:
    moes = [ffn for kind in spec.kinds for ffn in kind.ffns if isinstance(ffn, MoE)]
    if not moes:
        wanted = "a model with experts for ep"
        return [Limit("experts over ep", layouts.ep > 1, np.ones_like(layouts.ep), layouts.ep, "ep", wanted)]
    spread, shards = layouts.ep * layouts.etp, layouts.shard * layouts.tp
    hybrid = (layouts.zero > 0) & (layouts.shard < layouts.dp * layouts.cp)
    return [
        *(_divides("experts over ep", "ep", moe.experts, layouts.ep) for moe in moes),
        _divides("tp*cp*dp over ep*etp", "ep*etp", layouts.dp * layouts.cp * layouts.tp, spread),
        _divides("tp*shard over ep*etp, so that a shard group holds every expert", "ep*etp", shards, spread, hybrid),
    ]
